"""``python -m tests.seams [GOAL …] [--long] [--seed N]``: runs the sweeps by hand, one line each."""

from __future__ import annotations

import argparse
import sys
import time

from tests.reliability.row import Budget
from tests.seams.goals import GOALS


def main() -> int:
    """How many goals had a violation or a fault that did not strike."""
    parser = argparse.ArgumentParser(prog="python -m tests.seams")
    parser.add_argument("goal", nargs="*", help="all of them by default")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    bad = 0
    for goal in GOALS:
        if given.goal and goal.name not in given.goal:
            continue
        begun = time.monotonic()
        row = goal.run(Budget(long=given.long, seed=given.seed))
        figures = f"{row.points} points, {row.hits} hits, {row.violations} violations"
        took = f"{time.monotonic() - begun:.1f} s"
        sys.stdout.write(f"{goal.name}: {row.skipped or figures}, {took}; {'; '.join(row.notes)}\n")
        sys.stdout.write("".join(f"    {finding}\n" for finding in row.findings))
        sys.stdout.flush()
        bad += bool(row.violations or row.hits != row.points)
    return bad


if __name__ == "__main__":
    sys.exit(main())
