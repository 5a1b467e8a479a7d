"""The system calls behind files, and the only module that may sync or rename.

A record is durable when ``sync_data`` on its file has returned without an error, and a name when
``sync_directory`` on its directory has. Nothing else in the program may claim either.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import sys
import time
from collections.abc import Iterable
from types import FrameType

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_FILE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700
_POLL_S_MAX = 0.005


class SystemDisk:
    """The ``Disk`` of the operating system. Holds no state: any number may be made, in any thread."""

    def open_directory(self, path: str, *, below: int | None = None) -> int:
        return os.open(path, _DIRECTORY, dir_fd=below)

    def make_directory(self, name: str, *, below: int) -> None:
        """Mode 0700 whatever the umask. FileExistsError when the name is taken."""
        os.mkdir(name, _PRIVATE_DIRECTORY, dir_fd=below)
        os.chmod(name, _PRIVATE_DIRECTORY, dir_fd=below)

    def open_file(
        self,
        name: str,
        *,
        below: int,
        create: bool = False,
        exclusive: bool = False,
        write: bool = True,
        links: int = 1,
    ) -> int:
        """A new file has mode 0600 whatever the umask. PermissionError for what is not ours or not a plain file."""
        flags = _FILE | (os.O_RDWR if write else os.O_RDONLY)
        flags |= (os.O_CREAT if create else 0) | (os.O_EXCL if exclusive else 0)
        fd = os.open(name, flags, _PRIVATE_FILE, dir_fd=below)
        try:
            mode = _mode_of_ours(fd, name, links)
            if create and mode != _PRIVATE_FILE:
                os.fchmod(fd, _PRIVATE_FILE)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def close(self, fd: int) -> None:
        os.close(fd)

    def read_at(self, fd: int, size: int, offset: int) -> bytes:
        """Fewer bytes than ``size`` only at the end of the file."""
        return os.pread(fd, size, offset)

    def write_at(self, fd: int, data: bytes, offset: int) -> int:
        """How many of the bytes were taken; the caller writes the rest."""
        return os.pwrite(fd, data, offset)

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def inode(self, fd: int) -> int:
        return os.fstat(fd).st_ino

    def inode_of(self, name: str, *, below: int) -> int | None:
        try:
            return os.stat(name, dir_fd=below, follow_symlinks=False).st_ino
        except FileNotFoundError:
            return None

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync_data(self, fd: int) -> None:
        """On return the bytes and the size of this file are on the medium, as far as the medium says."""
        if sys.platform == "darwin":
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(fd)

    def sync_directory(self, fd: int) -> None:
        """On return the names in this directory are on the medium."""
        os.fsync(fd)

    def link(self, source: str, target: str, *, below: int) -> None:
        """FileExistsError when ``target`` exists: a name is given once."""
        os.link(source, target, src_dir_fd=below, dst_dir_fd=below, follow_symlinks=False)

    def rename(self, source: str, target: str, *, below: int) -> None:
        os.rename(source, target, src_dir_fd=below, dst_dir_fd=below)

    def unlink(self, name: str, *, below: int) -> None:
        os.unlink(name, dir_fd=below)

    def names(self, directory: int) -> Iterable[str]:
        return os.listdir(directory)

    def try_lock(self, fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock(self, fd: int, seconds: float) -> bool:
        """False when the time is up. Whatever happens, an exception leaves the lock free."""
        if self.try_lock(fd):
            return True
        if seconds <= 0:
            return False
        try:
            return self._lock_by_alarm(fd, seconds) if _alarm_is_free() else self._lock_by_looking(fd, seconds)
        except BaseException:
            # The exception may have come just behind the grant.
            self.unlock(fd)
            raise

    def unlock(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)

    def lock_holder(self, fd: int) -> int | None:
        """The pid that holds the lock on this file, from the kernel's table; None where there is none to ask."""
        try:
            inode = f":{os.fstat(fd).st_ino}"
            with open("/proc/locks", encoding="ascii", errors="replace") as table:
                rows = [row.split() for row in table]
        except OSError:
            return None
        holders = [int(row[4]) for row in rows if row[1] == "FLOCK" and row[5].endswith(inode)]
        return next((pid for pid in holders if pid > 0), None)

    def _lock_by_alarm(self, fd: int, seconds: float) -> bool:
        before = signal.signal(signal.SIGALRM, _time_is_up)
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except _TimeIsUp:
            # The alarm may have come just behind the grant.
            self.unlock(fd)
            return False
        finally:
            signal.signal(signal.SIGALRM, before)
        return True

    def _lock_by_looking(self, fd: int, seconds: float) -> bool:
        end = time.monotonic() + seconds
        pause = 0.0002
        while not self.try_lock(fd):
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, _POLL_S_MAX)
        return True


def stands(path: str) -> bool:
    """Whether something has this name. Raises the OSError of a system that does not say: what cannot be looked at is
    not missing."""
    return _mode_of(path, follow=False) is not None


def is_directory(path: str) -> bool:
    """Whether that is a directory, or a link to one. Raises as ``stands``."""
    mode = _mode_of(path, follow=True)
    return mode is not None and stat.S_ISDIR(mode)


def _mode_of(path: str, *, follow: bool) -> int | None:
    try:
        return os.stat(path, follow_symlinks=follow).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _mode_of_ours(fd: int, name: str, links: int) -> int:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink > links:
        raise PermissionError(errno.EPERM, "not a plain file of this user with one name", name)
    return stat.S_IMODE(found.st_mode)


class _TimeIsUp(Exception):  # noqa: N818 - it never leaves this module
    """Raised by the alarm to end a blocking wait."""


def _time_is_up(_number: int, _frame: FrameType | None) -> None:
    raise _TimeIsUp


def _alarm_is_free() -> bool:
    """Only the main thread gets alarms, and only one timer exists: somebody else's must not be taken."""
    threading = sys.modules.get("threading")
    if threading is not None and threading.current_thread() is not threading.main_thread():
        return False
    free = signal.getsignal(signal.SIGALRM) in {signal.SIG_DFL, signal.SIG_IGN}
    return free and signal.getitimer(signal.ITIMER_REAL)[0] == 0
