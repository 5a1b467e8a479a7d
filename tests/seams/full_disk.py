"""The disk is full at every byte: of what is appended, of a batch, of a rotation, of a repair, of a log's beginning."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

from nereus_cli.disk import SystemDisk
from nereus_cli.ports import EnqueueUncertainError, NotQueuedError
from nereus_cli.testing import Fault
from tests.log.world import fast_directory, open_log
from tests.reliability.row import Budget, Goal, Row, Tally
from tests.seams.copies import Before
from tests.seams.log_seams import found, require
from tests.seams.scenarios import (
    BEFORE_SYNC,
    HALF,
    Scenario,
    append_over_the_limit,
    append_over_two_segments,
    append_twice,
    died,
    nearly_full,
    nothing_yet,
    own,
    some_records,
)

EVER = 1 << 40
SHARE = 9
SCENARIOS = (
    Scenario("appending", some_records, append_twice),
    Scenario("owning", some_records, own),
    Scenario("a batch over two segments", some_records, append_over_two_segments),
    Scenario("rotating", nearly_full, append_over_the_limit),
    Scenario("a poisoned successor", died(BEFORE_SYNC), append_twice),
    Scenario("cutting half a frame", died(HALF), append_twice),
    Scenario("finishing a rotation", died(Fault(at=2, only="sync_data"), full=True), append_twice),
    Scenario("adopting in a new boot", some_records, append_twice, boot=2),
    Scenario("founding", nothing_yet, append_twice, create=True),
)


class SmallDisk(SystemDisk):
    """Takes ``limit`` bytes, of the last write the part that fits, and then no more. Bytes over others cost nothing."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.refused = 0
        self.written = self.needed = 0
        self.largest = self.top = 0

    def lift(self) -> None:
        """There is room again."""
        self.limit, self.needed, self.top = EVER, self.written, self.largest

    def write_at(self, fd: int, data: bytes, offset: int) -> int:
        new = max(offset + len(data) - max(self.size(fd), offset), 0)
        room = self.limit - self.written
        if new > room:
            self.refused += 1
            fits = len(data) - new + room
            if fits <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data, new = data[:fits], room
        self.written += new
        self.largest = max(self.largest, offset + len(data))
        return super().write_at(fd, data, offset)


class LimitedDisk(SystemDisk):
    """The system's own refusal: while ``limit`` is set, no file grows beyond it. Counts what was refused."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.refused = 0

    def lift(self) -> None:
        """There is room again."""
        self.limit = EVER

    def write_at(self, fd: int, data: bytes, offset: int) -> int:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, hard))
        try:
            taken = super().write_at(fd, data, offset)
        except OSError as error:
            self.refused += error.errno == errno.EFBIG
            raise
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.refused += taken < len(data)
        return taken


def try_on(before: Before, disk: SmallDisk | LimitedDisk) -> str:
    """One run on a disk that is soon full, then more with room; what did not hold, or nothing."""
    path = before.copy()
    try:
        return found(lambda: _run(before, path, disk))
    finally:
        shutil.rmtree(path.parent)


def _run(before: Before, path: Path, disk: SmallDisk | LimitedDisk) -> None:
    scenario, ledger, log = before.scenario, before.ledger_again(), None
    try:
        log = open_log(path, disk=disk, boot=scenario.boot, create=scenario.create, wait=0.2)
        scenario.act(log, ledger)
    except (NotQueuedError, EnqueueUncertainError, OSError):
        pass
    disk.lift()
    if log is not None:
        acknowledged = len(ledger.acknowledged)
        ledger.append(log, ledger.payloads(1))
        require(len(ledger.acknowledged) == acknowledged + 1, "with room again, the same log takes nothing")
    other = open_log(path, boot=scenario.boot, create=scenario.create, wait=0.2)
    ledger.check(other)
    torn = [one for one in other.verify().findings if "torn tail, which" in one.what]
    require(not torn, f"something torn stays: {torn}")
    other.close()
    if log is not None:
        log.close()


def sweep(tally: Tally, before: Before, budget: Budget, share: int) -> None:
    """Both ways to be full, at one of ``share`` bytes."""
    choose = budget.random(before.scenario.name)
    plain = SmallDisk(EVER)
    wrong = try_on(before, plain)
    tally.point(hit=True, violation=wrong and f"{before.scenario.name}, with room: {wrong}")
    for room in range(plain.needed):
        if share > 1 and choose.randrange(share):
            continue
        _point(tally, before, SmallDisk(room), f"after {room} bytes")
    for limit in _limits(before, plain):
        if share > 1 and choose.randrange(share):
            continue
        _point(tally, before, LimitedDisk(limit), f"files of at most {limit} bytes")


def _limits(before: Before, plain: SmallDisk) -> Iterator[int]:
    """Sizes at which some file of the plain run stops growing."""
    yield from range(min(plain.top, 700))
    old = max((path.stat().st_size for path in (before.top / "x").rglob("*.seg")), default=700)
    yield from range(max(old - 8, 700), plain.top)


def _point(tally: Tally, before: Before, disk: SmallDisk | LimitedDisk, what: str) -> None:
    wrong = try_on(before, disk)
    tally.point(hit=bool(disk.refused), violation=wrong and f"{before.scenario.name}, {what}: {wrong}")


def run(budget: Budget) -> Row:
    """All scenarios; the short budget draws some of the bytes."""
    tally = Tally()
    share = budget.of(SHARE, 1)
    with fast_directory() as top:
        for scenario in SCENARIOS:
            sweep(tally, Before(top, scenario), budget, share)
    tally.notes.append("whole" if share == 1 else f"1 of {share} bytes")
    return tally.row()


GOALS = (
    Goal(
        name="full-disk",
        promise="wherever the disk gets full, acknowledged is acknowledged, nothing torn stays, room is all it takes",
        run=run,
        seconds=8,
    ),
)
