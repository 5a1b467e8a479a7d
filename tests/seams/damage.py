"""Damage to every byte, every length, every sector of every file of a log: found, named, and never made worse."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import TINY
from nereus_cli.log import frame, segment
from nereus_cli.ports import CorruptLogError, NewerFormatError, OwnerHead
from nereus_cli.testing import Fault, FaultDisk
from tests.log.world import Ledger, fast_directory, open_log, rebooted
from tests.reliability.row import Budget, Goal, Row, Tally
from tests.seams.log_seams import found, require

MASKS = (0x01, 0x80, 0xFF)
SECTOR = 512
SHARE = 2
LIMITS = msgspec.structs.replace(TINY, segment_bytes_max=8_193)
SMALL = ("mark/durable", "syncing")


class Log:
    """Three segments, one of them made for a failed sync, with two epochs of an owner, a mark and a note.

    ``files`` are their bytes; ``stale`` what the files were before the last append."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.path = top / "log"
        ledger = Ledger()
        log = open_log(self.path, create=True, limits=LIMITS)
        ledger.append(log, ledger.payloads(2, 20))
        ledger.own(log, ledger.payloads(2, 20), OwnerHead(0, 0))
        log.close()
        for boot in (1, 1):
            fails = FaultDisk(SystemDisk(), faults=(Fault(at=1, only="sync_data", error=5),))
            log = open_log(self.path, disk=fails, boot=boot, limits=LIMITS)
            ledger.append(log, ledger.payloads(2, 20))
            log.close()
        log = open_log(self.path, limits=LIMITS)
        ledger.own(log, ledger.payloads(2, 20), OwnerHead(4, 1))
        self.stale = contents(self.path)
        ledger.append(log, ledger.payloads(1, 20))
        log.close()
        self.acknowledged = dict(ledger.acknowledged)
        self.files = contents(self.path)
        self.last = max(self.acknowledged)
        self.proven = self._proven()

    def _proven(self) -> int:
        """What the frames and headers prove, without the mark: all but what was appended last."""
        newest = max(name for name in self.files if name.endswith(segment.SUFFIX))
        header = segment.decode(self.files[newest], newest)
        frames = frame.scan(self.files[newest], segment.HEADER_BYTES, header.place, header.seed)
        return max([header.base - 1, header.through, *(one.synced_through for one in frames)])

    def damaged(self, name: str, data: bytes) -> Path:
        """A copy in which one file holds something else."""
        path = self.top / "again"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.path, path)
        rebooted(path)
        if name in SMALL and name != SMALL[0]:
            (path / name).write_bytes(data)
        elif name in SMALL:
            # Where the mark's inode stands, the copy's own belongs, unless that is what is damaged.
            good, now = self.files[name], (path / name).read_bytes()
            same = len(good) == len(data)
            mixed = bytes(d if d != g else n for d, g, n in zip(data, good, now, strict=True)) if same else data
            (path / name).write_bytes(mixed)
        else:
            (path / name).write_bytes(data)
        return path


def contents(path: Path) -> dict[str, bytes]:
    """Every file, by its name below."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def flips(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Every byte, with each mask."""
    for at, byte in enumerate(data):
        for mask in MASKS:
            yield f"byte {at} ^ {mask:#04x}", data[:at] + bytes([byte ^ mask]) + data[at + 1 :]


def cuts(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Every length."""
    for size in range(len(data)):
        yield f"cut to {size}", data[:size]


def sectors(log: Log, name: str) -> Iterator[tuple[str, bytes]]:
    """Every sector zeroed, exchanged with each other one, and as it was before the last append."""
    data, before = log.files[name], log.stale.get(name, b"")
    places = range(0, len(data), SECTOR)
    for at in places:
        sector = data[at : at + SECTOR]
        yield f"sector {at} zeroed", data[:at] + bytes(len(sector)) + data[at + SECTOR :]
        old = before[at : at + SECTOR]
        if old != sector:
            yield f"sector {at} stale", data[:at] + old.ljust(len(sector), b"\0") + data[at + SECTOR :]
        for other in places:
            if other > at and len(data[other : other + SECTOR]) == SECTOR:
                swapped = bytearray(data)
                swapped[at : at + SECTOR], swapped[other : other + SECTOR] = data[other : other + SECTOR], sector
                yield f"sectors {at} and {other} swapped", bytes(swapped)


def check(log: Log, path: Path, name: str, boot: int) -> None:
    """What was acknowledged is read as it was, or named as unreadable; what is damaged is not touched."""
    before = contents(path)
    read: dict[int, bytes] = {}
    refusal: Exception | None = None
    opened = None
    try:
        opened = open_log(path, boot=boot, limits=LIMITS, wait=0.2)
        for record in opened.read(0):
            read[record.position] = record.payload
    except (CorruptLogError, NewerFormatError) as error:
        refusal = error
    except FileNotFoundError as error:
        refusal = error if name.endswith(segment.SUFFIX) else None
    if isinstance(refusal, CorruptLogError):
        require(bool(refusal.file), "damage without a file")
    for position, payload in read.items():
        require(log.acknowledged.get(position) == payload, f"position {position} reads {payload!r:.30}")
    if refusal is None:
        sure = log.last if boot == 1 and name not in SMALL else log.proven
        require(len(read) >= sure, f"{len(read)} records are read of {sure}, and nobody says that any is missing")
    elif opened is not None:
        _untouched(before, path)
    if opened is not None:
        opened.close()


def _untouched(before: dict[str, bytes], path: Path) -> None:
    now = contents(path)
    changed = [one for one in before if one.endswith(segment.SUFFIX) and now.get(one) != before[one]]
    require(not changed, f"a damaged log was touched: {changed}")


def sweep(tally: Tally, log: Log, budget: Budget, share: int) -> None:
    """Every kind of damage to every file, in the boot of its mark and in another one."""
    choose = budget.random("damage")
    for name in [*sorted(one for one in log.files if one.endswith(segment.SUFFIX)), *SMALL]:
        kinds = (flips(log.files[name]), cuts(log.files[name]))
        for what, data in (one for kind in kinds for one in kind):
            if share == 1 or not choose.randrange(share):
                _point(tally, log, name, what, data, 1 + choose.randrange(2))
        for what, data in sectors(log, name):
            for boot in (1, 2):
                _point(tally, log, name, what, data, boot)


def _point(tally: Tally, log: Log, name: str, what: str, data: bytes, boot: int) -> None:
    path = log.damaged(name, data)
    wrong = found(lambda: check(log, path, name, boot))
    tally.point(hit=data != log.files[name], violation=wrong and f"{name}, {what}, boot {boot}: {wrong}")


def run(budget: Budget) -> Row:
    """All of it; the short budget draws among bytes and lengths."""
    tally = Tally()
    share = budget.of(SHARE, 1)
    with fast_directory() as top:
        sweep(tally, Log(top), budget, share)
    whole = "sectors whole" if share > 1 else "whole"
    tally.notes.append(f"{whole}, 1 of {share} bytes and lengths" if share > 1 else whole)
    return tally.row()


GOALS = (
    Goal(
        name="damage",
        promise="whatever byte, length or sector is damaged, it is found and named, and never made worse",
        run=run,
        seconds=15,
    ),
)
