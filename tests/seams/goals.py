"""The seam sweeps, all of them: in this process or in its children, hundreds of points a second."""

from __future__ import annotations

from tests.reliability.row import Goal
from tests.seams import allocations, damage, full_disk, lines, log_seams, turn_seams, verb_seams

GOALS: tuple[Goal, ...] = (
    *log_seams.GOALS,
    *verb_seams.GOALS,
    *turn_seams.GOALS,
    *full_disk.GOALS,
    *allocations.GOALS,
    *lines.GOALS,
    *damage.GOALS,
)
