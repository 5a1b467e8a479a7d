"""Waiting: what rings, and what must not be touched once the bell is gone."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.cli.lines import Reader
from nereus_cli.domain.instant import SECOND
from nereus_cli.waiting import Waiter


@pytest.fixture
def waiter() -> Iterator[Waiter]:
    made = Waiter()
    yield made
    made.close()


def test_a_ring_ends_the_next_wait_and_no_more(waiter: Waiter) -> None:
    waiter.ring()
    waiter.ring()
    waiter.wait(60 * SECOND, (), ())
    begun = time.monotonic()
    waiter.wait(SECOND // 5, (), ())
    assert time.monotonic() - begun >= 0.2


@pytest.fixture
def many_files() -> Iterator[None]:
    """As for a process that inherited more open files than select can hold."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1_100:
        pytest.skip("no more than 1,100 open files are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1_100), hard))
    fds = [os.open("/dev/null", os.O_RDONLY)]
    while fds[-1] < 1_030:
        fds.append(os.dup(fds[-1]))
    yield
    for fd in fds:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_descriptors_beyond_a_thousand_are_waited_for() -> None:
    waiter = Waiter()
    ours, theirs = os.pipe()
    assert ours > 1_024
    os.write(theirs, b"!")
    waiter.wait(60 * SECOND, [ours], [])
    waiter.wait(60 * SECOND, [], [theirs])
    begun = time.monotonic()
    waiter.wait(SECOND // 5, [], [])
    assert time.monotonic() - begun >= 0.2
    waiter.ring()
    waiter.wait(60 * SECOND, [], [])
    waiter.close()
    block = next(iter(Reader(ours))) if os.write(theirs, b"a\n") else []
    assert block == [(1, b"!a")]
    os.close(ours)
    os.close(theirs)


def test_another_thread_ends_a_wait(waiter: Waiter) -> None:
    ringing = threading.Timer(0.05, waiter.ring)
    ringing.start()
    waiter.wait(60 * SECOND, (), ())
    ringing.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_counted_and_ends_the_wait(waiter: Waiter, number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    waiter.wait(60 * SECOND, (), ())
    assert waiter.stops == 1


def test_a_late_ring_writes_into_nobodys_file(tmp_path: Path) -> None:
    """The log's thread may ring while the daemon ends: the numbers of the closed pipe belong to others by then."""
    before = {signal.SIGINT: signal.getsignal(signal.SIGINT)}
    waiter = Waiter()
    waiter.close()
    taken = [os.open(tmp_path / f"f{n}", os.O_RDWR | os.O_CREAT, 0o600) for n in range(8)]
    waiter.ring()
    for number in taken:
        os.close(number)
    assert [path.read_bytes() for path in sorted(tmp_path.glob("f*"))] == [b""] * 8
    assert signal.getsignal(signal.SIGINT) is before[signal.SIGINT]
