from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nereus_cli.disk import SystemDisk

DISK = SystemDisk()
HERE = "here"


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    (tmp_path / HERE).mkdir()
    fd = DISK.open_directory(str(tmp_path / HERE))
    yield fd
    DISK.close(fd)


def after(seconds: float, action: Callable[[], object]) -> None:
    threading.Timer(seconds, action).start()


def test_bytes_are_written_read_and_cut(directory: int, tmp_path: Path) -> None:
    fd = DISK.open_file("a", below=directory, create=True, exclusive=True)
    assert DISK.write_at(fd, b"hello", 2) == 5
    DISK.sync_data(fd)
    DISK.sync_directory(directory)
    assert DISK.size(fd) == 7
    assert DISK.read_at(fd, 100, 0) == b"\0\0hello"
    assert DISK.read_at(fd, 100, 7) == b""
    DISK.truncate(fd, 3)
    assert (tmp_path / HERE / "a").read_bytes() == b"\0\0h"
    assert DISK.inode(fd) == DISK.inode_of("a", below=directory) == (tmp_path / HERE / "a").stat().st_ino
    with pytest.raises(FileExistsError):
        DISK.open_file("a", below=directory, create=True, exclusive=True)
    DISK.close(fd)


def test_names_are_given_once_replaced_and_taken_away(directory: int, tmp_path: Path) -> None:
    for name in ("a", "b"):
        DISK.close(DISK.open_file(name, below=directory, create=True))
    with pytest.raises(FileExistsError):
        DISK.link("a", "b", below=directory)
    DISK.link("a", "c", below=directory)
    DISK.unlink("a", below=directory)
    DISK.rename("c", "b", below=directory)
    DISK.make_directory("d", below=directory)
    assert sorted(DISK.names(directory)) == ["b", "d"] == sorted(file.name for file in (tmp_path / HERE).iterdir())
    assert DISK.inode_of("a", below=directory) is None
    with pytest.raises(FileExistsError):
        DISK.make_directory("d", below=directory)
    below = DISK.open_directory("d", below=directory)
    assert list(DISK.names(below)) == []
    DISK.close(below)


@pytest.mark.parametrize("umask", [0o000, 0o027, 0o377])
def test_modes_are_private_whatever_the_umask(directory: int, tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        DISK.close(DISK.open_file("file", below=directory, create=True))
        DISK.make_directory("directory", below=directory)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / HERE / "file").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / HERE / "directory").stat().st_mode) == 0o700


def test_what_cannot_be_trusted_is_not_opened(directory: int, tmp_path: Path) -> None:
    (tmp_path / HERE / "file").touch(0o600)
    (tmp_path / HERE / "link").symlink_to("file")
    os.mkfifo(tmp_path / HERE / "pipe")
    for name in ("link", "pipe"):
        for write in (True, False):
            with pytest.raises(OSError, match=name):
                DISK.open_file(name, below=directory, write=write)
    os.link(tmp_path / HERE / "file", tmp_path / "again")
    with pytest.raises(PermissionError) as refused:
        DISK.open_file("file", below=directory)
    assert refused.value.errno == errno.EPERM
    DISK.close(DISK.open_file("file", below=directory, links=2))
    (tmp_path / HERE / "elsewhere").symlink_to(tmp_path)
    with pytest.raises(OSError, match="elsewhere"):
        DISK.open_directory("elsewhere", below=directory)


def test_descriptors_are_not_inherited(directory: int) -> None:
    fd = DISK.open_file("a", below=directory, create=True)
    assert not os.get_inheritable(fd)
    assert not os.get_inheritable(directory)
    DISK.close(fd)


def test_a_lock_is_waited_for_and_its_holder_known(directory: int) -> None:
    first, second = (DISK.open_file("a", below=directory, create=True) for _ in range(2))
    assert DISK.lock(first, 0)
    assert not DISK.try_lock(second)
    assert not DISK.lock(second, 0)
    assert DISK.lock_holder(second) in {os.getpid(), None}
    begin = time.monotonic()
    assert not DISK.lock(second, 0.1)
    assert time.monotonic() - begin >= 0.1
    after(0.05, lambda: DISK.unlock(first))
    assert DISK.lock(second, 30.0)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert not DISK.try_lock(first)


def test_a_lock_is_waited_for_in_a_thread_too(directory: int) -> None:
    first, second = (DISK.open_file("a", below=directory, create=True) for _ in range(2))
    got: list[bool] = []

    def wait() -> None:
        got.append(DISK.lock(second, 0.05))
        got.append(DISK.lock(second, 30.0))

    assert DISK.try_lock(first)
    thread = threading.Thread(target=wait)
    thread.start()
    after(0.3, lambda: DISK.unlock(first))
    thread.join(30)
    assert got == [False, True]


def test_somebody_elses_alarm_is_left_alone(directory: int) -> None:
    first, second = (DISK.open_file("a", below=directory, create=True) for _ in range(2))
    assert DISK.try_lock(first)
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: rung.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        assert not DISK.lock(second, 0.3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung == [signal.SIGALRM]


def test_an_exception_while_waiting_leaves_the_lock_free(directory: int) -> None:
    first, second, third = (DISK.open_file("a", below=directory, create=True) for _ in range(3))
    assert DISK.try_lock(first)

    def raising(_number: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGUSR1, raising)
    main = threading.get_ident()
    after(0.05, lambda: signal.pthread_kill(main, signal.SIGUSR1))
    try:
        with pytest.raises(TimeoutError):
            DISK.lock(second, 30.0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    DISK.unlock(first)
    assert DISK.try_lock(third)


def test_an_exception_just_behind_the_grant_leaves_the_lock_free(
    directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a signal may come when the kernel has given the lock and nobody has been told yet."""
    disk = SystemDisk()
    ours, theirs = (disk.open_file("lock", below=directory, create=True) for _ in range(2))
    flock = fcntl.flock

    def interrupted(fd: int, how: int) -> None:
        if fd == ours and how != fcntl.LOCK_UN:
            if how & fcntl.LOCK_NB:
                raise BlockingIOError
            flock(fd, how)
            raise KeyboardInterrupt
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        disk.lock(ours, 5)
    assert disk.try_lock(theirs)
    for fd in (ours, theirs):
        disk.close(fd)


def test_a_holder_is_not_known_where_there_is_no_table(directory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = DISK.open_file("a", below=directory, create=True)

    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", missing)
    assert DISK.lock_holder(fd) is None
