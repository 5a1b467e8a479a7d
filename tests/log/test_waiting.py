"""Waiting inside one process: bells, watches, locks and signals."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from nereus_cli.disk import SystemDisk
from nereus_cli.log import view
from nereus_cli.log.files import FileLog
from nereus_cli.log.guard import HELD, Guard, InterruptedWaitError
from nereus_cli.log.locks import Lock
from nereus_cli.log.wake import Bell, Watch
from nereus_cli.ports import EnqueueUncertainError, NotQueuedError
from tests.log.world import LARGE, Ledger, SetClock, fast_directory, open_log

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="dnotify and inotify are Linux's")


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


class HeldDisk(SystemDisk):
    """Its syncs begin, say so, and end when they are let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def sync_data(self, fd: int) -> None:
        self.begun.set()
        assert self.let_go.wait(30)
        super().sync_data(fd)


@pytest.fixture
def held(top: Path) -> Iterator[HeldDisk]:
    """A log of one record, and somebody else in the middle of a sync of the second."""
    open_log(top / "log", create=True).append([b"first"])
    disk = HeldDisk()
    other = open_log(top / "log", disk=disk, wait=30)
    thread = threading.Thread(target=other.append, args=([b"second"],))
    thread.start()
    assert disk.begun.wait(30)
    yield disk
    disk.let_go.set()
    thread.join(30)
    other.close()


def after(seconds: float, action: Callable[[], object]) -> None:
    threading.Timer(seconds, action).start()


def no_dnotify(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "platform", "another")


def as_it_is(_patch: pytest.MonkeyPatch) -> None:
    """Whatever this system has."""


@pytest.mark.parametrize("how", [as_it_is, no_dnotify], ids=lambda how: how.__name__)
def test_an_appender_waits_for_the_sync_of_another_and_then_does_its_own(
    top: Path, held: HeldDisk, monkeypatch: pytest.MonkeyPatch, how: Callable[[pytest.MonkeyPatch], None]
) -> None:
    how(monkeypatch)
    log = open_log(top / "log", wait=30)
    after(0.1, held.let_go.set)
    assert log.append([b"third"])[0].position == 3
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_an_appender_in_a_thread_waits_as_well(top: Path, held: HeldDisk) -> None:
    log = open_log(top / "log", wait=30)
    placed: list[int] = []
    thread = threading.Thread(target=lambda: placed.append(log.append([b"third"])[0].position))
    thread.start()
    after(0.05, held.let_go.set)
    thread.join(30)
    assert placed == [3]


@linux_only
def test_a_bell_rings_when_the_mark_is_raised_and_leaves_nothing_behind(top: Path) -> None:
    log = open_log(top / "log", create=True)
    log.append([b"x"])
    with Guard() as guard, Bell(log._handle.room.marks, guard) as bell:
        bell.arm()
        begin = time.monotonic()
        log._handle.room.raise_mark(log._handle.tail_mark())
        bell.wait(30.0)
        assert time.monotonic() - begin < 15
        bell.wait(0.001)
        log._handle.room.raise_mark(log._handle.tail_mark())
    assert signal.sigpending() == set()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


@linux_only
def test_a_bell_leaves_a_signal_that_was_blocked_before_alone(top: Path) -> None:
    log = open_log(top / "log", create=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG})
    try:
        with Guard() as guard, Bell(log._handle.room.marks, guard) as bell:
            bell.arm()
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == {signal.SIGURG}
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGURG})


@pytest.mark.parametrize("why", ["no such directory", "the signal is taken", "no dnotify"])
def test_a_bell_that_cannot_ring_makes_waits_short(top: Path, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(top / "log", create=True)
    marks = log._handle.room.marks
    if why == "no such directory":
        marks = os.open(os.devnull, os.O_RDONLY)
    elif why == "the signal is taken":
        monkeypatch.setattr(signal, "getsignal", lambda _number: signal.SIG_IGN)
    else:
        no_dnotify(monkeypatch)
    with Guard() as guard, Bell(marks, guard) as bell:
        bell.arm()
        begin = time.monotonic()
        bell.wait(30.0)
        bell.wait(30.0)
        assert time.monotonic() - begin < 15


@pytest.mark.parametrize("how", [as_it_is, no_dnotify], ids=lambda how: how.__name__)
def test_a_signal_to_this_thread_ends_the_wait_and_is_used_up(
    top: Path, held: HeldDisk, monkeypatch: pytest.MonkeyPatch, how: Callable[[pytest.MonkeyPatch], None]
) -> None:
    how(monkeypatch)
    log = open_log(top / "log", wait=30)
    main = threading.get_ident()
    after(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(EnqueueUncertainError, match="signal 2") as caught:
        log.append([b"third"])
    assert caught.value.signal == signal.SIGINT
    held.let_go.set()
    assert log.barrier() == 3


def test_a_signal_that_another_thread_got_leaves_the_answer_open_too(top: Path) -> None:
    """The handler runs in the main thread wherever the signal went; here it runs in the middle of a write."""

    class Interrupted(SystemDisk):
        def write_at(self, fd: int, data: bytes, offset: int) -> int:
            taken = super().write_at(fd, data, offset)
            if b"second" in data:
                raise KeyboardInterrupt
            return taken

    open_log(top / "log", create=True).append([b"first"])
    log = open_log(top / "log", disk=Interrupted())
    with pytest.raises(EnqueueUncertainError, match="interrupted") as caught:
        log.append([b"second"])
    assert caught.value.signal == signal.SIGINT
    log.append([b"third"])
    assert [record.payload for record in log.read(0)] == [b"first", b"second", b"third"]


def test_a_signal_during_an_append_that_succeeds_still_leaves_the_answer_open(top: Path) -> None:
    class Signalled(SystemDisk):
        def sync_data(self, fd: int) -> None:
            super().sync_data(fd)
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    open_log(top / "log", create=True).append([b"first"])
    log = open_log(top / "log", disk=Signalled())
    with pytest.raises(EnqueueUncertainError) as caught:
        log.append([b"second"])
    assert caught.value.signal == signal.SIGINT


def test_a_barrier_delivers_a_signal_behind_its_wait(top: Path, held: HeldDisk) -> None:
    log = open_log(top / "log", wait=30)
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: got.append(number))
    try:
        main = threading.get_ident()
        after(0.05, lambda: signal.pthread_kill(main, signal.SIGTERM))
        after(0.2, held.let_go.set)
        assert log.barrier() == 2
    finally:
        signal.signal(signal.SIGTERM, before)
    assert got == [signal.SIGTERM]


def test_a_guard_masks_only_in_the_main_thread_and_only_inside() -> None:
    seen: list[set[int]] = []

    def look() -> None:
        with Guard() as guard:
            seen.append({int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())})
            guard.shut()
            guard.check()
            guard.open()

    look()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [{int(number) for number in HELD}, set()]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_a_guard_makes_an_interrupt_part_of_the_answer() -> None:
    try:
        with Guard() as guard:
            guard.check()
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(InterruptedWaitError) as caught:
                guard.check()
            assert caught.value.number == signal.SIGINT
            guard.check()
    except KeyboardInterrupt:
        pytest.fail("it was delivered as well")


