"""The contracts of clocks and leases, for what is real and for what is in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nereus_cli.clock import HostClock
from nereus_cli.domain.instant import SECOND
from nereus_cli.lease import FileLease
from nereus_cli.ports import BusyError, Clock, Lease
from nereus_cli.testing import ManualClock, MemoryLease

Leases = Callable[[], Lease]


@pytest.fixture(params=["host", "manual"])
def clock(request: pytest.FixtureRequest) -> Clock:
    return HostClock() if request.param == "host" else ManualClock()


@pytest.fixture(params=["file", "memory"])
def lease(request: pytest.FixtureRequest, tmp_path: Path) -> Leases:
    """Makes another holder of the same lease each time it is called."""
    if request.param == "file":
        return lambda: FileLease(str(tmp_path / "lock"), "it")
    place = threading.Lock()
    return lambda: MemoryLease(place)


def test_a_reading_is_an_interval_of_one_boot(clock: Clock) -> None:
    first, second = clock.read(), clock.read()
    assert first.earliest <= first.latest
    assert first.boot_id == second.boot_id
    assert len(first.boot_id) == 16
    assert first.monotonic_ns <= second.monotonic_ns


def test_sleeping_takes_as_long_as_it_says_on_the_monotonic_clock(clock: Clock) -> None:
    before = clock.read().monotonic_ns
    clock.sleep(0.02)
    assert clock.read().monotonic_ns - before >= SECOND // 50


def test_a_reading_proves_only_what_lies_on_the_right_side(clock: Clock) -> None:
    now = clock.read()
    assert now.surely_reached(now.earliest)
    assert not now.surely_reached(now.earliest + 1)
    assert now.surely_before(now.latest + 1)
    assert not now.surely_before(now.latest)


def test_a_lease_has_one_holder_at_a_time(lease: Leases) -> None:
    first, second = lease(), lease()
    first.acquire()
    with pytest.raises(BusyError):
        second.acquire()
    first.release()
    second.acquire()
    with pytest.raises(BusyError):
        first.acquire()
    second.release()


def test_giving_back_what_is_not_held_takes_it_from_nobody(lease: Leases) -> None:
    first, second = lease(), lease()
    first.acquire()
    second.release()
    with pytest.raises(BusyError):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()
