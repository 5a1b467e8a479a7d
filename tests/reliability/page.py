"""docs/reliability.md: what people wrote stays, the two tables between their markers are made of what was measured."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from tests.reliability.row import Goal, Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
_COLUMNS = ("goal", "what is promised", "points", "hits", "violations", "seed", "seconds", "by hand")
_HEAD = f"| {' | '.join(_COLUMNS)} |\n|---|---|--:|--:|--:|--:|--:|---|"


class Measured(msgspec.Struct, frozen=True):
    """One goal as it was run."""

    name: str
    row: Row
    seconds: float
    seed: int


def markers(*, long: bool) -> tuple[str, str]:
    """The lines between which a table stands."""
    kind = "long" if long else "short"
    return f"<!-- {kind} ledger -->", f"<!-- end of the {kind} ledger -->"


def table(goals: Iterable[Goal], measured: Mapping[str, Measured], *, long: bool, when: str, before: str = "") -> str:
    """The rows of one ledger, with what was noted beside them. ``before`` is the page as it is: what was not measured
    now keeps its row."""
    rows, notes = [], []
    old = before.partition(markers(long=long)[0])[2].partition(markers(long=long)[1])[0].splitlines()
    for goal in goals:
        one = measured.get(goal.name)
        if one is None:
            rows += [line for line in old if line.startswith(f"| {goal.name} |")]
            notes += [line for line in old if line.startswith(f"- {goal.name}: ")]
            continue
        rows.append(_row(goal, one, long=long))
        notes += [f"- {goal.name}: {note}" for note in (*one.row.notes, *one.row.findings)]
    where = f"Python {platform.python_version()} on {platform.system()} {platform.release()}"
    return "\n".join([f"Measured {when} with {where}.", "", _HEAD, *rows, "", *notes])


def _row(goal: Goal, one: Measured, *, long: bool) -> str:
    command = f"`make reliability GOAL={goal.name}{' LONG=1' if long else ''} SEED={one.seed}`"
    counts = f"{one.row.points:,} | {one.row.hits:,} | {one.row.violations:,}"
    if one.row.skipped:
        counts = f"skipped: {one.row.skipped} | | "
    return f"| {goal.name} | {goal.promise} | {counts} | {one.seed} | {one.seconds:.0f} | {command} |"


def replaced(text: str, new: str, *, long: bool) -> str:
    """The page with one of its tables changed."""
    start, end = markers(long=long)
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}\n\n{new}\n\n{end}{after}"
