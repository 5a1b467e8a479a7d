"""An exception at every executed line of an append, of the fold, of a recovery: as a signal or want of memory may."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import nereus_cli
from nereus_cli.disk import SystemDisk
from tests.reliability.row import Budget, Goal, Row, Tally
from tests.seams.allocations import Subject, subjects
from tests.seams.children import Tried, tried
from tests.seams.log_seams import found, require

HERE = os.path.dirname(nereus_cli.__file__)
POINTS_MAX = 200_000
SHARE = 16
FOLDED = 25


class StruckError(BaseException):
    """Nobody expects it, so nobody handles it."""


class NoMemoryError(MemoryError):
    """As the system's own, and known to be ours."""


KINDS: tuple[type[BaseException], ...] = (StruckError, NoMemoryError)


class Strike:
    """Raises at one executed line of the package, the tests' doubles left out; ``hit`` once it has."""

    def __init__(self, at: int, kind: type[BaseException]) -> None:
        self._left = at
        self._kind = kind
        self.hit = False

    def during(self, act: Callable[[], object]) -> BaseException | None:
        """What it ended with."""
        sys.settrace(self._called)
        try:
            act()
        except BaseException as error:  # noqa: BLE001 -- what it ended with is what is judged
            return error
        finally:
            sys.settrace(None)
        return None

    def _called(self, frame: FrameType, _event: str, _argument: object) -> Any:  # noqa: ANN401 -- a trace function
        name = frame.f_code.co_filename
        # What stands inside a call of the system cannot come before it: a descriptor would be lost by the sweep.
        ours = name.startswith(HERE) and "/testing/" not in name and frame.f_code is not SystemDisk.close.__code__
        return self._line if ours and not self.hit else None

    def _line(self, _frame: FrameType, event: str, _argument: object) -> Any:  # noqa: ANN401 -- a trace function
        if event == "line" and not self.hit:
            self._left -= 1
            if self._left < 0:
                self.hit = True
                raise self._kind
        return self._line


def at(subject: Subject, point: int) -> Tried:
    """Both kinds of exception at one line."""
    wrong = ""
    for kind in KINDS:
        act = subject.ready()
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        strike = Strike(point, kind)
        ended = strike.during(act)
        if not strike.hit:
            return Tried(point, hit=True, over=True)
        if ended is not None:
            ended.__traceback__ = ended.__context__ = ended.__cause__ = None
        more = found(lambda ended=ended, before=before: _judge(subject, ended, before))  # type: ignore[misc] # at once
        wrong = wrong or (more and f"{kind.__name__}: {more}")
    return Tried(point, hit=True, violation=wrong)


def _judge(subject: Subject, ended: BaseException | None, before: int) -> None:
    """An exception that ends the process is an answer; behind it, all that holds for want of memory holds."""
    subject.check(None if isinstance(ended, StruckError) and subject.name != "folding" else _as_memory(ended))
    gc.collect()
    if before:
        left = len(os.listdir("/proc/self/fd")) - before
        require(left <= 0, f"{left} descriptors stay open behind close()")


def _as_memory(ended: BaseException | None) -> BaseException | None:
    return MemoryError() if isinstance(ended, StruckError) else ended


def sweep(tally: Tally, subject: Subject, budget: Budget, share: int) -> None:
    """Every line of it, or about one of ``share``."""
    choose = budget.random(subject.name)
    # A fold is long, and each of its points traces all of it.
    share *= FOLDED if subject.name == "folding" else 1
    points = [point for point in range(POINTS_MAX) if share == 1 or not choose.randrange(share)]
    for one in tried(points, lambda point: at(subject, point)):
        if not one.over:
            tally.point(hit=one.hit, violation=one.violation and f"{subject.name}, line {one.point}: {one.violation}")


def run(budget: Budget) -> Row:
    """All subjects of the log and the fold."""
    tally = Tally()
    share = budget.of(SHARE, 1)
    with subjects() as made:
        for subject in made:
            if subject.name != "an owner":
                sweep(tally, subject, budget, share)
    said = "every line" if share == 1 else f"1 of {share} lines"
    tally.notes.append(f"{said}, of the fold 1 of {share * FOLDED}; both kinds at each")
    return tally.row()


GOALS = (
    Goal(
        name="lines",
        promise="whatever line an exception comes at, locks and descriptors are given back and the log stays sound",
        run=run,
        seconds=12,
    ),
)