def test_a_guard_takes_only_signals_that_would_have_ended_the_process() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Guard() as guard:
            assert guard.ending == {signal.SIGINT}
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            with pytest.raises(InterruptedWaitError, match="signal 2"):
                guard.check()
            guard.check()
        with Guard(patient=True) as guard:
            assert guard.ending == frozenset()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_lock_waits_and_is_free_again_behind_an_exception(top: Path) -> None:
    class Interrupted(SystemDisk):
        def lock(self, fd: int, seconds: float) -> bool:
            assert super().lock(fd, seconds)
            raise KeyboardInterrupt

    (top / "file").touch(0o600)
    disk = SystemDisk()
    directory = disk.open_directory(str(top))
    first, second, third = (disk.open_file("file", below=directory) for _ in range(3))
    assert disk.try_lock(first)
    lock = Lock(disk, second, "test")
    with pytest.raises(NotQueuedError, match="test lock is held by process"):
        lock.take(0.0)
    after(0.05, lambda: disk.unlock(first))
    lock.take(30.0)
    assert lock.held
    lock.drop()
    lock.drop()
    assert disk.try_lock(first)
    after(0.05, lambda: disk.unlock(first))
    interrupted = Lock(Interrupted(), second, "test")
    with Guard() as guard, pytest.raises(KeyboardInterrupt):
        interrupted.take(30.0, guard)
    assert disk.try_lock(third)


def test_a_lock_whose_holder_is_not_known_is_held_by_another_process(top: Path) -> None:
    class Unknowing(SystemDisk):
        def lock_holder(self, fd: int) -> None:
            assert fd

    (top / "file").touch(0o600)
    disk = Unknowing()
    directory = disk.open_directory(str(top))
    first, second = (disk.open_file("file", below=directory) for _ in range(2))
    assert disk.try_lock(first)
    with pytest.raises(NotQueuedError, match="held by another process") as caught:
        Lock(disk, second, "test").take(0.01)
    assert caught.value.holder is None


def watching(path: Path) -> FileLog:
    return FileLog(str(path), disk=SystemDisk(), clock=SetClock(), limits=LARGE)


@linux_only
def test_a_reader_is_woken_soon_by_inotify(top: Path) -> None:
    log = open_log(top / "log", create=True)
    reader = watching(top / "log")
    assert reader.wait(0, 0.01) == 0
    for position in (1, 2, 3):
        after(0.05, lambda: log.append([b"x"]))
        begin = time.monotonic()
        assert reader.wait(position - 1, 30.0) == position
        assert time.monotonic() - begin < 15
    reader.close()
    reader.close()


@linux_only
def test_a_reader_follows_a_mark_that_was_replaced(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "POLL_S_MAX", 0.05)
    ledger = Ledger()
    log = open_log(top / "log", create=True, limits=LARGE)
    ledger.append(log, ledger.payloads(1))
    reader = watching(top / "log")
    assert reader.wait(1, 0.2) == 1
    (top / "log" / "mark" / "durable").unlink()
    (top / "log" / "syncing").unlink()
    other = open_log(top / "log", limits=LARGE)
    ledger.append(other, ledger.payloads(1))
    assert reader.wait(1, 30.0) == 2


@pytest.mark.parametrize("why", ["no inotify", "no descriptor", "no such file"])
def test_a_reader_without_inotify_looks_by_itself(top: Path, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(top / "log", create=True)
    if why == "no inotify":
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace())
    elif why == "no descriptor":
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(inotify_init1=lambda _flags: -1))
    else:
        with pytest.raises(OSError, match="No such file"):
            Watch(10_000)
        return
    reader = watching(top / "log")
    log.append([b"x"])
    assert reader.wait(0, 30.0) == 1
    assert reader.wait(1, 0.06) == 1
