"""What the tests of the log share: a clock that is told the time, a ledger of what was answered, the invariants."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from nereus_cli.disk import SystemDisk
from nereus_cli.domain.instant import Reading
from nereus_cli.domain.limits import PRODUCTION, TINY, Limits
from nereus_cli.log import mark as marks
from nereus_cli.log import segment
from nereus_cli.log.files import FileLog
from nereus_cli.ports import (
    Appended,
    CommandLog,
    Disk,
    EnqueueUncertainError,
    FencedError,
    NotQueuedError,
    OwnerHead,
)

SMALL = msgspec.structs.replace(TINY, segment_bytes_max=9_216)
LARGE = PRODUCTION


class SetClock:
    """Advances by a microsecond with every reading; the boot is what it is told to be."""

    def __init__(self, boot: int = 1, now: int = 1_700_000_000_000_000_000) -> None:
        self.boot_id = boot.to_bytes(16, "little")
        self.now = now

    def read(self) -> Reading:
        self.now += 1_000
        return Reading(self.now, self.now, self.now, self.boot_id)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def open_log(
    path: Path,
    *,
    disk: Disk | None = None,
    boot: int = 1,
    limits: Limits = SMALL,
    create: bool = False,
    wait: float = 2.0,
) -> FileLog:
    return FileLog(
        str(path),
        disk=SystemDisk() if disk is None else disk,
        clock=SetClock(boot),
        limits=limits,
        append_wait_s=wait,
        sync_wait_s=wait,
        create=create,
        watch=False,
    )


@contextmanager
def fast_directory() -> Iterator[Path]:
    """A directory in memory where there is one: these tests count calls, they do not try the machine's disk."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="nereus-test-", dir=base))
    try:
        yield path
    finally:
        shutil.rmtree(path)


class Ledger:
    """What appends were answered."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.refused: list[bytes] = []
        self.uncertain: list[bytes] = []
        self.number = 0

    def payloads(self, count: int, size: int = 60) -> list[bytes]:
        """Payloads that nobody else has."""
        made = []
        for _ in range(count):
            self.number += 1
            made.append(b"%06d-" % self.number + b"x" * size)
        return made

    def append(self, log: CommandLog, payloads: Sequence[bytes]) -> None:
        """Appends and keeps the answer, whichever it is."""
        try:
            self.stood(payloads, log.append(payloads))
        except NotQueuedError:
            self.refused.extend(payloads)
        except EnqueueUncertainError:
            self.uncertain.extend(payloads)
        except BaseException:
            self.uncertain.extend(payloads)
            raise

    def own(self, log: CommandLog, payloads: Sequence[bytes], seen: OwnerHead) -> None:
        """Claims, then appends the rest as one batch."""
        try:
            writer = log.claim(seen, payloads[0])
            self.stood(payloads[:1], [Appended(writer.head.position, 0)])
            self.stood(payloads[1:], writer.append(payloads[1:]))
        except (NotQueuedError, FencedError):
            self.refused.extend(set(payloads).difference(self.acknowledged.values()))
        except BaseException as error:
            self.uncertain.extend(set(payloads).difference(self.acknowledged.values()))
            if not isinstance(error, EnqueueUncertainError):
                raise

    def stood(self, payloads: Sequence[bytes], placed: Sequence[Appended]) -> None:
        """These were acknowledged."""
        assert len(placed) == len(payloads)
        for one, payload in zip(placed, payloads, strict=True):
            assert one.position not in self.acknowledged
            self.acknowledged[one.position] = payload

    def check(self, log: FileLog) -> None:
        """The invariants: what was acknowledged stands, nothing refused is there, no hole, and the log works."""
        self.append(log, self.payloads(1))
        records = list(log.read(0))
        assert [record.position for record in records] == list(range(1, len(records) + 1))
        found = {record.position: record.payload for record in records}
        for position, payload in self.acknowledged.items():
            assert found.get(position) == payload, f"acknowledged at {position}, found {found.get(position)!r:.40}"
        stored = [record.payload for record in records]
        assert not set(stored).intersection(self.refused)
        assert max(self.acknowledged) == len(records)
        verification = log.verify()
        assert verification.sound, verification.findings
        assert verification.records == len(records)
        check_owners(log)


def check_owners(log: CommandLog) -> None:
    """Owner records form one chain."""
    prev = 0
    for record in log.read(0):
        if record.link is not None:
            assert record.link.prev == prev
            prev = record.position


def rebooted(path: Path) -> None:
    """Makes a directory copied out of a power cut look as the very same files after it: inodes do not change then."""
    file = path / "mark" / "durable"
    try:
        mark = marks.decode_mark(file.read_bytes())
    except FileNotFoundError:
        return
    if mark is not None:
        newest = path / segment.name_of(mark.ordinal)
        if newest.exists():
            file.write_bytes(marks.encode_mark(msgspec.structs.replace(mark, inode=newest.stat().st_ino)))
