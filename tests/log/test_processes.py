"""Several processes at one log: kills, stops, and what is said of whoever holds a lock."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.clock import HostClock
from nereus_cli.disk import SystemDisk
from nereus_cli.log.files import FileLog
from nereus_cli.ports import EnqueueUncertainError, NotQueuedError
from tests.log.world import LARGE, check_owners

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Crowd:
    """Writers of one log, what they said, and the end of each of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "log"
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self, count: int, *options: str) -> subprocess.Popen[bytes]:
        name = f"w{len(self.all)}"
        with (self.path / f"said-{name}").open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.log.writer", str(self.log), name, str(count), *options], stdout=said
            )
        self.all.append(process)
        return process

    def has_spoken(self, process: subprocess.Popen[bytes]) -> bool:
        """It has had an answer."""
        return (self.path / f"said-w{self.all.index(process)}").read_bytes().count(b"\n") > 1

    def finish(self) -> None:
        for process in self.all:
            assert process.wait(60) in {0, -signal.SIGKILL}

    def end(self) -> None:
        for process in self.all:
            if process.poll() is None:
                process.kill()
                process.wait()

    def open(self, wait: float = 5.0) -> FileLog:
        return FileLog(
            str(self.log),
            disk=SystemDisk(),
            clock=HostClock(),
            limits=LARGE,
            append_wait_s=wait,
            sync_wait_s=wait,
            create=True,
        )

    def said(self) -> list[list[bytes]]:
        return [
            line.split(b" ")
            for file in sorted(self.path.glob("said-*"))
            for line in file.read_bytes().split(b"\n")[:-1]
        ]

    def check(self) -> dict[str, int]:
        """The invariants; returns how often each answer was given."""
        log = self.open()
        log.append([b"the log still works"])
        records = list(log.read(0))
        assert [record.position for record in records] == list(range(1, len(records) + 1))
        counts = dict.fromkeys("TANU", 0)
        positions: set[int] = set()
        stored = {record.payload for record in records}
        for verdict, *middle, payload in self.said():
            counts[verdict.decode()] += 1
            if verdict == b"A":
                position = int(middle[0])
                assert records[position - 1].payload == payload
                assert position not in positions
                positions.add(position)
            if verdict == b"N":
                assert payload not in stored
        verification = log.verify()
        assert verification.sound, verification.findings
        check_owners(log)
        log.close()
        return counts


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    crowd = Crowd(tmp_path)
    yield crowd
    crowd.end()


def state_of(process: subprocess.Popen[bytes]) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def until_stopped(process: subprocess.Popen[bytes]) -> None:
    for _ in range(2_000):
        if state_of(process) == "T":
            return
        time.sleep(0.01)
    raise AssertionError(state_of(process))


def test_sixteen_processes_append_a_hundred_records_each(crowd: Crowd) -> None:
    for _ in range(16):
        crowd.start(100, "--wait", "30")
    crowd.finish()
    counts = crowd.check()
    assert (counts["A"], counts["N"], counts["U"]) == (1_600, 0, 0)


@linux_only
def test_writers_are_killed_and_stopped_at_random(crowd: Crowd) -> None:
    """Whoever has said something may be struck, so that there is progress on the slowest machine."""
    chance = random.Random(20)
    kills = stops = 0
    stopped: list[subprocess.Popen[bytes]] = []
    while kills < 40 or stops < 15:
        living = [process for process in crowd.all if process.poll() is None]
        while len(living) < 5:
            fault = chance.choice(["", "write_at", "sync_data", "try_lock", "unlock"])
            more = ("--call", fault, "--at", str(chance.randrange(2, 60)), "--signal", "9") if fault else ()
            living.append(crowd.start(200, *more))
        time.sleep(chance.random() * 0.05)
        for process in stopped:
            process.send_signal(signal.SIGCONT)
        speaking = [process for process in living if crowd.has_spoken(process)]
        if speaking and chance.random() < 0.4:
            stopped = [chance.choice(speaking)]
            stopped[0].send_signal(signal.SIGSTOP)
            stops += 1
        elif speaking:
            chance.choice(speaking).kill()
            kills += 1
    for process in crowd.all:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
    crowd.finish()
    counts = crowd.check()
    assert counts["A"]
    assert counts["T"] >= counts["A"] + counts["N"] + counts["U"]


