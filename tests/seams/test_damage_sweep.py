"""The sweep of damage notices a fault that is planted in what it sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.log import repair
from tests.log.world import fast_directory
from tests.reliability.row import Budget, Row, Tally
from tests.seams.damage import Log, sweep


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


def swept(top: Path, share: int) -> Row:
    tally = Tally()
    log = Log(top)
    assert sum(name.endswith(".seg") for name in log.files) >= 3
    sweep(tally, log, Budget(), share)
    return tally.row()


def test_the_unbroken_log_passes(top: Path) -> None:
    row = swept(top, 60)
    assert (row.violations, row.findings, row.hits) == (0, (), row.points)


def test_cutting_what_was_durable_is_noticed(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "_refuse_corruption", lambda *_: None)
    monkeypatch.setattr(repair, "refuse_loss", lambda *_: None)
    assert swept(top, 30).violations
