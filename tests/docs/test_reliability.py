"""The page on reliability: every goal has its row, nothing in it was violated, and each test it names exists."""

from __future__ import annotations

import re

import pytest

from tests.mutants.table import MUTANTS
from tests.reliability.goals import goals
from tests.reliability.page import PAGE, Measured, markers, replaced, table
from tests.reliability.row import Row
from tests.tidy.source import ROOT

TEXT = PAGE.read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))


def rows(*, long: bool) -> list[list[str]]:
    start, end = markers(long=long)
    part = TEXT[TEXT.index(start) : TEXT.index(end)]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[1:]]


def test_names_of_goals_are_unique() -> None:
    names = [goal.name for goal in goals()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
def test_every_goal_has_its_row_and_was_reached(long: bool) -> None:
    """An hour is not always to be had: the long ledger may lack some, and lists what it has in the same order."""
    found = {row[0]: row for row in rows(long=long)}
    assert list(found) == [goal.name for goal in goals() if not long or goal.name in found]
    assert found
    for name, row in found.items():
        if not row[2].startswith("skipped"):
            points, hits, violations = (int(cell.replace(",", "")) for cell in row[2:5])
            assert points == hits > 0, name
            assert violations == 0, name


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_each_test_that_is_named_exists(file: str, test: str) -> None:
    assert f"def {test}(" in (ROOT / file).read_text("utf-8")


def test_the_faults_are_many_and_each_names_its_test() -> None:
    part = TEXT[TEXT.index("## Faults") : TEXT.index("## What is not tried")]
    faults = [line for line in part.splitlines() if line.startswith("| ") and "::" in line]
    assert len(faults) >= 15
    assert len(NAMED) >= 15


def test_the_mutant_of_the_example_exists() -> None:
    (name,) = re.findall(r"make mutant NAME=(\S+)", TEXT)
    assert name in {mutant.name for mutant in MUTANTS}


def test_writing_a_ledger_changes_that_table_alone() -> None:
    goal = goals()[0]
    measured = {goal.name: Measured(goal.name, Row(points=2, hits=2, notes=("seen",)), 3.4, 7)}
    new = replaced(TEXT, table([goal], measured, long=False, when="2026-01-01"), long=False)
    _, end = markers(long=False)
    assert new[new.index(end) :] == TEXT[TEXT.index(end) :]
    assert f"| {goal.name} | {goal.promise} | 2 | 2 | 0 | 7 | 3 |" in new
    assert f"- {goal.name}: seen" in new
    kept = replaced(new, table(goals()[:2], {}, long=False, when="2026-01-02", before=new), long=False)
    assert f"| {goal.name} | {goal.promise} | 2 | 2 | 0 | 7 | 3 |" in kept, "what was not measured keeps its row"
    assert f"- {goal.name}: seen" in kept
    skipped = {goal.name: Measured(goal.name, Row(skipped="no root"), 0.1, 7)}
    assert "skipped: no root" in table([goal], skipped, long=True, when="2026-01-01")
