"""The evidence: a file of checked lines that outlives keeper and daemon, one fact a line.

::

    HEAD 1 BOOT_ID DEVICE INODE PID WALL_NS BOOT_NS MOUNT
                                                      whose file this is; a copy, another boot or another mount does
                                                      not match it
    TAKEN ID                                          a start arrived; written before its door is tried
    STARTED ID PID WALL_NS BOOT_NS                    exec succeeded
    NOSTART ID ERRNO WHAT                             never exec'ed, for certain
    CLOSED ID                                         never will be: the door was closed from the other side
    TIMEDOUT ID                                       before the first signal of the ladder
    STOPPED ID                                        likewise, on request
    ENDED ID STATUS TIMED_OUT STOPPED STARTED_WALL_NS ENDED_WALL_NS ENDED_BOOT_NS UTIME_US STIME_US MAXRSS_KIB
          STDOUT_BYTES STDERR_BYTES STDOUT_KEPT STDERR_KEPT SURVIVORS
    LOST ID                                           an error of the keeper's own: whether it runs is not known
    DRAINING NAME                                     accepts no more

The file is locked for the life of its keeper, so that its lock says whether more may come. When it has grown large,
or somebody removed it, a successor begins that repeats what still runs; the old one is let go afterwards.
It is never fsynced: it must survive processes, and what survives only the power cut proves nothing anyway.
"""

import errno
import fcntl
import os
from collections.abc import Iterable

from nereus_cli.keeper.clock import boot_ns, wall_ns
from nereus_cli.keeper.lines import line
from nereus_cli.keeper.mounted import mount_of

FORMAT = 1
FILE_BYTES_MAX = 8 << 20


class EvidenceFile:
    """Appends lines; a line that cannot be written waits in memory, in order, until it can."""

    def __init__(self, directory: int, name: str, boot_id: str, bytes_max: int = FILE_BYTES_MAX) -> None:
        """``directory`` is the open ``keeper/``. Raises OSError if no file can be begun there."""
        self._boot_id = boot_id
        self._directory = directory
        self._name = name
        self._bytes_max = bytes_max
        self._generation = 0
        self._waiting = bytearray()
        self._written = 0
        self._fd = self._begin(())

    @property
    def waits(self) -> bool:
        """Whether a fact waits for space: nothing new may be started then."""
        return bool(self._waiting)

    def add(self, data: bytes) -> None:
        """Take lines; ``flush`` writes them."""
        self._waiting += data

    def flush(self) -> OSError | None:
        """Write what waits. Returns why it could not; a line cut short goes on where it stopped."""
        while self._waiting:
            try:
                done = os.write(self._fd, self._waiting)
            except OSError as failed:
                return failed
            self._written += done
            del self._waiting[:done]
        return None

    def renew(self, still_true: Iterable[bytes]) -> None:
        """Begin another file, with the lines that are still true, if this one is full or was removed.

        Raises OSError; the present file then stays in use."""
        gone = os.fstat(self._fd).st_nlink == 0
        if self._waiting or (self._written < self._bytes_max and not gone):
            return
        successor = self._begin(still_true)
        os.close(self._fd)
        self._fd = successor

    def _begin(self, lines: Iterable[bytes]) -> int:
        suffix = f".{self._generation}" if self._generation else ""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        name = f"{self._name}{suffix}.ev"
        fd = os.open(name, flags, 0o600, dir_fd=self._directory)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            own = os.fstat(fd)
            place = own.st_dev, own.st_ino
            head = line("HEAD", FORMAT, self._boot_id, *place, os.getpid(), wall_ns(), boot_ns(), mount_of(fd))
            data = head + b"".join(lines)
            _write_whole(fd, data)
        except OSError:
            os.unlink(name, dir_fd=self._directory)
            os.close(fd)
            raise
        self._generation += 1
        self._written = len(data)
        return fd


def _write_whole(fd: int, data: bytes) -> None:
    """A file that cannot hold its head is not begun."""
    if os.write(fd, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
