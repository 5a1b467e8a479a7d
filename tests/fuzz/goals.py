"""The fuzzing goals: inputs are tried in processes of their own, several seeds one after the other or side by side."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from tests.fuzz.guided import available, guided
from tests.fuzz.target import Seen
from tests.reliability.row import FINDINGS_MAX, Budget, Goal, Row, Tally

ROOT: Final = Path(__file__).parents[2]
CHILD_EXECUTIONS_MAX: Final = 2_500_000
LED: Final = {
    "frames": ("frame-scan", "frame-find", "segment-header"),
    "records": ("command, true hash", "keeper-wire", "evidence", "prepared"),
    "argv": ("instant", "duration", "split"),
}
"""Targets with enough branches of their own, by module, that being led to new ones pays: all, or one in turn."""
LED_EXECUTIONS: Final = (5_000, 300_000)
_SECONDS_EACH: Final = 1 / 1_000
_PATIENCE_S: Final = 60


def fuzzed(targets: str, executions: int, seed: str, workers: int = 1) -> Row:
    """Tries ``executions`` inputs on the targets at ``MODULE:NAME``. A child that dies, or goes on for ever, is a
    violation."""
    children = -(-executions // CHILD_EXECUTIONS_MAX)
    share = executions // children
    with ThreadPoolExecutor(workers) as pool:
        answers = list(pool.map(lambda number: _child(targets, share, f"{seed}.{number}"), range(children)))
    tally = Tally()
    taken = peak = 0
    for seen in answers:
        tally.points += seen.executions
        tally.hits += seen.executions
        tally.violations += seen.violations
        tally.findings += seen.findings
        taken, peak = taken + seen.taken, max(peak, seen.peak)
    tally.findings = tally.findings[:FINDINGS_MAX]
    heard = sum(times for seen in answers for times in seen.events.values())
    tally.notes.append(
        f"{taken} inputs were answered without a refusal; of those traced, one took at most {peak} bytes; "
        f"the audit hook heard {heard} events that no decoder may cause"
    )
    return tally.row()


def _child(targets: str, executions: int, seed: str) -> Seen:
    command = [sys.executable, "-m", "tests.fuzz.child", targets, str(executions), seed]
    try:
        ran = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_PATIENCE_S + executions * _SECONDS_EACH,
        )
    except subprocess.TimeoutExpired:
        return _broken(command, "it did not come to an end")
    try:
        return msgspec.json.decode(ran.stdout, type=Seen)
    except msgspec.DecodeError:
        said = ran.stderr.decode("utf-8", "replace").strip()
        return _broken(command, f"status {ran.returncode}: {said[-200:]}")


def _broken(command: Sequence[str], why: str) -> Seen:
    return Seen(violations=1, findings=[f"{' '.join(command[1:])}: {why}"])


def led(targets: str, names: Sequence[str], executions: int, seed: int, workers: int) -> Row:
    """Tries ``executions`` inputs on each of the targets named, led by what they reach."""
    with ThreadPoolExecutor(workers) as pool:
        answers = list(pool.map(lambda name: guided(targets, name, executions, seed, ROOT), names))
    tally = Tally()
    tally.points = tally.hits = sum(seen.executions for seen in answers)
    tally.violations = sum(seen.violations for seen in answers)
    tally.findings = [finding for seen in answers for finding in seen.findings]
    tally.notes.append(f"{tally.points} of them led by coverage (atheris): {', '.join(names)}")
    return tally.row()


def _goal(name: str, promise: str, module: str, short: int, long: int) -> Goal:
    targets = f"tests.fuzz.{module}:TARGETS"

    def run(budget: Budget) -> Row:
        workers = min(2, os.cpu_count() or 1) if budget.long else 1
        row = fuzzed(targets, budget.of(short, long), str(budget.seed), workers)
        if not available():
            return row
        names = LED[module] if budget.long else (LED[module][budget.seed % len(LED[module])],)
        return _together(row, led(targets, names, budget.of(*LED_EXECUTIONS), budget.seed, workers))

    return Goal(name=name, promise=promise, run=run, seconds=12)


def _together(one: Row, other: Row) -> Row:
    return Row(
        points=one.points + other.points,
        hits=one.hits + other.hits,
        violations=one.violations + other.violations,
        findings=(*one.findings, *other.findings)[:FINDINGS_MAX],
        notes=(*one.notes, *other.notes),
    )


GOALS: Final = (
    _goal(
        "fuzz-frames",
        "Whatever bytes stand in a log's files: a value that is written as it was read, or a documented refusal",
        "frames",
        1_200_000,
        36_000_000,
    ),
    _goal(
        "fuzz-records",
        "Whatever bytes a record, row, request or small file holds: a value that can be applied, or a refusal",
        "records",
        700_000,
        24_000_000,
    ),
    _goal(
        "fuzz-argv",
        "Whatever is typed: a value, help or a refusal; never a traceback, a hang, or a file that was not named",
        "argv",
        150_000,
        3_000_000,
    ),
)
