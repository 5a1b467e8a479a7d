"""Locks held for long: the owner's and that of whoever writes the projection. A kernel lock, never a pid file."""

from __future__ import annotations

import contextlib
import os

from filelock import FileLock, Timeout

from nereus_cli.ports import BusyError


class FileLease:
    """One process at a time; ends with the process, whatever happens to it. The pid inside is for messages."""

    def __init__(self, path: str, what: str) -> None:
        """``what`` names the thing held in the message of a refusal."""
        self._path = path
        self._what = what
        self._lock = FileLock(path, mode=0o600, is_singleton=False)

    def acquire(self, seconds: float = 0) -> None:
        """Takes it, waiting at most ``seconds``, or raises BusyError."""
        try:
            self._lock.acquire(timeout=seconds)
        except Timeout:
            holder = self._holder()
            who = f"process {holder}" if holder else "another process"
            msg = f"{self._what} is held by {who}"
            raise BusyError(msg, holder=holder) from None
        # Only for the message of a refusal: a full disk is no reason to give the lock back.
        with contextlib.suppress(OSError), open(f"{self._path}.pid", "w", encoding="ascii", opener=_private) as file:
            file.write(f"{os.getpid()}\n")

    def release(self) -> None:
        """Gives it back; harmless when not held."""
        self._lock.release()

    def _holder(self) -> int | None:
        with contextlib.suppress(OSError, ValueError), open(f"{self._path}.pid", encoding="ascii") as file:
            return int(file.read(32))
        return None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
