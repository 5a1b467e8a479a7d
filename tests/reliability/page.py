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


def table(goals: Iterable[Goal], measured: Mapping[str, Measured], *, long: bool, when: str) -> str:
    """The rows of one ledger, with what was noted beside them."""
    rows, notes = [], []
    for goal in goals:
        one = measured.get(goal.name)
        if one is None:
            continue
        option = " LONG=1" if long else ""
        command = f"`make reliability GOAL={goal.name}{option} SEED={one.seed}`"
        if one.row.skipped:
            counts = f"skipped: {one.row.skipped} | | "
        else:
            counts = f"{one.row.points:,} | {one.row.hits:,} | {one.row.violations:,}"
        rows.append(f"| {goal.name} | {goal.promise} | {counts} | {one.seed} | {one.seconds:.0f} | {command} |")
        notes += [f"- {goal.name}: {note}" for note in (*one.row.notes, *one.row.findings)]
    where = f"Python {platform.python_version()} on {platform.system()} {platform.release()}"
    return "\n".join([f"Measured {when} with {where}.", "", _HEAD, *rows, "", *notes])


def replaced(text: str, new: str, *, long: bool) -> str:
    """The page with one of its tables changed."""
    start, end = markers(long=long)
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}\n\n{new}\n\n{end}{after}"
