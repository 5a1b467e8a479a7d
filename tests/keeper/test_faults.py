"""Daemon and keeper killed at every step. What must hold: nothing said never to have started has an effect, no
attempt has two effects, none stays open for ever, and what was reported stays as it was."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nereus_cli.destinations.keeper_client import StartRequest
from nereus_cli.destinations.keeper_decide import DoorClosed, NoEvidence, OpenAttempt, StillOpen, Verdict
from nereus_cli.destinations.keeper_facts import Ended, KeeperGone, NotStarted
from nereus_cli.destinations.keeper_store import keeper_alive
from tests.keeper.harness import Owner, command, decided, linux_only, opened, process_state, shell, until

pytestmark = pytest.mark.skipif(linux_only, reason="steps of a process are read from /proc")

POINTS = [
    ("received", 1), ("taken", 1), ("door", 1), ("door", 3), ("exec", 1), ("spawned", 1),
    ("flushed", 1), ("reaped", 1), ("reaped", 3),
]  # fmt: skip
NAMES = [f"na~{number}" for number in range(12)]
Make = Callable[..., Owner]


def effect(store: Path, name: str) -> StartRequest:
    """Its effect is one byte appended to a file of its name."""
    return shell(name, f"printf x >> {store}/{name}; sleep 0.05")


def effects(store: Path) -> Counter[str]:
    return Counter({name: (store / name).stat().st_size for name in NAMES if (store / name).exists()})


def honest(store: Path, first: dict[str, Verdict], last: dict[str, Verdict]) -> None:
    seen = effects(store)
    for name, early in first.items():
        assert seen[name] <= 1
        for verdict in (early, last[name]):
            assert not isinstance(verdict, DoorClosed | NotStarted) or seen[name] == 0, verdict
            assert not isinstance(verdict, Ended) or seen[name] == 1, verdict
        assert not isinstance(last[name], StillOpen)
        assert isinstance(early, StillOpen) or type(last[name]) is type(early)


@pytest.mark.parametrize(("point", "nth"), POINTS)
def test_daemon_killed_while_the_keeper_stands_still(make_owner: Make, tmp_path: Path, point: str, nth: int) -> None:
    store = tmp_path / "store"
    owner = make_owner((point, nth, "stop"))
    attempts = opened(NAMES)
    owner.start(*(effect(store, name) for name in NAMES))
    assert until(lambda: process_state(owner.pid) == "T"), "the point was not passed"
    owner.close()
    first = decided(store, attempts)
    os.kill(owner.pid, signal.SIGCONT)
    assert until(lambda: process_state(owner.pid) is None), "a keeper ends after its last child"
    last = decided(store, attempts)
    honest(store, first, last)
    assert not any(isinstance(verdict, NoEvidence) for verdict in last.values())


@pytest.mark.parametrize(("point", "nth"), POINTS)
def test_keeper_killed(make_owner: Make, tmp_path: Path, point: str, nth: int) -> None:
    store = tmp_path / "store"
    owner = make_owner((point, nth, "kill"))
    attempts = opened(NAMES)
    owner.start(*(effect(store, name) for name in NAMES))
    assert owner.wait(KeeperGone).accepting
    assert until(lambda: not keeper_alive(os.fspath(store))), "the dead hold no lock"
    first = decided(store, attempts)
    time.sleep(0.3)
    honest(store, first, decided(store, attempts))
    if point in {"received", "taken"}:
        assert all(isinstance(verdict, DoorClosed) for verdict in first.values())
    if point == "door":
        assert sum(isinstance(verdict, NoEvidence) for verdict in first.values()) == nth


def test_a_dead_keeper_leaves_nothing_open_when_another_serves(make_owner: Make, tmp_path: Path) -> None:
    owner = make_owner(("spawned", 1, "kill"))
    attempts = opened(["na~0", "na~1"])
    owner.start(command("na~0", b"/bin/sleep", b"0.2"))
    owner.wait(KeeperGone)
    owner.connect()
    owner.start(command("na~1", b"/bin/sleep", b"5"))
    owner.facts.clear()
    verdicts = decided(tmp_path / "store", attempts)
    assert isinstance(verdicts["na~0"], NoEvidence)


def test_a_running_child_of_a_dead_keeper_is_named_and_left_alone(owner: Owner) -> None:
    attempts = opened(["na~0"])
    pid = owner.started(command("na~0", b"/bin/sleep", b"30"))
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait(KeeperGone)
    verdict = decided(owner.store, attempts)["na~0"]
    assert isinstance(verdict, NoEvidence)
    assert verdict.pid == pid
    assert process_state(pid) is not None
    os.kill(pid, signal.SIGKILL)


def test_a_daemon_killed_by_the_kernel_is_succeeded_by_one_that_hears_the_end(make_owner: Make, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    daemon = os.fork()
    if daemon == 0:
        try:
            doomed = Owner(store)
            doomed.start(shell("na~0", f"sleep 0.5; printf x >> {store}/na~0; exit 7"))
            time.sleep(60)
        finally:
            os._exit(0)
    assert until(lambda: any((store / "attempts").glob("*/na~0")))
    os.kill(daemon, signal.SIGKILL)
    os.waitpid(daemon, 0)
    successor = make_owner()
    verdict = decided(store, opened(["na~0"]))["na~0"]
    ended = successor.wait(Ended, "na~0") if isinstance(verdict, StillOpen) else verdict
    assert isinstance(ended, Ended)
    assert ended.exit_code == 7
    assert effects(store)["na~0"] == 1


def test_starts_race_with_an_owner_that_closes_doors(owner: Owner) -> None:
    names = [f"na~{number}" for number in range(160)]
    attempts = opened(names)
    first: dict[str, Verdict] = {}

    def close(some: Sequence[OpenAttempt]) -> None:
        for attempt in some:
            first.update(decided(owner.store, [attempt]))

    closing = threading.Thread(target=close, args=(attempts[::-1],))
    for begin in range(0, len(names), 20):
        owner.start(*(effect(owner.store, name) for name in names[begin : begin + 20]))
        if begin == 40:
            closing.start()
    closing.join()
    assert until(lambda: not any(isinstance(v, StillOpen) for v in decided(owner.store, attempts).values()))
    last = decided(owner.store, attempts)
    for name in names:
        size = (owner.store / name).stat().st_size if (owner.store / name).exists() else 0
        assert size == (1 if isinstance(last[name], Ended) else 0), (name, first[name], last[name])
        assert isinstance(first[name], StillOpen) or type(first[name]) is type(last[name])
    kinds = {type(verdict) for verdict in last.values()}
    assert kinds == {Ended, DoorClosed}, "both sides must have won somewhere"


def test_the_same_start_twice_runs_once(owner: Owner) -> None:
    one = effect(owner.store, "na~0")
    owner.start(one, one)
    owner.wait(Ended, "na~0")
    owner.start(one)
    owner.run(effect(owner.store, "na~1"))
    assert effects(owner.store) == {"na~0": 1, "na~1": 1}
    assert len([said for said in owner.about("na~0") if isinstance(said, Ended | NotStarted)]) == 1


@pytest.mark.parametrize("action", ["an error nobody thought of", "eagain"])
def test_an_error_in_one_attempt_is_its_own(make_owner: Make, action: str) -> None:
    owner = make_owner(("exec", 2, action))
    attempts = opened(NAMES)
    owner.start(*(effect(owner.store, name) for name in NAMES))
    for name in (*NAMES[:1], *NAMES[2:]):
        owner.wait(Ended, name)
    verdict = decided(owner.store, attempts)[NAMES[1]]
    if action == "eagain":
        assert isinstance(verdict, NotStarted)
        assert verdict.for_want_of_resources
    else:
        assert isinstance(verdict, NoEvidence)


def test_an_error_of_a_whole_turn_does_not_end_the_keeper(make_owner: Make) -> None:
    owner = make_owner(("turn", 3, "anything"))
    for name in NAMES:
        owner.run(effect(owner.store, name))
    assert "anything" in (owner.store / "keeper" / "keeper.log").read_text()
