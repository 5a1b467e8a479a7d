"""The simulation as goals of the ledger: years without a violation, every rare state reached, one trace everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.reliability.row import Budget, Goal, Row, Tally
from tests.sim.minimal import smallest
from tests.sim.run import Report, simulate

YEARS_A_RUN = 1.0
SOMETIMES = (
    "EIO from sync_data",
    "Expire",
    "LateHold",
    "a conflict was answered",
    "a door lost in a power cut",
    "a full disk refused a write",
    "a keeper could not be started",
    "a keeper died with children",
    "a keeper killed",
    "a owner frozen",
    "a owner killed",
    "a person said give-up",
    "a person said not-published",
    "a person said published",
    "a person said replay",
    "a person said retry",
    "a segment poisoned",
    "a segment rotated",
    "a torn tail kept aside",
    "a writer frozen",
    "a writer killed",
    "admission STALE",
    "damage was reported",
    "medium pulled and put back",
    "not queued",
    "not queued: a lock",
    "outcome DOOR_CLOSED",
    "outcome NO_EVIDENCE",
    "outcome NO_RESOURCES",
    "outcome STOPPED",
    "outcome TIMED_OUT",
    "power cut",
    "rejected TOO_LATE_PUBLISHING",
    "rejected TOO_LATE_UNCERTAIN",
    "rejected VERSION_CONFLICT",
    "report attempts.adopted",
    "report clock.step",
    "report log.refused",
    "report owner.lost",
    "report owner.uncertain",
    "rows lost or set back",
    "suspend",
    "the clock set back",
    "the owner lease was refused",
    "the same command again",
    "uncertain",
)
"""Rare states: a set of runs in which one never came up proves less than its years say, and fails."""
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_SETUP_S = 240


def years(budget: Budget) -> Row:
    """As many simulated years as the budget allows, one run a year; each run has a seed and features of its own."""
    tally, seen, calls, records, effects = Tally(), Counter[str](), 0, 0, 0
    count = budget.of(20, 500)
    for number in range(count):
        report = simulate(budget.seed * 10_000 + number, YEARS_A_RUN)
        seen += report.seen
        calls, records, effects = calls + report.calls, records + report.records, effects + report.effects
        tally.point(hit=True, violation=_violation(report))
    missing = [what for what in SOMETIMES if not seen[what]]
    if missing:
        tally.violations += len(missing)
        tally.findings.append(f"never happened: {', '.join(missing)}")
    tally.notes.append(f"{count} simulated years: {calls:,} calls, {records:,} records, {effects:,} effects")
    tally.notes.append(f"{len(SOMETIMES)} rare states, each reached; the rarest: {_rarest(seen)}")
    return tally.row()


def _violation(report: Report) -> str:
    if not report.failure:
        return ""
    off = smallest(report)
    without = f" OFF={','.join(sorted(off))}" if off else ""
    return f"make simulate SEED={report.seed} YEARS={report.years:g}{without}: {report.failure}"


def _rarest(seen: Counter[str]) -> str:
    return ", ".join(f"{what} ({count})" for count, what in sorted((seen[what], what) for what in SOMETIMES)[:4])


def pythons(budget: Budget) -> Row:
    """The same seeds under other hash seeds and on every Python that is found give the same trace."""
    tally = Tally()
    seeds = [budget.seed * 10_000 + number for number in range(budget.of(2, 20))]
    wanted = [simulate(seed, 0.3).trace for seed in seeds]
    found: list[str] = []
    for version in _PYTHONS:
        python = _python(version, make=budget.long)
        if python is None:
            continue
        found.append(version)
        for hash_seed in ("0", "1"):
            said = _traces(python, seeds, hash_seed)
            for seed, trace, other in zip(seeds, wanted, said, strict=True):
                same = trace == other
                tally.point(hit=True, violation="" if same else f"seed {seed} on {version}: {other}, not {trace}")
    tally.notes.append(f"on Python {', '.join(found)}")
    return tally.row()


def _traces(python: str, seeds: list[int], hash_seed: str) -> list[str]:
    code = "import sys; from tests.sim.run import simulate; print(*(simulate(int(s), 0.3).trace for s in sys.argv[1:]))"
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": hash_seed}
    ran = subprocess.run(
        [python, "-c", code, *map(str, seeds)],
        env=environment, cwd=root, capture_output=True, text=True, check=False, timeout=_SETUP_S,
    )  # fmt: skip
    said = ran.stdout.split()
    return said if len(said) == len(seeds) else [ran.stderr.strip()[-200:] or "nothing"] * len(seeds)


def _python(version: str, *, make: bool) -> str | None:
    """This interpreter, or another one that can run the simulation, with what it needs installed beside the project:
    with the long budget it is installed, with the short one an environment that is there is used."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    made = _place(version) / "bin" / "python"
    if made.exists():
        return str(made)
    found = (_installed(version), shutil.which(f"python{version}")) if make else ()
    return next((env for other in found if other is not None and (env := _equipped(other, version)) is not None), None)


def _place(version: str) -> Path:
    return Path(__file__).resolve().parents[2] / ".venv" / f"simulation-{version}"


def _installed(version: str) -> str | None:
    """One that a version manager keeps."""
    root = Path(os.environ.get("PYENV_ROOT", Path("~root" if os.geteuid() == 0 else "~").expanduser() / ".pyenv"))
    return next((str(path) for path in sorted(root.glob(f"versions/{version}.*/bin/python"))), None)


def _equipped(python: str, version: str) -> str | None:
    """An environment with the locked packages the simulation needs; None if it cannot be made here."""
    place, lock = _place(version), Path(__file__).resolve().parents[2] / ".ci" / "locks" / "dev.lock"
    made = place / "bin" / "python"
    quiet = ("-qq", "--disable-pip-version-check", "--require-hashes")
    start = time.monotonic()
    for step in ((python, "-m", "venv", str(place)), (str(made), "-m", "pip", "install", *quiet, "-r", str(lock))):
        try:
            left = max(_SETUP_S - (time.monotonic() - start), 1)
            subprocess.run(step, check=True, capture_output=True, timeout=left)
        except (OSError, subprocess.SubprocessError):
            shutil.rmtree(place, ignore_errors=True)
            return None
    return str(made)


GOALS = (
    Goal(
        name="simulation",
        promise="Whatever happens to disk, clock and processes, I1-I9, I11, I13 and I14 hold at every step.",
        run=years,
        seconds=60,
    ),
    Goal(
        name="simulation-pythons",
        promise="One seed is one trace, whatever the Python and its hash seed: a failure can be replayed anywhere.",
        run=pythons,
        seconds=20,
    ),
)
