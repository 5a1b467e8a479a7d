"""Section A, the other half: messages that kill what works for them, and daemons that are told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cases.world import Case, end

HARMLESS = [f"h{n}" for n in range(20)]


def poison(case: Case, *, keeper_too: bool) -> str:
    """A shell text that takes the daemon along, as far as a child can."""
    daemon = f"kill -9 $(cat {case.store}/owner/lock.pid)"
    return f"echo $NEREUS_MESSAGE_ID >> {case.effects}; {daemon}{' $PPID' if keeper_too else ''}; kill -9 $$"


@pytest.mark.parametrize("keeper_too", [False, True])
def test_b012_a_message_that_kills_its_workers_uses_up_its_attempts(case: Case, keeper_too: bool) -> None:
    flags = ("--max-attempts", "3", "--retry-base", "10ms", "--retry-max", "20ms", "--timeout", "500ms")
    assert case.schedule("p", *flags, "--", "sh", "-c", poison(case, keeper_too=keeper_too)).status == 0
    time.sleep(0.01)
    for name in HARMLESS:
        assert case.schedule(name, *case.tick()).status == 0
    ended: list[int] = []
    while len(ended) < 10 and (not ended or ended[-1] < 0):
        ended.append(case.run("--until-idle", "--concurrency", "1", "--grace", "300ms"))
    assert ended[-1] == 30, (ended, case.log_said())
    assert ended[:-1] == [-signal.SIGKILL] * 3
    messages = case.attest(["p", *HARMLESS])
    assert {messages[name]["state"] for name in HARMLESS} == {"PUBLISHED"}
    assert case.seen().count("p") == 3
    assert sorted(name for name in case.seen() if name != "p") == sorted(HARMLESS)
    p = case.show("p")
    assert (p["state"], p["reason"]) == ("DEAD_LETTER", "UNCERTAIN_EXHAUSTED")
    assert [(one["number"], one["side_effect"]) for one in p["attempts"]] == [(n, "UNKNOWN") for n in (1, 2, 3)]
    codes = {one["code"] for one in p["attempts"]}
    assert codes == ({"NO_EVIDENCE"} if keeper_too else {"SIGNALED"})


def test_b012_killing_the_daemon_and_ending_well_is_simply_done(case: Case) -> None:
    work = f"echo $NEREUS_MESSAGE_ID >> {case.effects}; kill -9 $(cat {case.store}/owner/lock.pid)"
    case.schedule("p", "--max-attempts", "3", "--shell", work)
    assert case.run("--until-idle") == -signal.SIGKILL
    assert case.run("--until-idle") == 0
    assert case.seen() == ["p"]
    assert [one["side_effect"] for one in case.show("p")["attempts"]] == ["PUBLISHED"]


def sleepers(case: Case, count: int, seconds: float) -> tuple[Path, list[str]]:
    """Long children that say who they and their keeper are; where they say it, and their ids."""
    pids = case.place / "pids"
    names = [f"s{n}" for n in range(count)]
    for name in names:
        assert case.schedule(name, "--shell", f"echo $$ $PPID >> {pids}; exec sleep {seconds}").status == 0
    return pids, names


def test_b013_a_stop_of_the_whole_group_books_no_failure(case: Case) -> None:
    pids, names = sleepers(case, 2, 60)
    daemon = case.daemon("--grace", "300ms")
    case.until_words(pids, 4)
    os.killpg(daemon.pid, signal.SIGTERM)
    assert daemon.wait(timeout=20) == 0
    assert '"running":2' in case.log_said()
    assert '"left_to_keeper":2' in case.log_said()
    assert [case.state(name) for name in names] == ["PUBLISHING", "PUBLISHING"]
    again = case.daemon()
    case.until(lambda: '"event":"attempts.adopted","count":2' in case.log_said())
    for name in names:
        assert case.call("stop", name, "--kill").status == 0
    case.until(lambda: {case.state(name) for name in names} == {"UNCERTAIN"})
    assert case.owner() == again.pid
    for name in names:
        (attempt,) = case.show(name)["attempts"]
        assert (attempt["side_effect"], attempt["code"]) == ("UNKNOWN", "STOPPED")


def test_b013_a_kill_of_everything_books_no_failure_either(case: Case) -> None:
    pids, names = sleepers(case, 2, 60)
    daemon = case.daemon()
    one, keeper, other, _ = map(int, case.until_words(pids, 4))
    case.kill(daemon)
    end(keeper, one, other)
    assert case.run("--until-idle") == 30
    for name in names:
        message = case.show(name)
        (attempt,) = message["attempts"]
        assert (message["state"], attempt["side_effect"], attempt["exit_code"]) == ("UNCERTAIN", "UNKNOWN", None)
        assert attempt["code"] == "NO_EVIDENCE"
    assert "UNCERTAIN" in case.codes()
    assert case.call("status", "--check").status == 30


@pytest.mark.parametrize("signals", [1, 2])
def test_b015_stopping_starts_nothing_and_keeps_to_its_grace(case: Case, signals: int) -> None:
    """One grace for all of it, and none at all behind a second signal."""
    work = f"echo $$ $PPID >> {case.place}/pids; exec sleep 60"
    case.batch({"id": f"m{n:02d}", "in": "0s", "tags": {"of": str(n % 40)}, "shell": work} for n in range(100))
    daemon = case.daemon("--concurrency", "2", "--grace", "1s" if signals == 1 else "50s")
    words = case.until_words(case.place / "pids", 4)
    begun = time.monotonic()
    daemon.terminate()
    if signals == 2:
        case.until(lambda: "owner.stopping" in case.log_said())
        daemon.terminate()
    assert daemon.wait(timeout=20) == 0
    taken = time.monotonic() - begun
    assert (1 if signals == 1 else 0) <= taken < 10
    time.sleep(0.5)
    assert (case.place / "pids").read_text("ascii").split() == words
    counts = case.call("status").document()["counts"]
    assert {name: count for name, count in counts.items() if count} == {"SCHEDULED": 98, "PUBLISHING": 2}
    admitted = [one for one in case.events() if one["event"] == "admission"]
    assert len(admitted) == 2
    end(*map(int, words[::2]))


def test_b015_a_stop_heeds_what_ends_within_the_grace(case: Case) -> None:
    work = f"echo $NEREUS_MESSAGE_ID >> {case.effects}; sleep 1"
    case.batch({"id": f"m{n}", "in": "0s", "shell": work} for n in range(6))
    daemon = case.daemon("--concurrency", "2", "--grace", "30s")
    case.until(lambda: len(case.seen()) >= 2)
    daemon.send_signal(signal.SIGINT)
    assert daemon.wait(timeout=20) == 0
    states = [one["state"] for one in case.attest(f"m{n}" for n in range(6)).values()]
    assert states.count("PUBLISHED") == len(case.seen())
    assert "PUBLISHING" not in states
    assert "SCHEDULED" in states


def test_b015_a_supervisor_that_restarts_at_once_finds_the_store_free(case: Case) -> None:
    case.call("init")
    for _ in range(3):
        process: subprocess.Popen[bytes] = case.daemon()
        assert case.owner() == process.pid
        case.stop(process)
        assert case.owner() is None
