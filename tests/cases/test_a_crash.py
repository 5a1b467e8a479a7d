"""Section A: lost, doubled or early deliveries around a crash."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cases.world import (
    NEEDS_ROOT,
    NEEDS_STRACE,
    PACKAGE_ROOT,
    SECOND,
    Case,
    Moved,
    end,
    memory_kib,
    read_only,
)
from tests.e2e.calls import nereus

ADDRESS_SPACE_KIB = 300_000


def test_b001_a_long_delay_outlives_every_restart_and_fires_once(case: Case, moved: Moved) -> None:
    assert moved.call("schedule", "--id", "x", "--in", "6h", *case.tick()).returncode == 0
    daemon = moved.start()
    for half_hour in range(1, 12):
        moved.step(1_800)
        time.sleep(0.15)
        if half_hour in {3, 9}:
            case.stop(daemon)
            daemon = moved.start()
        elif half_hour == 6:
            case.kill(daemon)
            daemon = moved.start()
    time.sleep(1.5)
    assert (case.seen(), case.state("x")) == ([], "SCHEDULED")
    moved.step(1_800)
    case.until(lambda: case.state("x") == "PUBLISHED")
    time.sleep(0.5)
    message = case.show("x")
    assert case.seen() == ["x"]
    assert len(message["attempts"]) == 1
    assert message["attempts"][0]["admitted_at"] >= message["deliver_at"]


def test_b003_a_backlog_is_not_popped_in_one_gulp(case: Case) -> None:
    overdue, later, kills = 600, 2_400, 4
    tick = f"echo $NEREUS_MESSAGE_ID >> {case.effects}"
    lines = [{"id": f"m{n:04d}", "in": "0s" if n % 5 == 0 else "1h", "shell": tick} for n in range(overdue + later)]
    receipts = case.batch(lines)
    assert [one["outcome"] for one in receipts] == ["QUEUED"] * (overdue + later)
    chance = random.Random(3)
    peak = 0

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        run = f'ulimit -v {ADDRESS_SPACE_KIB}; exec "$0" -m nereus_cli --store "$@"'
        command = ["sh", "-c", run, sys.executable, str(case.store), "run", *arguments]
        with case.log.open("ab") as sink:
            return subprocess.Popen(command, stdout=sink, stderr=sink, cwd=PACKAGE_ROOT)

    for _ in range(kills):
        with start() as process:
            before = len(case.seen())
            case.until(lambda: len(case.seen()) > before or process.poll() is not None)  # noqa: B023 -- called at once
            time.sleep(chance.uniform(0, 0.1))
            assert process.poll() is None, case.log_said()
            peak = max(peak, memory_kib(process.pid))
            process.kill()
    assert len(case.seen()) < overdue
    due = {line["id"] for line in lines if line["in"] == "0s"}

    def done() -> bool:
        """What was admitted and never begun waits up to a second for its next attempt."""
        with start("--once") as process:
            assert process.wait(timeout=90) == 0, case.log_said()
        listed = case.listed()
        return all(listed[name]["state"] != "RETRY_WAIT" for name in due)

    case.until(done)
    assert "MemoryError" not in case.log_said()
    assert peak < ADDRESS_SPACE_KIB // 2
    messages = case.attest(line["id"] for line in lines)
    assert {name for name, one in messages.items() if one["state"] == "SCHEDULED"} == set(messages) - due
    assert {messages[name]["state"] for name in due} <= {"PUBLISHED", "UNCERTAIN"}
    assert set(case.seen()) >= {name for name in due if messages[name]["state"] == "PUBLISHED"}
    assert len(messages) == overdue + later


@NEEDS_ROOT
def test_b005_a_store_that_cannot_be_written_never_turns_later_into_now(case: Case) -> None:
    case.call("init")
    with read_only(case.store):
        refused = case.schedule("x", *case.tick(), after="1h")
        assert refused.status in {73, 74, 75, 77}, refused
        assert refused.document()["schema"] == "nereus.error/1"
    case.schedule("other", *case.tick())
    case.daemon()
    case.until(lambda: case.state("other") == "PUBLISHED")
    time.sleep(1)
    assert case.seen() == ["other"]
    assert case.call("show", "x").status == 13


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store of which all is done, and its effects."""
    place = tmp_path_factory.mktemp("finished")
    place.chmod(0o700)
    tick = f"echo $NEREUS_MESSAGE_ID >> {place / 'effects'}"
    batch = place / "batch"
    batch.write_text("".join(json.dumps({"id": f"m{n}", "in": "0s", "shell": tick}) + "\n" for n in range(150)))
    assert nereus(place / "store", "schedule", "--batch", str(batch)).returncode == 0
    assert nereus(place / "store", "run", "--until-idle").returncode == 0
    return place / "store", place / "effects"


