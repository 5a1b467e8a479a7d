"""TERM, grace, KILL: for everything an attempt started, and only for that."""

import os
import signal
import time

import pytest

from nereus_cli.destinations.keeper_facts import Closed, Ended, Started, Stopped, TimedOut
from tests.keeper.harness import Owner, command, linux_only, process_state, shell, until

pytestmark = pytest.mark.skipif(linux_only, reason="descendants that leave their group are found on Linux")


def note_pids(owner: Owner, name: str, count: int) -> list[int]:
    """Children tell their pids on stderr."""
    assert owner.heard(lambda: len(_told(owner, name)) >= count)
    return _told(owner, name)


def _told(owner: Owner, name: str) -> list[int]:
    try:
        return [int(word) for word in owner.output(name, ".err").split()]
    except FileNotFoundError:
        return []


BODIES = {
    "a group": ("sleep 60 & echo $! >&2; echo $$ >&2; wait", 2),
    "deaf to TERM": ("trap '' TERM; sleep 60 & echo $! >&2; echo $$ >&2; wait; sleep 60", 2),
    "left the session": ("setsid sh -c 'echo $$ >&2; exec sleep 60' & echo $$ >&2; sleep 60", 2),
    "left it twice": ("(setsid sh -c 'echo $$ >&2; sleep 60 & echo $! >&2; wait' &); echo $$ >&2; sleep 60", 3),
    "left it, deaf": ("setsid sh -c 'trap \"\" TERM; echo $$ >&2; sleep 60; sleep 60' & echo $$ >&2; sleep 60", 2),
    "without environment": ("env -i sh -c 'trap \"\" TERM; echo $$ >&2; sleep 60; sleep 60' & echo $$ >&2; wait", 2),
    "stopped": ("echo $$ >&2; kill -STOP $$", 1),
}


@pytest.mark.parametrize("body", BODIES)
def test_a_timeout_ends_everything(owner: Owner, body: str) -> None:
    script, count = BODIES[body]
    owner.start(shell("na~0", script, timeout_ms=400, grace_ms=300), shell("na~bystander", "sleep 1; exit 9"))
    pids = note_pids(owner, "na~0", count)
    ended = owner.wait(Ended, "na~0")
    assert ended.timed_out
    assert not ended.stopped
    assert ended.survivors == 0
    assert [type(said) for said in owner.about("na~0")] == [Started, TimedOut, Ended]
    assert until(lambda: all(process_state(pid) is None for pid in pids))
    assert owner.wait(Ended, "na~bystander").exit_code == 9


def test_without_a_timeout_what_is_left_running_is_left_alone(owner: Owner) -> None:
    ended = owner.run(shell("na~0", "sleep 60 & echo $! >&2; exit 0"))
    assert (ended.exit_code, ended.timed_out) == (0, False)
    (left,) = note_pids(owner, "na~0", 1)
    assert process_state(left) is not None
    os.kill(left, signal.SIGKILL)


def test_one_that_exits_well_in_its_grace_has_timed_out_all_the_same(owner: Owner) -> None:
    ended = owner.run(shell("na~0", "trap 'echo bye; exit 0' TERM; sleep 60 & wait", timeout_ms=200, grace_ms=20_000))
    assert (ended.exit_code, ended.timed_out) == (0, True)
    assert owner.output("na~0") == b"bye\n"


def test_one_that_was_stopped_by_a_signal_can_use_its_grace(owner: Owner) -> None:
    script = "trap 'echo tidy; exit 0' TERM; kill -STOP $$"
    owner.run(shell("na~0", script, timeout_ms=300, grace_ms=600_000))
    assert owner.output("na~0") == b"tidy\n"


def test_one_that_ends_in_time_has_not(owner: Owner) -> None:
    ended = owner.run(shell("na~0", "exit 0", timeout_ms=60_000))
    assert (ended.exit_code, ended.timed_out) == (0, False)


