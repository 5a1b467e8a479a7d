"""The sweep of the log notices a fault that is planted in what it sweeps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nereus_cli.log import room
from nereus_cli.log.locks import Lock
from nereus_cli.testing import FaultDisk
from tests.reliability.row import Budget, Tally
from tests.seams.faults import Plan
from tests.seams.log_seams import sweep
from tests.seams.scenarios import SCENARIOS

APPENDING = next(scenario for scenario in SCENARIOS if scenario.name == "appending")
ROTATING = next(scenario for scenario in SCENARIOS if scenario.name == "rotating")
FEW = Plan(errors=1, looks=8)


def _pretends(name: str) -> Callable[[FaultDisk, int], None]:
    """A call that says it is done and does nothing."""

    def call(self: FaultDisk, fd: int) -> None:
        self._call(name, self._inner.size, fd)

    return call


def test_a_sync_that_syncs_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FaultDisk, "sync_data", _pretends("sync_data"))
    tally = Tally()
    sweep(tally, APPENDING, FEW, Budget())
    assert tally.hits == tally.points
    assert tally.violations


def test_a_directory_that_is_never_synced_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        FaultDisk, "sync_directory", lambda self, fd: self._call("sync_directory", self._inner.size, fd)
    )
    tally = Tally()
    sweep(tally, ROTATING, FEW, Budget())
    assert tally.violations


def test_a_note_that_is_not_written_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.Room, "write_note", lambda _self, _note: None)
    tally = Tally()
    evicting = [scenario for scenario in SCENARIOS if scenario.evict]
    for scenario in evicting:
        sweep(tally, scenario, FEW, Budget())
    assert tally.violations


def test_a_lock_that_is_never_given_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lock, "free", lambda _self: None)
    tally = Tally()
    sweep(tally, APPENDING, Plan(errors=1, looks=50, calls=10), Budget())
    assert tally.violations


def test_the_unbroken_log_passes_and_a_seed_repeats_a_run() -> None:
    rows = []
    for _ in range(2):
        tally = Tally()
        sweep(tally, APPENDING, FEW, Budget(seed=7))
        rows.append(tally.row())
    assert rows[0] == rows[1]
    assert (rows[0].violations, rows[0].hits) == (0, rows[0].points)
