"""Memory runs out at every allocation of an append, of the fold, of a recovery, of an owner's start."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import TINY
from nereus_cli.fold import Fold, Nothing
from nereus_cli.ports import EnqueueUncertainError, LogRecord, NotQueuedError, ProjectionStalledError
from nereus_cli.projection.overlay import Overlay
from nereus_cli.testing import ManualClock
from tests.fold import canned
from tests.log.world import Ledger, fast_directory, open_log
from tests.reliability.row import Budget, Goal, Row, Tally
from tests.seams.children import Tried, tried
from tests.seams.copies import Before
from tests.seams.log_seams import found, require
from tests.seams.owning import SCRIPT, World
from tests.seams.scenarios import SCENARIOS, Scenario
from tests.seams.site import Keeper
from tests.seams.turn_seams import LIVE, Template, finished, successor

POINTS_MAX = 100_000
SHARE = 24
RARER = 12
FAILING = (1, 12)
"""How many allocations fail in a row. Not all for ever: an interpreter with no memory at all for an exception reuses
one and the same, and may then follow its context for ever, in code that is not ours."""
NO_MEMORY = MemoryError | SystemError
"""SystemError is how the interpreter itself says that a C function of its own failed and forgot to say why."""
KINDS = (
    "appending",
    "owning",
    "rotating",
    "poisoning, a holder died",
    "cutting half a frame",
    "adopting in a new boot",
)


class Subject(msgspec.Struct):
    """Something that is done with little memory. ``ready`` is called with plenty of it and gives what is to be done;
    ``check`` is told what that ended with, and raises AssertionError. Of a ``rarer`` one that much less is tried."""

    name: str
    ready: Callable[[], Callable[[], object]]
    check: Callable[[BaseException | None], None]
    rarer: int = 1


def strike(start: int, act: Callable[[], object], failing: int) -> tuple[BaseException | None, bool]:
    """Does it while the ``failing`` allocations behind ``start`` others fail. Returns what it ended with, and whether
    the first of them came at all: if not, it is still waiting for the next one."""
    testcapi = importlib.import_module("_testcapi")
    ended: BaseException | None = None
    waiting = False
    testcapi.set_nomemory(start, start + failing)
    try:
        act()
    except BaseException as error:  # noqa: BLE001 -- what it ended with is what is judged
        ended = error
    if failing == 1:
        try:
            for _ in itertools.repeat(None, start + 2):
                bytes(700)
        except MemoryError:
            waiting = True
    testcapi.remove_mem_hooks()
    if ended is not None:
        # What its frames hold would still be there for the next one, which comes from another process in life.
        ended.__traceback__ = ended.__context__ = ended.__cause__ = None
        gc.collect()
    return ended, not waiting


def at(subject: Subject, start: int) -> Tried:
    """Both variants at one allocation."""
    gc.disable()
    wrong = ""
    for failing in FAILING:
        act = subject.ready()
        ended, came = strike(start, act, failing)
        if not came:
            return Tried(start, hit=True, over=True)
        more = found(lambda ended=ended: subject.check(ended))  # type: ignore[misc] # bound at once
        wrong = wrong or (more and f"{failing} failing: {more}")
    gc.collect()
    return Tried(start, hit=True, violation=wrong)


class OnLog:
    """A scenario of the log with little memory: another process must find the log sound while this one lives on."""

    def __init__(self, top: Path, scenario: Scenario) -> None:
        self._before = Before(top, scenario)
        self._scenario = scenario
        self._ledger = Ledger()
        self._path = self._before.copy()

    def ready(self) -> Callable[[], object]:
        shutil.rmtree(self._path.parent, ignore_errors=True)
        self._path = self._before.copy()
        self._ledger = self._before.ledger_again()
        boot, create = self._scenario.boot, self._scenario.create
        self._log = open_log(self._path, boot=boot, create=create, wait=0.2)
        return lambda: self._scenario.act(self._log, self._ledger)

    def check(self, ended: BaseException | None) -> None:
        allowed = NotQueuedError | EnqueueUncertainError | NO_MEMORY | OSError
        require(ended is None or isinstance(ended, allowed), f"ended with {ended!r}")
        other = open_log(self._path, boot=self._scenario.boot, wait=0.2)
        self._ledger.number += 1_000
        try:
            self._ledger.check(other)
        finally:
            other.close()
            self._log.close()


class OnFold:
    """The fold of a log of every kind of record: it ends where it should, or says that it could not."""

    def __init__(self) -> None:
        self._records: list[LogRecord] = canned.read()
        self._digest = canned.state().digest()
        self._fold = Fold(Nothing(), TINY)

    def ready(self) -> Callable[[], object]:
        self._fold = Fold(Nothing(), TINY)
        return self._apply

    def check(self, ended: BaseException | None) -> None:
        require(ended is None or isinstance(ended, NO_MEMORY), f"ended with {ended!r}")
        if ended is None:
            digest = Overlay(None, self._fold.batch).digest()
            require(digest == self._digest, "folded, but into another state")

    def _apply(self) -> None:
        for start in range(0, len(self._records), 5):
            self._fold.apply(self._records[start : start + 5])


class OnOwner:
    """An owner's start, its first turns and its stop; the next one ends what it began."""

    def __init__(self, top: Path) -> None:
        self._template = Template(top)
        self._base = top
        self._world = self._fresh()

    def ready(self) -> Callable[[], object]:
        shutil.rmtree(self._base, ignore_errors=True)
        self._world = self._fresh()
        keeper = Keeper(self._world.site)
        return lambda: self._world.own(SystemDisk(), keeper, LIVE)

    def check(self, ended: BaseException | None) -> None:
        allowed = NotQueuedError | ProjectionStalledError | NO_MEMORY | OSError
        require(ended is None or isinstance(ended, allowed), f"ended with {ended!r}")
        finished(successor(self._world, self._base, self._world.site, self._world.clock), surely=True)

    def _fresh(self) -> World:
        self._base = self._template.fresh()
        now = self._template.clock.read()
        clock = ManualClock(now.latest, now.boot_id)
        return World(self._base, (*SCRIPT[1:3], SCRIPT[-1]), self._template.site.copy(lost=False), clock, None)


