"""Real file systems whose power goes in the middle of everything, and disks that fail, forget and lie."""

from __future__ import annotations

import shutil
from typing import Final

import msgspec

from tests.crash import mounts
from tests.reliability.row import Budget, Goal, Row


def power_cuts(budget: Budget) -> Row:
    """Cuts under appenders, on each kind of file system that can be made here."""
    why = mounts.why_not()
    if why:
        return Row(skipped=why)
    said = mounts.module_apart(
        "tests.crash.cutting", str(budget.seed), str(budget.of(50, 1_500)), seconds=budget.of(240, 1_800)
    )
    return msgspec.json.decode(said, type=Row)


def device(budget: Budget) -> Row:
    """A disk that fails, one that forgets what was not flushed, and one that lies."""
    why = mounts.why_not()
    missing = [tool for tool in ("nbdkit", "nbdfuse") if shutil.which(tool) is None]
    if why or missing:
        return Row(skipped=why or f"not installed: {', '.join(missing)}")
    why = mounts.why_no_disk()
    if why:
        return Row(skipped=why)
    said = mounts.module_apart(
        "tests.crash.devices", str(budget.seed), str(budget.of(24, 400)), seconds=budget.of(240, 1_800)
    )
    return msgspec.json.decode(said, type=Row)


GOALS: Final = (
    Goal(
        name="power-cuts",
        promise="the power goes on ext4 and xfs: what was acknowledged before is there when they are mounted again",
        run=power_cuts,
        seconds=10,
    ),
    Goal(
        name="device",
        promise="a disk that fails or forgets costs nothing acknowledged; one that lies is found out",
        run=device,
        seconds=6,
    ),
)
