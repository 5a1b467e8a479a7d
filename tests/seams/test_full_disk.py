"""The sweep of full disks notices a fault that is planted in what it sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.log import commit
from nereus_cli.log.handle import Handle
from nereus_cli.ports import LogError, NotQueuedError
from tests.log.world import fast_directory
from tests.reliability.row import Budget, Row, Tally
from tests.seams.copies import Before
from tests.seams.full_disk import SCENARIOS, sweep

APPENDING = SCENARIOS[0]


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


def swept(top: Path) -> Row:
    tally = Tally()
    sweep(tally, Before(top, APPENDING), Budget(), 5)
    return tally.row()


def test_the_unbroken_log_passes(top: Path) -> None:
    row = swept(top)
    assert (row.violations, row.findings, row.hits) == (0, (), row.points)


def test_a_torn_frame_that_is_left_is_noticed(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def left(_handle: Handle, _data: bytes, error: OSError) -> LogError:
        return NotQueuedError("left", errno=error.errno or 0)

    monkeypatch.setattr(commit, "_taken_back", left)
    monkeypatch.setattr(commit, "mend", lambda *_: None)
    assert swept(top).violations