@contextlib.contextmanager
def subjects() -> Iterator[list[Subject]]:
    """Everything that is tried, in a directory of its own."""
    with fast_directory() as top:
        made: list[Subject] = []
        for scenario in SCENARIOS:
            if scenario.name in KINDS:
                log = OnLog(top, scenario)
                made.append(Subject(scenario.name, log.ready, log.check))
        fold = OnFold()
        made.append(Subject("folding", fold.ready, fold.check))
        owner = OnOwner(top)
        made.append(Subject("an owner", owner.ready, owner.check, rarer=RARER))
        yield made


def sweep(tally: Tally, subject: Subject, budget: Budget, share: int) -> None:
    """Every allocation of it, or about one of ``share``; both variants are one point each."""
    choose = budget.random(subject.name)
    share *= subject.rarer
    points = [point for point in range(POINTS_MAX) if share == 1 or not choose.randrange(share)]
    for _ in range(3):
        subject.ready()()
    for one in tried(points, lambda point: at(subject, point)):
        if not one.over:
            tally.point(hit=one.hit, violation=one.violation and f"{subject.name}, {one.point}: {one.violation}")


def missing() -> str:
    """Why nothing can be tried here, or the empty string."""
    try:
        testcapi: Any = importlib.import_module("_testcapi")
    except ImportError:
        return "this Python has no _testcapi"
    return "" if hasattr(testcapi, "set_nomemory") else "this Python's _testcapi has no set_nomemory"


def run(budget: Budget) -> Row:
    """All subjects."""
    why = missing()
    if why:
        return Row(skipped=why)
    tally = Tally()
    share = budget.of(SHARE, 1)
    with subjects() as made:
        for subject in made:
            sweep(tally, subject, budget, share)
    tally.notes.append(" and ".join(f"{failing} failing" for failing in FAILING))
    said = "every allocation" if share == 1 else f"1 of {share} allocations"
    tally.notes.append(f"{said}, of an owner 1 of {RARER * share}")
    return tally.row()


GOALS = (
    Goal(
        name="allocations",
        promise="whatever allocation fails, the answer is true, the interpreter lives and the log stays sound",
        run=run,
        seconds=15,
    ),
)
