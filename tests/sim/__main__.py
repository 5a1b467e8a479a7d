"""`python -m tests.sim SEED [YEARS] [--off a,b]`: one run by hand."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence

from tests.sim.run import simulate
from tests.sim.trouble import SWITCHES


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one seed, or several, and prints what came of each. An unknown feature, or no time at all, is a usage
    error: a run that tries something else than was asked for would prove nothing."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--years", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=1, help="that many seeds, from SEED on")
    parser.add_argument("--off", default="", help="features to leave out, with commas")
    given = parser.parse_args(argv)
    off = frozenset(filter(None, given.off.split(",")))
    unknown = sorted(off.difference(SWITCHES))
    if unknown:
        parser.error(f"--off: no such feature: {', '.join(unknown)}; there are {', '.join(SWITCHES)}")
    if not 0 < given.years < math.inf:
        parser.error("--years: a number above 0")
    failed = 0
    for seed in range(given.seed, given.seed + given.runs):
        start = time.monotonic()
        report = simulate(seed, given.years, off=off)
        failed += bool(report.failure)
        print(  # noqa: T201 - it prints
            f"seed {seed}: {report.trace} {report.calls} calls, {report.records} records, {report.effects} effects, "
            f"{time.monotonic() - start:.1f} s {report.failure}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
