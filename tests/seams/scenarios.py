"""Ways a log is written, read and mended: what is there first, and what is then done to it."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable
from pathlib import Path

import msgspec

from nereus_cli.disk import SystemDisk
from nereus_cli.log.files import FileLog
from nereus_cli.ports import OwnerHead
from nereus_cli.testing import CrashedError, Fault, FaultDisk, Medium
from tests.log.world import Ledger, open_log

Prepare = Callable[[Path, Ledger, Medium], None]


class Scenario(msgspec.Struct, frozen=True):
    """``prepare`` brings a log to where ``act`` begins; ``planned`` faults belong to the scenario itself."""

    name: str
    prepare: Prepare
    act: Callable[[FileLog, Ledger], None]
    planned: tuple[Fault, ...] = ()
    boot: int = 1
    create: bool = False
    evict: bool = False


def nothing_yet(_path: Path, _ledger: Ledger, _medium: Medium) -> None:
    """No log is there."""


def some_records(path: Path, ledger: Ledger, medium: Medium) -> None:
    """Three of them."""
    log = open_log(path, disk=FaultDisk(SystemDisk(), medium=medium), create=True)
    ledger.append(log, ledger.payloads(3))
    log.close()


def nearly_full(path: Path, ledger: Ledger, medium: Medium) -> None:
    """A segment that the next record brings over its limit."""
    log = open_log(path, disk=FaultDisk(SystemDisk(), medium=medium), create=True)
    ledger.append(log, ledger.payloads(2, 4_227))
    log.close()


def owned(path: Path, ledger: Ledger, medium: Medium) -> None:
    """The first epoch's records stand behind three others, and one more behind them."""
    some_records(path, ledger, medium)
    log = open_log(path, disk=FaultDisk(SystemDisk(), medium=medium))
    ledger.own(log, ledger.payloads(2), OwnerHead(0, 0))
    ledger.append(log, ledger.payloads(1))
    log.close()


def died(*faults: Fault, full: bool = False) -> Prepare:
    """An appender that died there, behind some records."""

    def prepare(path: Path, ledger: Ledger, medium: Medium) -> None:
        (nearly_full if full else some_records)(path, ledger, medium)
        disk = FaultDisk(SystemDisk(), faults=faults, medium=medium)
        with contextlib.suppress(CrashedError):
            ledger.append(open_log(path, disk=disk), ledger.payloads(1))
        if not disk.crashed:
            raise AssertionError("it was to die here")
        disk.forget()

    return prepare


def append_twice(log: FileLog, ledger: Ledger) -> None:
    """One record, then three at once."""
    ledger.append(log, ledger.payloads(1))
    ledger.append(log, ledger.payloads(3))


def append_over_the_limit(log: FileLog, ledger: Ledger) -> None:
    """The second one finds a full segment."""
    ledger.append(log, ledger.payloads(1, 700))
    ledger.append(log, ledger.payloads(1))


def append_over_two_segments(log: FileLog, ledger: Ledger) -> None:
    """More at once than one segment holds."""
    ledger.append(log, ledger.payloads(5, 2_600))


def own(log: FileLog, ledger: Ledger) -> None:
    """The first owner claims, then appends three more."""
    ledger.own(log, ledger.payloads(4), OwnerHead(0, 0))


def own_again(log: FileLog, ledger: Ledger) -> None:
    """The second owner."""
    ledger.own(log, ledger.payloads(3), OwnerHead(5, 1))


def look_then_append(log: FileLog, ledger: Ledger) -> None:
    """Everything a reader does, then one record."""
    log.bounds()
    log.barrier()
    durable = log.bounds().durable
    if len(list(log.read(0))) < durable:
        raise AssertionError(f"fewer than {durable} records can be read")
    ledger.append(log, ledger.payloads(1))


BEFORE_SYNC = Fault(at=1, only="sync_data")
SYNC_FAILS = Fault(at=1, only="sync_data", error=errno.EIO)
HALF = Fault(at=1, only="write_at", short=True)
SCENARIOS = (
    Scenario("creating", nothing_yet, append_twice, create=True),
    Scenario("appending", some_records, append_twice),
    Scenario("owning", some_records, own),
    Scenario("owning behind an owner", owned, own_again),
    Scenario("rotating", nearly_full, append_over_the_limit),
    Scenario("a batch over two segments", some_records, append_over_two_segments),
    Scenario("poisoning, a sync failed", some_records, append_twice, (SYNC_FAILS,)),
    Scenario("poisoning, the pages are gone", some_records, append_twice, (SYNC_FAILS,), evict=True),
    Scenario("poisoning, an owner's pages are gone", some_records, own, (SYNC_FAILS,), evict=True),
    Scenario("poisoning, a holder died", died(BEFORE_SYNC), append_twice),
    Scenario("poisoning, a holder died and an owner comes", died(BEFORE_SYNC), own),
    Scenario("cutting half a frame", died(HALF), append_twice),
    Scenario("finishing a rotation", died(Fault(at=2, only="sync_data"), full=True), append_twice),
    Scenario("adopting a successor", died(Fault(at=1, only="link", after=True), full=True), append_twice),
    Scenario("adopting in a new boot", some_records, append_twice, boot=2),
    Scenario("adopting, an owner comes in a new boot", owned, own_again, boot=2),
    Scenario("adopting a sealed segment", died(Fault(at=3, only="sync_data"), full=True), append_twice, boot=2),
    Scenario("adopting half a frame", died(HALF), append_twice, boot=2),
    Scenario("adopting, the sync fails", some_records, append_twice, (SYNC_FAILS,), boot=2),
    Scenario("reading", owned, look_then_append),
    Scenario("reading what a dead writer left", died(Fault(at=1, only="write_at", after=True)), look_then_append),
    Scenario("reading in a new boot", died(BEFORE_SYNC), look_then_append, boot=2),
)
