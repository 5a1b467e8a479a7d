"""Every goal of the ledger, in the order of its page."""

from __future__ import annotations

from importlib import import_module

from tests.reliability.row import Goal

HARNESSES = ("sim", "seams", "crash", "mutants", "fuzz")


def goals() -> tuple[Goal, ...]:
    """All there are; names are unique."""
    found: list[Goal] = []
    for harness in HARNESSES:
        found += import_module(f"tests.{harness}.goals").GOALS
    return tuple(found)