@pytest.mark.parametrize("lost", ["nothing", "projection", "projection/state.db", "keeper", "attempts", "owner"])
def test_b007_a_restart_or_a_copy_never_forgets_what_was_finished(
    case: Case, finished: tuple[Path, Path], lost: str
) -> None:
    original, effects = finished
    assert len(effects.read_text("ascii").splitlines()) == 150
    subprocess.run(["cp", "-a", str(original), str(case.store)], check=True)
    if (case.store / lost).is_dir():
        for file in sorted((case.store / lost).rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()
    elif lost != "nothing":
        (case.store / lost).unlink()
    for store in (case.store, original) if lost == "nothing" else (case.store,):
        case.aim(store)
        assert case.run("--until-idle") == 0, case.log_said()
        assert {one["state"] for one in case.listed().values()} == {"PUBLISHED"}
        assert case.call("verify").status == 0
        assert sorted(effects.read_text("ascii").split()) == sorted(f"m{n}" for n in range(150))


def test_b009_a_recovery_never_overwrites_a_success(case: Case) -> None:
    """Children end while the daemon that looks for them stands still, before, in and after its recovery."""
    chance = random.Random(9)
    names: list[str] = []
    for turn in range(3):
        for number in range(8):
            names.append(f"t{turn}-{number}")
            begun = f"echo begun >> {case.place}/begun{turn}"
            work = f"{begun}; sleep {chance.uniform(0.3, 1.2):.2f}; echo $NEREUS_MESSAGE_ID >> {case.effects}"
            assert case.schedule(names[-1], "--shell", work).status == 0
        first = case.start()
        started = case.place / f"begun{turn}"
        case.until_words(started, 8)
        case.kill(first)
        second = case.start("--until-idle")
        time.sleep(chance.uniform(0.1, 0.5))
        second.send_signal(signal.SIGSTOP)
        case.until_words(case.effects, len(names))
        second.send_signal(signal.SIGCONT)
        assert second.wait(timeout=60) == 0, case.log_said()
    messages = case.attest(names)
    assert {messages[name]["state"] for name in names} == {"PUBLISHED"}
    assert sorted(case.seen()) == sorted(names)
    for name in names:
        assert [line["event"] for line in case.show(name)["history"]] == ["Schedule", "Admission", "Outcome"]


def test_b017a_nothing_is_a_tick_early(case: Case) -> None:
    base = time.time_ns() + 2 * SECOND
    chance = random.Random(17)
    dues = {f"m{n}": base + chance.randrange(2 * SECOND) for n in range(150)}
    work = f"echo $NEREUS_MESSAGE_ID $(date +%s%N) >> {case.effects}"
    times = {name: f"@{due // SECOND}.{due % SECOND:09d}" for name, due in dues.items()}
    case.batch({"id": name, "at": at, "allow_past": True, "shell": work} for name, at in times.items())
    assert case.run("--until-idle", "--concurrency", "16") == 0
    words = case.seen()
    begun = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert set(begun) == set(dues)
    assert {name: (dues[name], at) for name, at in begun.items() if at < dues[name]} == {}


def test_b017b_a_cancel_in_the_midst_of_its_batch_is_heeded_or_too_late(case: Case) -> None:
    due = time.time() + 2
    names = [f"m{n:03d}" for n in range(120)]
    tick = f"echo $NEREUS_MESSAGE_ID >> {case.effects}"
    case.batch({"id": name, "at": f"@{due:.3f}", "allow_past": True, "shell": tick} for name in names)
    case.daemon("--concurrency", "4")
    case.until(lambda: len(case.seen()) > 5)
    canceled: set[str] = set()
    late: set[str] = set()
    for name in reversed(names):
        called = case.call("cancel", name)
        assert called.status in {0, 11, 12}, called
        (canceled if called.status == 0 else late).add(name)
    assert canceled
    assert late
    assert case.call("wait", *names, "--timeout", "60s").status in {0, 20}
    time.sleep(0.3)
    messages = case.attest(names)
    assert set(case.seen()) == late
    assert {name for name, one in messages.items() if one["state"] == "CANCELED"} == canceled


@NEEDS_STRACE
def test_b017c_the_log_is_on_disk_before_the_receipt_is_out(case: Case) -> None:
    case.call("init")
    trace = case.place / "trace"
    command = ["strace", "-f", "-y", "-e", "trace=write,pwrite64,fdatasync,fsync", "-o", str(trace), sys.executable]
    words = [*command, "-m", "nereus_cli", "--store", str(case.store), "schedule", "--in", "1h", "--", "true"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=PACKAGE_ROOT)
    if "ptrace" in ran.stderr:
        pytest.skip("strace may not trace here")
    assert ran.returncode == 0, ran.stderr
    calls = trace.read_text("utf-8").splitlines()
    written = max(n for n, line in enumerate(calls) if "write" in line and ".seg>" in line)
    synced = max(n for n, line in enumerate(calls) if "sync(" in line and ".seg>" in line and line.endswith("= 0"))
    told = min(n for n, line in enumerate(calls) if " write(1<" in line)
    assert written < synced < told


def test_b011_an_attempt_that_was_cut_off_does_not_run_for_ever(case: Case) -> None:
    case.schedule("x", "--shell", f"echo $$ $PPID > {case.place}/pids; sleep 60")
    first = case.start()
    child, keeper = map(int, case.until_words(case.place / "pids", 2))
    case.kill(first)
    end(keeper, child)
    assert case.state("x") == "PUBLISHING"
    assert case.schedule("y", *case.tick()).status == 0
    assert case.run("--until-idle") == 30
    message = case.show("x")
    assert (message["state"], message["work"]) == ("UNCERTAIN", "NONE")
    assert [one["side_effect"] for one in message["attempts"]] == ["UNKNOWN"]
    assert case.seen() == ["y"]
    assert case.schedule("z", *case.tick()).status == 0
    assert case.run("--until-idle") == 30
    assert case.seen() == ["y", "z"]
