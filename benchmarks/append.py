"""How fast are appends, against the obvious way? Prints ratios; asserts nothing, because machines are noisy.

    python benchmarks/append.py [SECONDS] [ROUNDS] [SYNC_MS] [DIRECTORY]

Every process appends records of 200 bytes, one at a time, each durable before the next. Beside the log stands, in the
same rounds, one file under one lock: lock, write, sync, unlock. SYNC_MS is added to every sync, for slower disks.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from nereus_cli.clock import HostClock
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.log.files import FileLog

RECORD = b"x" * 200
PROCESSES = (1, 8, 32)


class CountingDisk(SystemDisk):
    """Counts syncs, and makes each take longer."""

    def __init__(self, sync_ms: float) -> None:
        self.seconds = sync_ms / 1_000
        self.syncs = 0

    def sync_data(self, fd: int) -> None:
        super().sync_data(fd)
        self.syncs += 1
        if self.seconds:
            time.sleep(self.seconds)


def one_lock(path: str, disk: CountingDisk) -> Callable[[], object]:
    """The obvious way: whoever has the lock writes and syncs."""
    directory = disk.open_directory(path)
    fd = disk.open_file("plain", below=directory, create=True)

    def append() -> None:
        if not disk.lock(fd, 60):
            sys.exit("the lock was not to be had")
        disk.write_at(fd, RECORD, disk.size(fd))
        disk.sync_data(fd)
        disk.unlock(fd)

    return append


def the_log(path: str, disk: CountingDisk) -> Callable[[], object]:
    """What Nereus does."""
    log = FileLog(f"{path}/log", disk=disk, clock=HostClock(), limits=PRODUCTION, sync_wait_s=60, append_wait_s=60)
    return lambda: log.append([RECORD])


def run(make: Callable[[str, CountingDisk], Callable[[], object]], path: str, processes: int, seconds: float,
        sync_ms: float) -> tuple[float, float, float]:  # fmt: skip
    """Appends a second, syncs an append, and the 99th percentile in milliseconds."""
    begin = time.monotonic() + 0.3
    pipes = []
    for _ in range(processes):
        reading, writing = os.pipe()
        if os.fork() == 0:
            disk = CountingDisk(sync_ms)
            append = make(path, disk)
            time.sleep(max(begin - time.monotonic(), 0))
            taken = []
            while time.monotonic() < begin + seconds:
                at = time.perf_counter()
                append()
                taken.append(time.perf_counter() - at)
            with open(writing, "w", encoding="ascii") as out:
                out.write(f"{disk.syncs} " + " ".join(f"{one:.6f}" for one in taken))
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    syncs = 0
    times: list[float] = []
    for reading in pipes:
        with open(reading, encoding="ascii") as said:
            first, *rest = said.read().split()
        syncs += int(first)
        times.extend(float(one) for one in rest)
        os.wait()
    return len(times) / seconds, syncs / len(times), sorted(times)[len(times) * 99 // 100] * 1_000


def main() -> None:
    """Rounds interleaved, medians printed."""
    given = [*sys.argv[1:], "", "", "", ""]
    seconds, rounds, sync_ms = float(given[0] or 1), int(given[1] or 3), float(given[2] or 0)
    path = tempfile.mkdtemp(prefix="append-", dir=given[3] or None)
    FileLog(f"{path}/log", disk=SystemDisk(), clock=HostClock(), limits=PRODUCTION, create=True).close()
    print("processes    one lock        log   ratio   syncs an append   p99 one lock   p99 log")
    for processes in PROCESSES:
        found = [[run(make, path, processes, seconds, sync_ms) for make in (one_lock, the_log)] for _ in range(rounds)]
        plain, log = [statistics.median(one[0] for one in side) for side in zip(*found, strict=True)]
        shared = statistics.median(one[1][1] for one in found)
        tails = [statistics.median(one[side][2] for one in found) for side in (0, 1)]
        print(
            f"{processes:9} {plain:9.0f}/s {log:9.0f}/s {log / plain:7.2f} {shared:17.2f}"
            f" {tails[0]:11.1f} ms {tails[1]:6.1f} ms"
        )
    shutil.rmtree(path)


if __name__ == "__main__":
    main()
