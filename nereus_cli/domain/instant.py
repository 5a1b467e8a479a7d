"""Instants and what a clock reading can prove about them.

An instant is an integer: nanoseconds since the Unix epoch, UTC. A reading is an interval, because a clock
knows the time only within bounds; in clock mode ``host`` the interval has no width.
"""

from __future__ import annotations

import msgspec

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
DAY = 86_400 * SECOND


class Reading(msgspec.Struct, frozen=True):
    """``[earliest, latest]`` of the wall clock; ``monotonic_ns`` counts suspend and belongs to ``boot_id``."""

    earliest: int
    latest: int
    monotonic_ns: int
    boot_id: bytes

    def surely_reached(self, instant: int) -> bool:
        """No earlier than ``instant``, whatever the true time within the interval."""
        return self.earliest >= instant

    def surely_before(self, instant: int) -> bool:
        """Earlier than ``instant``, whatever the true time within the interval."""
        return self.latest < instant