def test_what_outlives_its_leader_on_the_ladder_keeps_its_grace(owner: Owner) -> None:
    """The shell dies of TERM at once; what it started needs the time to put things in order."""
    script = "(trap 'sleep 0.4; echo tidy; exit 0' TERM; while :; do sleep 0.05; done) & wait"
    ended = owner.run(shell("na~0", script, timeout_ms=300, grace_ms=20_000))
    assert ended.signal == signal.SIGTERM
    assert owner.output("na~0") == b"tidy\n"
    assert ended.stdout_kept == 5


def test_the_ladder_holds_when_the_daemon_is_gone(owner: Owner) -> None:
    pid = owner.started(shell("na~0", "trap '' TERM; sleep 60; sleep 60", timeout_ms=300, grace_ms=200))
    owner.close()
    assert until(lambda: process_state(pid) is None, 10)


@pytest.mark.parametrize(("kill", "number"), [(False, signal.SIGTERM), (True, signal.SIGKILL)])
def test_stop_on_request(owner: Owner, kill: bool, number: int) -> None:
    owner.started(command("na~0", b"/bin/sleep", b"60", grace_ms=60_000))
    owner.client.stop("na~0", kill=kill)
    ended = owner.wait(Ended, "na~0")
    assert (ended.signal, ended.stopped, ended.timed_out) == (number, True, False)
    assert [type(said) for said in owner.about("na~0")] == [Started, Stopped, Ended]


def test_a_stop_that_is_not_heeded_can_be_followed_by_a_kill(owner: Owner) -> None:
    pid = owner.started(shell("na~0", "trap '' TERM; echo $$ >&2; while :; do sleep 0.1; done", grace_ms=600_000))
    note_pids(owner, "na~0", 1)
    owner.client.stop("na~0")
    owner.wait(Stopped, "na~0")
    owner.pump(0.2)
    assert process_state(pid) is not None
    owner.client.stop("na~0", kill=True)
    assert owner.wait(Ended, "na~0").signal == signal.SIGKILL


def test_stop_of_what_has_not_begun_closes_its_door(owner: Owner) -> None:
    names = [f"na~{number}" for number in range(40)]
    owner.start(*(command(name, b"/bin/sleep", b"0.1") for name in names))
    owner.client.stop(names[-1])
    owner.wait(Closed, names[-1])
    for name in names[:-1]:
        owner.wait(Ended, name)
    assert (owner.store / "attempts" / "00000001" / names[-1]).is_symlink()


def test_stop_of_what_nobody_knows_or_what_ended_does_nothing(owner: Owner) -> None:
    owner.run(command("na~0", b"/bin/true"))
    owner.client.stop("na~0", kill=True)
    owner.client.stop("na~never", kill=True)
    owner.run(command("na~1", b"/bin/true"))
    assert [type(said) for said in owner.about("na~0")] == [Started, Ended]
    assert owner.about("na~never") == []


def test_many_timers_fire_each_for_its_own(owner: Owner) -> None:
    names = [f"na~{number}" for number in range(24)]
    owner.start(*(command(name, b"/bin/sleep", b"0.8", timeout_ms=400 if number % 2 else 60_000)
                  for number, name in enumerate(names)))  # fmt: skip
    for number, name in enumerate(names):
        assert owner.wait(Ended, name).timed_out is bool(number % 2)


def test_a_timeout_that_passed_while_the_keeper_stood_still_does_not_hit_what_had_ended(owner: Owner) -> None:
    pid = owner.started(shell("na~0", "sleep 0.3; exit 0", timeout_ms=800))
    os.kill(owner.pid, signal.SIGSTOP)
    assert until(lambda: process_state(pid) is None)
    time.sleep(0.8)
    os.kill(owner.pid, signal.SIGCONT)
    ended = owner.wait(Ended, "na~0")
    assert (ended.exit_code, ended.timed_out) == (0, False)
