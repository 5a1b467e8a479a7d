"""``python -m tests.crash [NAME …] [--long] [--seed N]``: goals by hand, one row each."""

from __future__ import annotations

import argparse
import sys
import time

from tests.crash.goals import GOALS
from tests.reliability.row import Budget


def main() -> int:
    """Runs the goals that are named, or all; 1 when anything was not as promised or not proved to have struck."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    budget = Budget(long=given.long, seed=given.seed)
    bad = False
    for goal in GOALS:
        if given.names and goal.name not in given.names:
            continue
        begin = time.monotonic()
        row = goal.run(budget)
        took = time.monotonic() - begin
        bad |= bool(row.violations) or row.hits != row.points
        sys.stdout.write(
            f"{goal.name}: {row.points} points, {row.hits} hits, {row.violations} violations, {took:.1f} s\n"
        )
        for line in (*row.findings, *row.notes, *([f"skipped: {row.skipped}"] if row.skipped else [])):
            sys.stdout.write(f"    {line}\n")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
