"""The sweep of the verbs notices a fault that is planted in what it sweeps."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.cli import exits
from nereus_cli.cli.sending import Sender
from nereus_cli.testing import FaultDisk
from tests.log.world import fast_directory
from tests.reliability.row import Budget, Row, Tally
from tests.seams.faults import Plan
from tests.seams.verb_seams import Template, sweep
from tests.seams.verbs import COPIED, EMPTY, HEALTHY, READS, WRITES, Ground, Line, founded

SCHEDULE = next(line for line in WRITES if line.name == "schedule")
SHOW = next(line for line in READS if line.name == "show the newest")


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        (path / "original").mkdir()
        founded(path / "original")
        yield path


def swept(top: Path, line: Line, ground: Ground, plan: Plan) -> Row:
    tally = Tally()
    room = top / "room"
    room.mkdir()
    sweep(tally, Template(room, top / "original", line, ground), plan, Budget())
    return tally.row()


@pytest.mark.parametrize(("line", "ground"), [(SCHEDULE, HEALTHY), (SCHEDULE, EMPTY), (SHOW, COPIED)])
def test_the_unbroken_verbs_pass(top: Path, line: Line, ground: Ground) -> None:
    row = swept(top, line, ground, Plan(errors=1, calls=4, looks=8))
    assert (row.violations, row.findings, row.hits) == (0, (), row.points)


def test_a_sync_that_syncs_nothing_is_noticed(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FaultDisk, "sync_data", lambda self, fd: self._call("sync_data", self._inner.size, fd))
    assert swept(top, SCHEDULE, HEALTHY, Plan(errors=1, looks=20)).violations


def test_a_wrong_status_is_noticed(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "_PASSING", frozenset({errno.EAGAIN}))
    assert swept(top, SCHEDULE, HEALTHY, Plan(errors=3, looks=20)).violations


def test_uncertain_called_not_queued_is_noticed(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "UNCERTAIN", exits.LATER)
    monkeypatch.setattr(Sender, "_repeat_line", lambda *_: None)
    assert swept(top, SCHEDULE, HEALTHY, Plan(errors=3, looks=20)).violations