@linux_only
@pytest.mark.parametrize(
    ("call", "at", "expected"),
    [("write_at", 4, "N"), ("sync_data", 2, "U")],
    ids=["holding append", "holding sync"],
)
def test_a_stopped_holder_is_named_and_what_the_others_are_told_is_true(
    crowd: Crowd, call: str, at: int, expected: str
) -> None:
    crowd.open().append([b"first"])
    victim = crowd.start(3, "--call", call, "--at", str(at))
    until_stopped(victim)
    log = crowd.open(wait=0.3)
    begin = time.monotonic()
    if expected == "N":
        with pytest.raises(NotQueuedError, match=f"append lock is held by process {victim.pid}") as refused:
            log.append([b"other"])
        assert refused.value.holder == victim.pid
    else:
        with pytest.raises(EnqueueUncertainError, match=f"sync lock is held by process {victim.pid}") as open_end:
            log.append([b"other"])
        assert (open_end.value.holder, open_end.value.signal) == (victim.pid, 0)
        with pytest.raises(NotQueuedError, match="sync lock") as refused:
            log.barrier()
        assert refused.value.holder == victim.pid
    assert time.monotonic() - begin >= 0.3
    assert log.bounds().durable >= 1, "readers wait for nobody"
    victim.send_signal(signal.SIGCONT)
    assert victim.wait(30) == 0
    log.barrier()
    assert (b"other" in [record.payload for record in log.read(0)]) == (expected == "U")
    assert crowd.check()["A"] == 3


@linux_only
def test_what_a_killed_writer_left_behind_the_mark_becomes_durable_by_a_barrier(crowd: Crowd) -> None:
    log = crowd.open()
    log.append([b"first"])
    victim = crowd.start(5, "--call", "unlock", "--at", "1", "--signal", str(int(signal.SIGKILL)))
    assert victim.wait(30) == -signal.SIGKILL
    bounds = log.bounds()
    assert (bounds.durable, bounds.last) == (1, 2)
    assert log.wait(1, 0.0) == 1
    assert log.barrier() == 2
    assert log.wait(1, 0.0) == 2


SIGNALLED = """
import os, signal, sys
from nereus_cli.clock import HostClock
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.log.files import FileLog
from nereus_cli.ports import EnqueueUncertainError, NotQueuedError
log = FileLog(sys.argv[1], disk=SystemDisk(), clock=HostClock(), limits=PRODUCTION, append_wait_s=9, sync_wait_s=9)
if sys.argv[2] == "handled":
    signal.signal(signal.SIGTERM, lambda *_: print("handled", flush=True))
if sys.argv[2] == "raises":
    def handler(*_):
        raise SystemExit(99)
    signal.signal(signal.SIGTERM, handler)
print("ready", flush=True)
try:
    print("durable", log.append([b"signalled"])[0].position, flush=True)
except EnqueueUncertainError as error:
    print("uncertain", error.signal, flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print("masked", sorted(int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, ())), flush=True)
"""


def signalled(crowd: Crowd, how: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SIGNALLED, str(crowd.log), how], stdout=subprocess.PIPE)


def waits_in(process: subprocess.Popen[bytes], pattern: bytes) -> None:
    """Until a process has that many bytes of its record in the log: it waits for the sync lock by then."""
    segment = next(iter(sorted(Path(pattern.decode()).glob("*.seg"))))
    for _ in range(1_000):
        if segment.read_bytes().endswith(b"signalled"):
            return
        assert process.poll() is None
        time.sleep(0.01)
    raise AssertionError


@linux_only
@pytest.mark.parametrize(
    ("how", "number", "status", "said"),
    [
        ("plain", signal.SIGTERM, 0, [b"uncertain 15", b"masked []"]),
        ("plain", signal.SIGINT, 0, [b"uncertain 2", b"masked []"]),
        ("handled", signal.SIGTERM, 0, [b"durable 3", b"handled", b"masked []"]),
        ("raises", signal.SIGTERM, 0, [b"uncertain 0", b"masked []"]),
    ],
)
def test_a_signal_behind_the_first_written_byte_leaves_the_answer_open(
    crowd: Crowd, how: str, number: int, status: int, said: list[bytes]
) -> None:
    crowd.open().append([b"first"])
    holder = crowd.start(1, "--call", "sync_data", "--at", "1")
    until_stopped(holder)
    process = signalled(crowd, how)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        waits_in(process, os.fsencode(crowd.log))
        process.send_signal(number)
        if how != "plain":
            time.sleep(0.2)
            holder.send_signal(signal.SIGCONT)
        lines = process.stdout.read().splitlines()
        assert sorted(lines) == sorted(said)
        assert process.wait(30) == status
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        holder.send_signal(signal.SIGCONT)
        holder.wait(30)
    log = crowd.open()
    log.barrier()
    assert b"signalled" in [record.payload for record in log.read(0)]


@linux_only
@pytest.mark.parametrize(("number", "said", "status"), [(signal.SIGINT, b"interrupted", 0), (signal.SIGTERM, b"", -15)])
def test_a_signal_before_anything_was_written_acts_at_once(crowd: Crowd, number: int, said: bytes, status: int) -> None:
    crowd.open().append([b"first"])
    holder = crowd.start(1, "--call", "write_at", "--at", "1")
    until_stopped(holder)
    process = signalled(crowd, "plain")
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        process.send_signal(number)
        assert process.stdout.readline().strip() == said
        assert process.wait(30) == status
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        holder.send_signal(signal.SIGCONT)
        holder.wait(30)
    log = crowd.open()
    assert b"signalled" not in [record.payload for record in log.read(0)]
    assert log.bounds().last == 2
