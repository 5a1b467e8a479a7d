"""The clocks of the keeper, in nanoseconds."""

import time

SECOND = 1_000_000_000
MILLISECOND = 1_000_000

# The monotonic clock that counts suspend; where there is no such name, CLOCK_MONOTONIC is it.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_ns() -> int:
    """Nanoseconds since the Unix epoch by the host's clock."""
    return time.time_ns()


def boot_ns() -> int:
    """Nanoseconds of the monotonic clock that counts suspend: every timer here runs on it."""
    return time.clock_gettime_ns(_BOOT_CLOCK)
