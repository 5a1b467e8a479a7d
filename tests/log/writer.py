"""A process that appends, for the tests that need several: python -m tests.log.writer LOG NAME COUNT [options].

One line per record on standard output, before and after: ``T payload``, then ``A position payload``,
``N payload`` (not queued) or ``U signal payload`` (uncertain).
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
from pathlib import Path

import msgspec

from nereus_cli.clock import HostClock
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import TINY
from nereus_cli.log.files import FileLog
from nereus_cli.ports import EnqueueUncertainError, NotQueuedError


class StoppingDisk(SystemDisk):
    """Stops or kills its process at the Nth call of a name."""

    def __init__(self, call: str, at: int, number: int) -> None:
        self.call, self.at, self.number = call, at, number

    def _strike(self, call: str) -> None:
        if call == self.call:
            self.at -= 1
            if self.at == 0:
                os.kill(os.getpid(), self.number)

    def write_at(self, fd: int, data: bytes, offset: int) -> int:
        self._strike("write_at")
        return super().write_at(fd, data, offset)

    def sync_data(self, fd: int) -> None:
        self._strike("sync_data")
        super().sync_data(fd)

    def try_lock(self, fd: int) -> bool:
        taken = super().try_lock(fd)
        self._strike("try_lock")
        return taken

    def unlock(self, fd: int) -> None:
        self._strike("unlock")
        super().unlock(fd)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=Path)
    parser.add_argument("name")
    parser.add_argument("count", type=int)
    parser.add_argument("--segment", type=int, default=TINY.segment_bytes_max)
    parser.add_argument("--wait", type=float, default=5.0)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--call", default="")
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--signal", type=int, default=signal.SIGSTOP)
    given = parser.parse_args()
    log = FileLog(
        str(given.log),
        disk=StoppingDisk(given.call, given.at, given.signal),
        clock=HostClock(),
        limits=msgspec.structs.replace(TINY, segment_bytes_max=given.segment),
        append_wait_s=given.wait,
        sync_wait_s=given.wait,
        create=True,
    )
    sizes = random.Random(given.name)
    for number in range(given.count):
        payload = f"{given.name}.{number}.".encode() + b"x" * sizes.randrange(given.size)
        say(b"T", payload)
        try:
            (placed,) = log.append([payload])
        except NotQueuedError as error:
            say(b"N", str(error.holder).encode(), payload)
        except EnqueueUncertainError as error:
            say(b"U", str(error.signal or error.holder).encode(), payload)
        else:
            say(b"A", str(placed.position).encode(), payload)


def say(*words: bytes) -> None:
    sys.stdout.buffer.write(b" ".join(words) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
