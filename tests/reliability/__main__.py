"""`python -m tests.reliability`: runs goals, each in a process of its own, and writes the ledger.

python -m tests.reliability [GOAL …] [--long] [--seed N] [--write] [--list]
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from tests.reliability.goals import goals
from tests.reliability.page import PAGE, Measured, replaced, table
from tests.reliability.row import Budget, Goal, Row

_LONG_S_MAX = 3_600
_SHORT_S_MAX = 600


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
    measured = {goal.name: _measured(goal, budget) for goal in chosen}
    if given.write:
        when = dt.datetime.now(dt.UTC).date().isoformat()
        kept = goals() if not given.names else chosen
        PAGE.write_text(replaced(PAGE.read_text(), table(kept, measured, long=given.long, when=when), long=given.long))
    return 0 if all(map(held, (one.row for one in measured.values()))) else 1


def held(row: Row) -> bool:
    """Whether a goal was reached, or could not be tried here."""
    return bool(row.skipped) or (row.points > 0 and row.violations == 0 and row.hits == row.points)


def say(line: str) -> None:
    """To whoever waits, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _measured(goal: Goal, budget: Budget) -> Measured:
    start = time.monotonic()
    command = [sys.executable, "-m", "tests.reliability", goal.name, "--row", "--seed", str(budget.seed)]
    limit = _LONG_S_MAX if budget.long else _SHORT_S_MAX
    root = Path(__file__).resolve().parents[2]
    try:
        ran = subprocess.run(
            [*command, *(["--long"] if budget.long else [])], cwd=root, capture_output=True, check=False, timeout=limit
        )
        row = msgspec.json.decode(ran.stdout.splitlines()[-1], type=Row)
    except (subprocess.TimeoutExpired, IndexError, msgspec.DecodeError) as error:
        row = Row(points=1, hits=1, violations=1, findings=(f"the harness itself failed: {type(error).__name__}",))
    one = Measured(goal.name, row, time.monotonic() - start, budget.seed)
    said = f"skipped: {row.skipped}" if row.skipped else f"{row.points:,} points, {row.hits:,} hits"
    say(f"{goal.name:20} {said}, {row.violations} violations, {one.seconds:.0f} s")
    for line in (*row.findings, *row.notes):
        say(f"{'':20} {line}")
    return one


if __name__ == "__main__":
    sys.exit(main())
