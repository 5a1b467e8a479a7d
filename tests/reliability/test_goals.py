"""Every goal of the ledger, with the budget that fits each run of the tests."""

from __future__ import annotations

import os
import subprocess
from functools import cache

import pytest

from tests.reliability.apart import run_apart
from tests.reliability.goals import goals
from tests.reliability.row import Budget, Goal
from tests.tidy.source import ROOT

SEED = os.environ.get("SEED")
ROTATING = frozenset({"mutants"})
"""Those of which each run tries a part that the next one does not."""


ALL: list[Goal] = sorted(goals(), key=lambda goal: goal.seconds, reverse=True)


def seed_of(goal: Goal) -> int:
    """The same for one commit, so that a red run is about the change; rotating parts go on with each commit."""
    if SEED is not None:
        return int(SEED)
    return commits() if goal.name in ROTATING else 1


@cache
def commits() -> int:
    """How many there are; 1 where there is no git to ask."""
    command = ["git", "rev-list", "--count", "HEAD"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return int(ran.stdout) if ran.returncode == 0 and ran.stdout.strip() else 1


@pytest.mark.parametrize("goal", ALL, ids=lambda goal: goal.name)
def test_a_goal_is_reached(goal: Goal) -> None:
    row = run_apart(goal.name, Budget(seed=seed_of(goal))).row
    if row.skipped:
        pytest.skip(row.skipped)
    assert row.findings == ()
    assert row.violations == 0
    assert row.hits == row.points > 0
