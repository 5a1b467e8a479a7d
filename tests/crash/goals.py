"""The goals that attack the installed command and the machine under it."""

from __future__ import annotations

from typing import Final

from tests.crash import enumerating, kills, powercuts, soaking
from tests.reliability.row import Goal

GOALS: Final[tuple[Goal, ...]] = (*kills.GOALS, *powercuts.GOALS, *enumerating.GOALS, *soaking.GOALS)
