"""The seam sweep: every scenario once for each call it makes, with a crash or an error there."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from nereus_cli.disk import SystemDisk
from nereus_cli.log.files import FileLog
from nereus_cli.ports import LogError, OwnerHead
from nereus_cli.testing import CrashedError, Fault, FaultDisk, Medium, Nothing, Some
from nereus_cli.testing.medium import Choice
from tests.log.world import Ledger, fast_directory, open_log, rebooted


class Scenario(msgspec.Struct, frozen=True):
    """``prepare`` brings a log to where ``act`` begins; ``planned`` faults belong to the scenario itself."""

    name: str
    prepare: Callable[[Path, Ledger, Medium], None]
    act: Callable[[FileLog, Ledger], None]
    planned: tuple[Fault, ...] = ()
    boot: int = 1
    create: bool = False
    evict: bool = False


def nothing_yet(_path: Path, _ledger: Ledger, _medium: Medium) -> None:
    """No log is there."""


def some_records(path: Path, ledger: Ledger, medium: Medium) -> None:
    log = open_log(path, disk=FaultDisk(SystemDisk(), medium=medium), create=True)
    ledger.append(log, ledger.payloads(3))
    log.close()


def nearly_full(path: Path, ledger: Ledger, medium: Medium) -> None:
    log = open_log(path, disk=FaultDisk(SystemDisk(), medium=medium), create=True)
    ledger.append(log, ledger.payloads(2, 4_227))
    log.close()


def died(*faults: Fault, full: bool = False) -> Callable[[Path, Ledger, Medium], None]:
    """An appender that died there, behind some records."""

    def prepare(path: Path, ledger: Ledger, medium: Medium) -> None:
        (nearly_full if full else some_records)(path, ledger, medium)
        disk = FaultDisk(SystemDisk(), faults=faults, medium=medium)
        with contextlib.suppress(CrashedError):
            ledger.append(open_log(path, disk=disk), ledger.payloads(1))
        assert disk.crashed
        disk.forget()

    return prepare


def append_twice(log: FileLog, ledger: Ledger) -> None:
    ledger.append(log, ledger.payloads(1))
    ledger.append(log, ledger.payloads(3))


def append_over_the_limit(log: FileLog, ledger: Ledger) -> None:
    ledger.append(log, ledger.payloads(1, 700))
    ledger.append(log, ledger.payloads(1))


def own(log: FileLog, ledger: Ledger) -> None:
    ledger.own(log, ledger.payloads(4), OwnerHead(0, 0))


def look_then_append(log: FileLog, ledger: Ledger) -> None:
    log.bounds()
    log.barrier()
    durable = log.bounds().durable
    assert len(list(log.read(0))) >= durable
    ledger.append(log, ledger.payloads(1))


BEFORE_SYNC = Fault(at=1, only="sync_data")
SYNC_FAILS = Fault(at=1, only="sync_data", error=errno.EIO)
SCENARIOS = [
    Scenario("creating", nothing_yet, append_twice, create=True),
    Scenario("appending", some_records, append_twice),
    Scenario("owning", some_records, own),
    Scenario("rotating", nearly_full, append_over_the_limit),
    Scenario("poisoning, a sync failed", some_records, append_twice, (SYNC_FAILS,)),
    Scenario("poisoning, the pages are gone", some_records, append_twice, (SYNC_FAILS,), evict=True),
    Scenario("poisoning, an owner's pages are gone", some_records, own, (SYNC_FAILS,), evict=True),
    Scenario("poisoning, a holder died", died(BEFORE_SYNC), append_twice),
    Scenario("cutting half a frame", died(Fault(at=1, only="write_at", short=True)), append_twice),
    Scenario("finishing a rotation", died(Fault(at=2, only="sync_data"), full=True), append_twice),
    Scenario("adopting a successor", died(Fault(at=1, only="link", after=True), full=True), append_twice),
    Scenario("adopting in a new boot", some_records, append_twice, boot=2),
    Scenario("adopting a sealed segment", died(Fault(at=3, only="sync_data"), full=True), append_twice, boot=2),
    Scenario("adopting half a frame", died(Fault(at=1, only="write_at", short=True)), append_twice, boot=2),
    Scenario("adopting, the sync fails", some_records, append_twice, (SYNC_FAILS,), boot=2),
    Scenario("reading what a dead writer left", died(Fault(at=1, only="write_at", after=True)), look_then_append),
    Scenario("reading in a new boot", died(BEFORE_SYNC), look_then_append, boot=2),
]
WRITES = {"write_at"}
LOOKS = {"open_directory", "read_at", "size", "inode", "inode_of", "names"}
"""Calls that change nothing: to die before or behind one is to die behind or before its neighbour."""
FAULTS = {
    "dies before": Fault(at=0),
    "dies behind": Fault(at=0, after=True),
    "dies in the middle of a write": Fault(at=0, short=True),
    "fails": Fault(at=0, error=errno.EIO),
    "fails although it worked": Fault(at=0, error=errno.EIO, after=True),
    "is out of space": Fault(at=0, error=errno.ENOSPC, short=True),
    "fails for ever": Fault(at=0, error=errno.EIO, for_ever=True),
    "is out of space for ever": Fault(at=0, error=errno.EDQUOT, for_ever=True, short=True),
}


class Run:
    """One run of a scenario with one more fault, and everything that is to be true behind it."""

    def __init__(self, base: Path, scenario: Scenario, faults: tuple[Fault, ...]) -> None:
        self.base = base
        self.path = base / "log"
        self.scenario = scenario
        self.ledger = Ledger()
        self.medium = Medium(str(base))
        scenario.prepare(self.path, self.ledger, self.medium)
        self.disk = FaultDisk(
            SystemDisk(), faults=(*faults, *scenario.planned), medium=self.medium, evict=scenario.evict
        )
        try:
            log = open_log(self.path, disk=self.disk, boot=scenario.boot, create=scenario.create, wait=0.2)
            scenario.act(log, self.ledger)
        except (CrashedError, OSError, LogError):
            pass
        self.calls = list(self.disk.calls)
        self.crashed = self.disk.crashed
        self.disk.forget()

    def check(self, seed: int) -> None:
        """The next process of the same boot finds a sound log, and so does the first one behind a power cut."""
        acknowledged = dict(self.ledger.acknowledged)
        choices: tuple[Choice, ...] = (Nothing(), Some(seed)) if self.crashed else (Some(seed),)
        for number, choice in enumerate(choices):
            cut = self.base.parent / f"cut{number}"
            self.medium.after_cut(str(cut), choice)
            if acknowledged or (cut / "log").exists():
                rebooted(cut / "log")
                self._sound(cut / "log", acknowledged, boot=9)
        self._sound(self.path, acknowledged, boot=self.scenario.boot)

    def _sound(self, path: Path, acknowledged: dict[int, bytes], boot: int) -> None:
        ledger = Ledger()
        ledger.number = 1_000
        ledger.acknowledged = dict(acknowledged)
        ledger.refused = list(self.ledger.refused) if path == self.path else []
        log = open_log(path, boot=boot, create=self.scenario.create)
        ledger.check(log)
        log.close()


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_call_of_every_scenario_may_fail(scenario: Scenario, kind: str) -> None:
    with fast_directory() as top:
        (top / "plain" / "x").mkdir(parents=True)
        plain = Run(top / "plain" / "x", scenario, ())
        plain.check(0)
        hit = 0
        for at, name in enumerate(plain.calls, 1):
            fault = msgspec.structs.replace(FAULTS[kind], at=at)
            if name not in WRITES if fault.short else name in LOOKS and (fault.after or not fault.error):
                continue
            base = top / str(at) / "x"
            base.mkdir(parents=True)
            run = Run(base, scenario, (fault,))
            assert run.disk.hits, f"call {at} ({name}) was not hit"
            hit += 1
            try:
                run.check(at)
            except BaseException as error:
                error.add_note(f"call {at}: {name}, {run.calls[max(0, at - 6) : at + 12]}")
                raise
        assert hit
