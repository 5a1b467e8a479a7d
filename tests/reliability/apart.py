"""A goal in a process of its own: what it patches, traces, forks and leaves behind is nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import msgspec

from tests.reliability.page import Measured
from tests.reliability.row import Budget, Row
from tests.tidy.source import PACKAGE, ROOT

_LONG_S_MAX = 3_600
_SHORT_S_MAX = 600


def held(row: Row) -> bool:
    """Whether a goal was reached, or could not be tried here."""
    return bool(row.skipped) or (row.points > 0 and row.violations == 0 and row.hits == row.points)


def run_apart(name: str, budget: Budget) -> Measured:
    """What came of the goal with that name; a harness that fails itself is a violation."""
    start = time.monotonic()
    command = [sys.executable, "-m", "tests.reliability", name, "--row", "--seed", str(budget.seed)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(PACKAGE.parent), str(ROOT)))}
    try:
        ran = subprocess.run(
            [*command, *(["--long"] if budget.long else [])],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            check=False,
            timeout=_LONG_S_MAX if budget.long else _SHORT_S_MAX,
        )
    except subprocess.TimeoutExpired:
        return Measured(name, _failed("it took too long"), time.monotonic() - start, budget.seed)
    try:
        row = msgspec.json.decode(ran.stdout.splitlines()[-1], type=Row)
    except (IndexError, msgspec.DecodeError):
        row = _failed(ran.stderr.decode("utf-8", "backslashreplace").strip()[-500:] or f"status {ran.returncode}")
    return Measured(name, row, time.monotonic() - start, budget.seed)


def _failed(why: str) -> Row:
    return Row(points=1, hits=1, violations=1, findings=(f"the harness itself failed: {why}",))
