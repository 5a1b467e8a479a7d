"""Every goal of the ledger, with the budget that fits each run of the tests."""

from __future__ import annotations

import os

import pytest

from tests.reliability.goals import goals
from tests.reliability.row import Budget, Goal

SEED = int(os.environ.get("SEED", "1"))


ALL: list[Goal] = sorted(goals(), key=lambda goal: goal.seconds, reverse=True)


@pytest.mark.parametrize("goal", ALL, ids=lambda goal: goal.name)
def test_a_goal_is_reached(goal: Goal) -> None:
    row = goal.run(Budget(seed=SEED))
    if row.skipped:
        pytest.skip(row.skipped)
    assert row.findings == ()
    assert row.violations == 0
    assert row.hits == row.points > 0
