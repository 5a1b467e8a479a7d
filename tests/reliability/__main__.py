"""`python -m tests.reliability`: runs goals, each in a process of its own, and writes the ledger.

python -m tests.reliability [GOAL …] [--long] [--seed N] [--write] [--list]
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys

import msgspec

from tests.reliability.apart import held, run_apart
from tests.reliability.goals import goals
from tests.reliability.page import PAGE, Measured, replaced, table
from tests.reliability.row import Budget


def main() -> int:
    """0 when everything that could run held and every fault struck."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability")
    parser.add_argument("names", nargs="*", metavar="GOAL")
    parser.add_argument("--long", action="store_true", default=os.environ.get("LONG") == "1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write what was measured into docs/reliability.md")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--row", action="store_true", help="one goal, in this process; its row as JSON")
    given = parser.parse_args()
    chosen = [goal for goal in goals() if not given.names or goal.name in given.names]
    unknown = set(given.names) - {goal.name for goal in chosen}
    if unknown:
        parser.error(f"no such goal: {', '.join(sorted(unknown))}")
    if given.list:
        for goal in chosen:
            say(f"{goal.name:20} {goal.promise}")
        return 0
    budget = Budget(long=given.long, seed=given.seed)
    if given.row:
        sys.stdout.buffer.write(msgspec.json.encode(chosen[0].run(budget)) + b"\n")
        return 0
    measured = {goal.name: _told(run_apart(goal.name, budget)) for goal in chosen}
    if given.write:
        when = dt.datetime.now(dt.UTC).date().isoformat()
        page = PAGE.read_text()
        new = table(goals(), measured, long=given.long, when=when, before=page)
        PAGE.write_text(replaced(page, new, long=given.long))
    return 0 if all(map(held, (one.row for one in measured.values()))) else 1


def say(line: str) -> None:
    """To whoever waits, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _told(one: Measured) -> Measured:
    """Says what came of a goal."""
    row = one.row
    said = f"skipped: {row.skipped}" if row.skipped else f"{row.points:,} points, {row.hits:,} hits"
    say(f"{one.name:20} {said}, {row.violations} violations, {one.seconds:.0f} s")
    for line in (*row.findings, *row.notes):
        say(f"{'':20} {line}")
    return one


if __name__ == "__main__":
    sys.exit(main())
