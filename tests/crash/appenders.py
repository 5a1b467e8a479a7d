"""Processes that append to one log until they are killed, and say what they were answered."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec

from nereus_cli.clock import HostClock
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import TINY
from nereus_cli.log.files import FileLog
from nereus_cli.ports import EnqueueUncertainError, NotQueuedError

SMALL = msgspec.structs.replace(TINY, segment_bytes_max=9_216)


class Unsynced(SystemDisk):
    """What a harness has to notice: a disk on which nothing is made durable."""

    def sync_data(self, fd: int) -> None:
        """Not done."""

    def sync_directory(self, fd: int) -> None:
        """Not done."""


class Said:
    """What was said of one log, over all its appenders: ``acknowledged`` by position, what was ``refused``, and the
    positions that were given out ``twice``."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.refused: set[bytes] = set()
        self.twice: list[int] = []

    def take(self, lines: bytes) -> int:
        """Whole lines of one appender; how many records they acknowledge."""
        taken = 0
        for line in lines.split(b"\n")[:-1]:
            verdict, position, payload = line.split(b" ")
            if verdict == b"N":
                self.refused.add(payload)
            if verdict == b"A":
                if self.acknowledged.setdefault(int(position), payload) != payload:
                    self.twice.append(int(position))
                taken += 1
        return taken


class Appender:
    """One forked process with a handle of its own."""

    def __init__(self, log: Path, name: str, seed: int, *, synced: bool = True) -> None:
        self._reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reading)
            with contextlib.suppress(BaseException):
                _append(log, name, seed, writing, SystemDisk() if synced else Unsynced())
            os._exit(0)
        os.close(writing)
        os.set_blocking(self._reading, False)

    def lines(self) -> bytes:
        """What it has said since the last time; what was not read here was not said."""
        parts = []
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self._reading, 1 << 16):
                parts.append(part)
        return b"".join(parts)

    def kill_and_hear(self, said: Said) -> int:
        """Ends it and takes what it had said, which outlives it in the pipe."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        said.take(self.lines())
        os.close(self._reading)
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def kill(self) -> int:
        """Ends it; the signal it ended by (0: it had ended by itself)."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self._reading)
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def open_log(log: Path, disk: SystemDisk | None = None) -> FileLog:
    """With segments so small that they end all the time."""
    return FileLog(
        str(log),
        disk=disk or SystemDisk(),
        clock=HostClock(),
        limits=SMALL,
        append_wait_s=2.0,
        sync_wait_s=2.0,
        create=True,
        watch=False,
    )


def complaints(path: Path, said: Said) -> list[str]:
    """What is not as promised of this log; the record that this appends is acknowledged like any other."""
    try:
        return list(_wrong(path, said))
    except Exception as error:  # noqa: BLE001 -- whatever keeps a log from being used is the finding
        return [f"{type(error).__name__}: {error}"]


def _wrong(path: Path, said: Said) -> Iterator[str]:
    log = open_log(path)
    try:
        mine = b"check.%d" % len(said.acknowledged)
        said.take(b"A %d %s\n" % (log.append([mine])[0].position, mine))
        records = list(log.read(0))
        verification = log.verify()
    finally:
        log.close()
    if [one.position for one in records] != list(range(1, len(records) + 1)):
        yield "there is a hole"
    stored = {one.position: one.payload for one in records}
    lost = [position for position, payload in said.acknowledged.items() if stored.get(position) != payload]
    if lost:
        yield f"acknowledged and not there: positions {sorted(lost)[:5]}, {len(lost)} in all"
    if said.twice:
        yield f"given out twice: positions {said.twice[:5]}"
    there = said.refused.intersection(stored.values())
    if there:
        yield f"refused and there: {sorted(there)[:3]}"
    if not verification.sound:
        yield f"not sound: {verification.findings}"


def _append(path: Path, name: str, seed: int, writing: int, disk: SystemDisk) -> None:
    log = open_log(path, disk)
    chance = random.Random(seed)
    for number in range(100_000):
        count = chance.choice((1, 1, 1, 3))
        payloads = [b"%s.%d.%d.%s" % (name.encode(), number, k, b"x" * chance.randrange(200)) for k in range(count)]
        try:
            placed = log.append(payloads)
        except NotQueuedError:
            verdicts = [b"N 0"] * count
        except EnqueueUncertainError:
            verdicts = [b"U 0"] * count
        else:
            verdicts = [b"A %d" % one.position for one in placed]
        said = [b"%s %s\n" % pair for pair in zip(verdicts, payloads, strict=True)]
        os.write(writing, b"".join(said))
