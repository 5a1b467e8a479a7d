"""Points tried in children: what kills one is a finding, and the next one goes on behind it."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

import msgspec

POINT_S = 20.0
"""A point that takes longer hangs."""


class Tried(msgspec.Struct, frozen=True):
    """What came of a point. ``over``: its fault had nothing left to strike, nor will those of later points; ``broken``:
    the harness itself failed there, and said why on standard error."""

    point: int
    hit: bool
    violation: str = ""
    over: bool = False
    broken: bool = False


def tried(points: Iterable[int], work: Callable[[int], Tried]) -> Iterator[Tried]:
    """Each point once, in a child that is replaced when it dies; ends behind the first that is ``over``."""
    left = list(points)
    while left:
        done = 0
        for one in _child(left, work):
            done += 1
            yield one
            if one.over or one.broken:
                return
        left = left[done:] if done else []


def _child(points: list[int], work: Callable[[int], Tried]) -> Iterator[Tried]:
    """The points that one child tries, the one that kills it included."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _live(points, work, writing)
    os.close(writing)
    number = 0
    over = False
    with os.fdopen(reading, "rb") as results:
        for line in results:
            number += 1
            one = Tried(**json.loads(line))
            over = over or one.over
            yield one
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if number < len(points) and not over:
        name = signal.Signals(-status).name if status < 0 else f"exit {status}"
        yield Tried(points[number], hit=True, violation=f"the process ended: {name}", broken=status > 0)


def _quiet(_unraisable: object) -> None:
    """What a generator cannot raise while it is thrown away is part of what was done to it."""


def _live(points: list[int], work: Callable[[int], Tried], writing: int) -> NoReturn:
    """A child's whole life. A point that hangs is ended by an alarm."""
    status = 0
    try:
        faulthandler.disable()
        sys.unraisablehook = _quiet
        sys.settrace(None)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for point in points:
            signal.setitimer(signal.ITIMER_REAL, POINT_S)
            one = work(point)
            os.write(writing, json.dumps(msgspec.structs.asdict(one)).encode() + b"\n")
            if one.over:
                break
    except BaseException:  # noqa: BLE001 -- a forked child must not go on as its parent
        traceback.print_exc()
        status = 1
    finally:
        os._exit(status)
