"""A shop for the cases: what others met with their tools, tried on ours from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.world import Case, Moved
from tests.e2e.calls import Caller


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    """A store that is not there yet, one caller, any number of daemons."""
    tmp_path.chmod(0o700)
    with Caller(tmp_path / "store", tmp_path) as caller:
        opened = Case(tmp_path, caller)
        yield opened
        opened.close()


@pytest.fixture
def moved(case: Case) -> Iterator[Moved]:
    """Commands that see another time."""
    clock = Moved(case)
    yield clock
    clock.close()
