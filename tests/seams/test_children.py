"""What kills a child is a finding, and the points behind it are tried all the same; so for memory and for lines."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

import pytest

from nereus_cli.log.frame import seed_of
from tests.reliability.row import Budget, Tally
from tests.seams import allocations, lines
from tests.seams.allocations import Subject, missing
from tests.seams.children import Tried, tried

NO_HOOKS = pytest.mark.skipif(bool(missing()), reason=missing() or "-")


def _work(point: int) -> Tried:
    if point == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return Tried(point, hit=True, over=point == 3)


def test_a_child_that_dies_is_named_and_replaced() -> None:
    found = list(tried(range(10), _work))
    assert [one.point for one in found] == [0, 1, 2, 3]
    assert [one.violation for one in found] == ["", "the process ended: SIGKILL", "", ""]


def test_a_harness_that_fails_is_named_and_ends(capfd: pytest.CaptureFixture[str]) -> None:
    (one,) = tried(range(5), lambda _: Tried(*[]))
    assert one.broken
    assert one.violation
    assert "TypeError" in capfd.readouterr().err


def _swallowing() -> Subject:
    """It says nothing of what it could not do."""
    made: list[list[int]] = []

    def act() -> None:
        try:
            made.append([1] * 100)
        except MemoryError:
            return

    def check(ended: BaseException | None) -> None:
        if ended is None and not made:
            raise AssertionError("nothing was made, and nobody says so")

    def ready() -> Callable[[], object]:
        made.clear()
        return act

    return Subject("swallowing", ready, check)


@NO_HOOKS
def test_want_of_memory_that_is_kept_quiet_is_noticed() -> None:
    tally = Tally()
    allocations.sweep(tally, _swallowing(), Budget(), 1)
    assert tally.hits == tally.points > 0
    assert tally.violations


def test_an_exception_that_is_kept_quiet_is_noticed() -> None:
    made: list[int] = []

    def act() -> None:
        with contextlib.suppress(BaseException):
            made.append(seed_of(b"salt"))

    def check(ended: BaseException | None) -> None:
        if ended is None and not made:
            raise AssertionError("nothing was made, and nobody says so")

    def ready() -> Callable[[], object]:
        made.clear()
        return act

    tally = Tally()
    lines.sweep(tally, Subject("swallowing", ready, check), Budget(), 1)
    assert tally.hits == tally.points > 0
    assert tally.violations
