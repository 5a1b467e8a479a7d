"""What a keeper says, as values: the checked lines of its evidence and of its socket, read back.

Instants are nanoseconds since the Unix epoch. A line whose check fails is skipped, and so is a word not known here:
a keeper may be older or newer than its daemon.
"""

from __future__ import annotations

import errno
import os
from binascii import crc32
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

_CHECK_BYTES: Final = 9
_INT_BITS: Final = 31
_SHOWN: Final = 40
_PASSING: Final = frozenset(
    {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT}
    | {errno.EIO, errno.ETIMEDOUT, errno.ETXTBSY, errno.EINTR, errno.ESTALE}
)


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """Exec succeeded."""

    attempt_id: str
    pid: int
    at_ns: int


class NotStarted(msgspec.Struct, frozen=True, kw_only=True):
    """Never exec'ed, for certain. ``what`` is where it failed: request, door, evidence, cwd, stdin, pipe, spawn, exec.

    A file the kernel cannot execute, such as a script without ``#!``, is ENOEXEC: no shell is tried."""

    attempt_id: str
    errno: int
    what: str

    @property
    def for_want_of_resources(self) -> bool:
        """Whether it is our lack (process, memory, descriptor, space), not the command's: it may do better later."""
        return self.what in {"door", "evidence", "stdin", "pipe", "spawn"} or self.errno in _PASSING


class Closed(msgspec.Struct, frozen=True, kw_only=True):
    """Its door was closed before it could start: it never will."""

    attempt_id: str


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """An error of the keeper's own: whether it runs is not known, and nothing more will be said of it."""

    attempt_id: str


class TimedOut(msgspec.Struct, frozen=True, kw_only=True):
    """Its time was over while it ran; said before the first signal."""

    attempt_id: str


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """It is being ended on request; said before the first signal."""

    attempt_id: str


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """Reaped. ``stdout_bytes`` counts all output up to then, ``stdout_kept`` what the file held of it.

    ``survivors`` counts descendants that KILL did not end within a second; -1 where that cannot be told, and 0 if
    the attempt was not ended by us: what it left running is its own business."""

    attempt_id: str
    wait_status: int
    timed_out: bool
    stopped: bool
    started_at_ns: int
    ended_at_ns: int
    ended_boot_ns: int
    utime_s: float
    stime_s: float
    maxrss_kib: int
    stdout_bytes: int
    stderr_bytes: int
    stdout_kept: int
    stderr_kept: int
    survivors: int

    @property
    def exit_code(self) -> int | None:
        """What it said itself; None after a signal."""
        return os.WEXITSTATUS(self.wait_status) if os.WIFEXITED(self.wait_status) else None

    @property
    def signal(self) -> int | None:
        """What ended it; None if it exited."""
        return os.WTERMSIG(self.wait_status) if os.WIFSIGNALED(self.wait_status) else None


class KeeperDraining(msgspec.Struct, frozen=True, kw_only=True):
    """It accepts no more starts and will still report what it runs: connect again before the next start."""

    keeper: str


class KeeperGone(msgspec.Struct, frozen=True, kw_only=True):
    """The connection ended. What was open with it is decided by evidence and door; ``accepting`` tells whether it
    was the keeper that took starts: connect again before the next one."""

    keeper: str
    accepting: bool


AttemptFact = Started | NotStarted | Closed | Lost | TimedOut | Stopped | Ended
Fact = AttemptFact | KeeperDraining | KeeperGone


def checked_lines(data: bytes) -> Iterator[list[str]]:
    """The words of each whole line that passes its check."""
    for raw in data.split(b"\n"):
        body = raw[_CHECK_BYTES:]
        if body and raw[:_CHECK_BYTES] == b"%08x " % crc32(body):
            yield body.decode("ascii", "replace").split(" ")


def fact(words: list[str]) -> Fact | None:
    """What a line says, or None if it is none of these or lacks a word."""
    make = _MAKERS.get(words[0])
    if make is None:
        return None
    try:
        return make(words)
    except (IndexError, ValueError):
        return None


def _number(word: str, bits: int = 63) -> int:
    """ValueError for one that no clock, no file and no kernel gives."""
    number = int(word)
    if abs(number) >> bits:
        raise ValueError(word[:_SHOWN])
    return number


def _ended(words: list[str]) -> Ended:
    numbers = [_number(words[2], _INT_BITS), *map(_number, words[3:16])]
    (status, timed_out, stopped, started, ended, ended_boot, utime, stime, *rest) = numbers
    maxrss, out, err, out_kept, err_kept, survivors = rest
    return Ended(
        attempt_id=words[1],
        wait_status=status,
        timed_out=bool(timed_out),
        stopped=bool(stopped),
        started_at_ns=started,
        ended_at_ns=ended,
        ended_boot_ns=ended_boot,
        utime_s=utime / 1e6,
        stime_s=stime / 1e6,
        maxrss_kib=maxrss,
        stdout_bytes=out,
        stderr_bytes=err,
        stdout_kept=out_kept,
        stderr_kept=err_kept,
        survivors=survivors,
    )


_MAKERS: Final[dict[str, Callable[[list[str]], Fact]]] = {
    "CLOSED": lambda words: Closed(attempt_id=words[1]),
    "DRAINING": lambda words: KeeperDraining(keeper=words[1]),
    "ENDED": _ended,
    "LOST": lambda words: Lost(attempt_id=words[1]),
    "NOSTART": lambda words: NotStarted(attempt_id=words[1], errno=_number(words[2], _INT_BITS), what=words[3]),
    "STARTED": lambda words: Started(attempt_id=words[1], pid=_number(words[2], _INT_BITS), at_ns=_number(words[3])),
    "STOPPED": lambda words: Stopped(attempt_id=words[1]),
    "TIMEDOUT": lambda words: TimedOut(attempt_id=words[1]),
}
