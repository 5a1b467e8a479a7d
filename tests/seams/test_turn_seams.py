"""The sweep of turns notices a fault that is planted in what it sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.engine.turns import Engine
from nereus_cli.testing import FaultDisk
from tests.log.world import fast_directory
from tests.reliability.row import Budget, Row, Tally
from tests.seams.faults import Plan
from tests.seams.turn_seams import Template, sweep

FEW = Plan(errors=1, looks=100, calls=20)


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


def swept(top: Path, plan: Plan = FEW) -> Row:
    tally = Tally()
    sweep(tally, Template(top), plan, Budget(), reboot=False)
    return tally.row()


def test_an_unbroken_owner_passes(top: Path) -> None:
    row = swept(top)
    assert (row.violations, row.findings, row.hits) == (0, (), row.points)


def test_a_sync_that_syncs_nothing_is_noticed(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FaultDisk, "sync_data", lambda self, fd: self._call("sync_data", self._inner.size, fd))
    assert any("admission is not durable" in finding for finding in swept(top).findings)


def test_an_owner_that_does_not_recover_is_noticed(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "recover", lambda _self: None)
    assert any("o1" in finding for finding in swept(top, Plan(errors=1, looks=200, calls=60)).findings)
