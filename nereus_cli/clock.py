"""The host's clocks, and whether the wall clock moved against the one that counts suspend."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from nereus_cli.domain.instant import SECOND, Reading
from nereus_cli.domain.records import ClockStep

STEP_NS: Final = SECOND // 2
STEADY_NS: Final = SECOND
_SLEW_PARTS_PER_MILLION: Final = 500
_COUNTS_SUSPEND: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class HostClock:
    """Clock mode ``host``: the host's clock is the time, an interval without width."""

    def __init__(self) -> None:
        """Finds out which boot this is."""
        self._boot_id = read_boot_id()

    def read(self) -> Reading:
        """Both clocks, as near together as two calls are."""
        now = time.time_ns()
        return Reading(now, now, time.clock_gettime_ns(_COUNTS_SUSPEND), self._boot_id)

    def sleep(self, seconds: float) -> None:
        """Waits on the monotonic clock."""
        time.sleep(seconds)


def read_boot_id() -> bytes:
    """16 bytes that no other boot of this machine has; derived from the start of the boot where none is given."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return bytes.fromhex(file.read().strip().replace("-", ""))
    except OSError:
        import subprocess
        from hashlib import sha256

        answer = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, check=False
        ).stdout
        return sha256(b"nereus.boot/1\0" + answer).digest()[:16]


class Moment(msgspec.Struct, frozen=True):
    """Both clocks at one instant, as a frame or a reading keeps them."""

    wall: int
    monotonic_ns: int
    boot_id: bytes


class StepWatch:
    """Compares each reading with the one before. A step gates admission and expiry until the clock was steady
    for a second; small slews, which a disciplined clock makes all the time, are none."""

    def __init__(self, last: Moment | None) -> None:
        """``last`` is the newest moment the log knows: a step while nobody looked counts too."""
        self._last = last
        self._steady_from: int | None = None

    def look(self, reading: Reading) -> ClockStep | None:
        """The step since the last look, if there was one."""
        last, now = self._last, Moment(reading.latest, reading.monotonic_ns, reading.boot_id)
        self._last = now
        if last is None or last.boot_id != now.boot_id or now.monotonic_ns < last.monotonic_ns:
            return None
        elapsed = now.monotonic_ns - last.monotonic_ns
        moved = now.wall - last.wall - elapsed
        if abs(moved) <= STEP_NS + elapsed * _SLEW_PARTS_PER_MILLION // 1_000_000:
            return None
        self._steady_from = now.monotonic_ns
        return ClockStep(before=now.wall - moved, after=now.wall)

    def gated_for(self, reading: Reading) -> int:
        """Nanoseconds until the clock counts again; 0 when it does."""
        if self._steady_from is None:
            return 0
        left = self._steady_from + STEADY_NS - reading.monotonic_ns
        if left <= 0:
            self._steady_from = None
            return 0
        return left
