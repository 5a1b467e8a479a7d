"""Two processes, step by step: at each disk call of one, the other does something whole, or dies doing it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nereus_cli.disk import SystemDisk
from nereus_cli.log.files import FileLog
from nereus_cli.ports import LogError
from nereus_cli.testing import CrashedError, Fault, FaultDisk, Medium
from tests.log.world import Ledger, fast_directory, open_log
from tests.seams.scenarios import SCENARIOS, Scenario

WAIT_S = 0.0
CHOSEN = [
    scenario
    for scenario in SCENARIOS
    if scenario.name
    in {
        "appending",
        "rotating",
        "poisoning, a sync failed",
        "poisoning, the pages are gone",
        "finishing a rotation",
        "adopting in a new boot",
        "reading what a dead writer left",
    }
]


class Stepping(FaultDisk):
    """Before its Nth call, somebody else has a turn."""

    at = 0
    turn: Callable[[], None] = staticmethod(lambda: None)

    def _due(self, name: str, *, ahead: int = 0) -> Fault | None:
        if not ahead and len(self.calls) == self.at:
            self.at = 0
            self.turn()
        return super()._due(name, ahead=ahead)


class Other:
    """The other process: every turn opens the log anew, because its life is short."""

    def __init__(self, path: Path, ledger: Ledger, medium: Medium, boot: int) -> None:
        self.path = path
        self.ledger = ledger
        self.medium = medium
        self.boot = boot
        self.turns = 0

    def act(self, do: Callable[[FileLog, Ledger], None], *faults: Fault) -> None:
        self.turns += 1
        disk = FaultDisk(SystemDisk(), medium=self.medium, faults=faults)
        with contextlib.suppress(CrashedError, LogError):
            do(open_log(self.path, disk=disk, boot=self.boot, wait=WAIT_S), self.ledger)
        disk.forget()


def append(log: FileLog, ledger: Ledger) -> None:
    ledger.append(log, ledger.payloads(2))


def append_much(log: FileLog, ledger: Ledger) -> None:
    ledger.append(log, ledger.payloads(1, 5_000))


def look(log: FileLog, ledger: Ledger) -> None:
    bounds = log.bounds()
    found = [record.position for record in log.read(0)]
    assert found[: bounds.durable] == list(range(1, bounds.durable + 1))
    known = {position: payload for position, payload in ledger.acknowledged.items() if position <= bounds.durable}
    assert {record.position: record.payload for record in log.read(0) if record.position in known} == known


def sync(log: FileLog, _ledger: Ledger) -> None:
    log.barrier()


TURNS: dict[str, tuple[Callable[[FileLog, Ledger], None], tuple[Fault, ...]]] = {
    "appends": (append, ()),
    "appends much": (append_much, ()),
    "dies in a write": (append, (Fault(at=1, only="write_at", short=True),)),
    "dies before its sync": (append, (Fault(at=1, only="sync_data"),)),
    "dies behind its sync": (append, (Fault(at=1, only="sync_data", after=True),)),
    "fails to sync": (append, (Fault(at=1, only="sync_data", error=5),)),
    "reads": (look, ()),
    "syncs": (sync, ()),
}


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("scenario", CHOSEN, ids=lambda scenario: scenario.name)
def test_another_process_may_have_a_turn_at_every_call(top: Path, scenario: Scenario, turn: str) -> None:
    do, faults = TURNS[turn]
    at = 0
    while True:
        at += 1
        base = top / str(at)
        base.mkdir()
        medium, ledger = Medium(str(base)), Ledger()
        scenario.prepare(base / "log", ledger, medium)
        disk = Stepping(SystemDisk(), medium=medium, faults=scenario.planned, evict=scenario.evict)
        other = Other(base / "log", ledger, medium, scenario.boot)
        disk.at = at
        disk.turn = lambda other=other: other.act(do, *faults)  # type: ignore[misc]  # mypy takes no default here
        try:
            scenario.act(open_log(base / "log", disk=disk, boot=scenario.boot), ledger)
        except LogError as error:
            error.add_note(f"call {at}: {disk.calls[at - 1 : at + 4]}")
            raise
        calls = len(disk.calls)
        disk.forget()
        log = open_log(base / "log", boot=scenario.boot)
        try:
            ledger.check(log)
        except AssertionError as error:
            error.add_note(f"call {at}: {disk.calls[at - 3 : at + 4]}")
            raise
        log.close()
        if at > calls:
            break
        assert other.turns == 1
    assert at > 10
