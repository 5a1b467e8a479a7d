"""The near future in memory: a window over the timers of the projection, so that memory does not grow with
what is pending (I16)."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, nsmallest
from typing import Protocol

from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.message import Message

_AHEAD_NS = 600 * SECOND


class Timers(Protocol):
    """The timers that are stored."""

    def due(self, through: int, limit: int) -> Sequence[tuple[int, str]]:
        """(timer, message_id) of the earliest ones not above ``through``."""


class Timeline:
    """A heap of (timer, message_id). Entries may be out of date: whoever takes one looks at the message."""

    def __init__(self, limit: int) -> None:
        """Holds about ``limit`` entries that were loaded, besides those that changed since."""
        self._limit = limit
        self._heap: list[tuple[int, str]] = []
        self._loaded_through = -1
        self._cut_short = False

    def learn(self, message: Message) -> None:
        """A message changed: its timer belongs here if it lies inside the window."""
        if message.timer is not None and message.timer <= self._loaded_through:
            heappush(self._heap, (message.timer, message.message_id))
            if len(self._heap) > 2 * self._limit:
                self._narrow()

    def put_back(self, message: Message) -> None:
        """It was taken and nothing was decided. Beyond the window it is not kept: an entry from there would keep
        the next stretch from being loaded."""
        self.learn(message)

    def refill(self, now: int, timers: Timers) -> None:
        """Loads the next stretch: once the window is used up, if it was cut short; else when the present reaches
        its end."""
        if self._heap if self._cut_short else now < self._loaded_through:
            return
        through = now + _AHEAD_NS
        found = timers.due(through, self._limit)
        self._cut_short = len(found) >= self._limit
        self._loaded_through = found[-1][0] if self._cut_short else through
        self._heap = list(set(found) | set(self._heap))
        heapify(self._heap)

    def take(self, now: int, count: int) -> list[str]:
        """Up to ``count`` ids whose timer is not above ``now``, earliest first, each once."""
        taken: dict[str, None] = {}
        while self._heap and self._heap[0][0] <= now and len(taken) < count:
            taken[heappop(self._heap)[1]] = None
        return list(taken)

    def next_timer(self) -> int:
        """When to look again at the latest: the earliest timer, or the end of the window."""
        return self._heap[0][0] if self._heap else max(self._loaded_through, 0)

    def _narrow(self) -> None:
        """More came into the window than it may hold: keep the earliest, the rest is loaded again in its turn."""
        self._heap = nsmallest(self._limit, set(self._heap))
        self._loaded_through = self._heap[-1][0]
        self._cut_short = True
