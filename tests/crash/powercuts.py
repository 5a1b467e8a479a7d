"""Real power cuts: a file system is told to stop in the middle of everything, and is mounted again."""

from __future__ import annotations

from typing import Final

import msgspec

from tests.crash import mounts
from tests.reliability.row import Budget, Goal, Row


def power_cuts(budget: Budget) -> Row:
    """Cuts under appenders, on each kind of file system that can be made here."""
    why = mounts.why_not()
    if why:
        return Row(skipped=why)
    said = mounts.module_apart(
        "tests.crash.cutting", str(budget.seed), str(budget.of(50, 1_500)), seconds=budget.of(240, 1_800)
    )
    return msgspec.json.decode(said, type=Row)


GOALS: Final = (
    Goal(
        name="power-cuts",
        promise="the power goes on ext4 and xfs: what was acknowledged before is there when they are mounted again",
        run=power_cuts,
        seconds=10,
    ),
)
