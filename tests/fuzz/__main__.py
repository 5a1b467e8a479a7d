"""Fuzzing by hand:

python -m tests.fuzz GOAL [--long] [--seed N]       one goal
python -m tests.fuzz GOAL --executions N            as many inputs as said
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.goals import GOALS, fuzzed
from tests.reliability.row import Budget


def main() -> int:
    """0 when nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("goal", choices=[goal.name for goal in GOALS])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--executions", type=int)
    given = parser.parse_args()
    begun = time.monotonic()
    if given.executions:
        row = fuzzed(f"tests.fuzz.{given.goal.removeprefix('fuzz-')}:TARGETS", given.executions, str(given.seed))
    else:
        goal = next(goal for goal in GOALS if goal.name == given.goal)
        row = goal.run(Budget(long=given.long, seed=given.seed))
    seconds = time.monotonic() - begun
    sys.stdout.write(f"{row.points} inputs, {row.violations} violations, {seconds:.1f} s\n")
    for line in (*row.findings, *row.notes):
        sys.stdout.write(f"  {line}\n")
    return 1 if row.violations else 0


if __name__ == "__main__":
    sys.exit(main())
