"""Being woken when the mark is raised.

An appender that waits for somebody else's sync uses a *bell*: a signal, sent to its own thread only, when a file
in the mark's directory is written. It needs nothing but the standard library's cheap modules. A reader that waits
for hours uses a *watch*: inotify, which needs ctypes and so is made on the first wait. Both are hints: whoever
waits looks again by itself after a while.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import sys
import time
from _thread import get_native_id
from types import TracebackType
from typing import Self

from nereus_cli.log.guard import Guard, InterruptedWaitError

_RING = signal.SIGURG
_SET_OWNER = 15
_OWNER_IS_THREAD = 0
_OWNER = struct.Struct("ii")
_PAUSE_S_MIN = 0.0005
_IN_MODIFY = 2
_EVENTS_BYTES = 65_536


class Bell:
    """``with Bell(marks, guard)``: ``marks`` is a descriptor of the mark's directory. Arm it, read the mark, wait.

    SIGURG is the signal because it is ignored where nobody waits for it."""

    def __init__(self, marks: int, guard: Guard) -> None:
        self._marks = marks
        self._guard = guard
        self._fd = -1
        self._pause = _PAUSE_S_MIN
        self._was_blocked = False
        self._wakes: frozenset[int] = guard.ending | {_RING}
        self.armed = False

    def __enter__(self) -> Self:
        return self

    def arm(self) -> None:
        """From here on no raising of the mark goes unheard; without help from the system, waits get short instead."""
        self.armed = True
        if sys.platform == "linux" and signal.getsignal(_RING) == signal.SIG_DFL:
            self._was_blocked = _RING in signal.pthread_sigmask(signal.SIG_BLOCK, {_RING})
            try:
                self._fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._marks)
                fcntl.fcntl(self._fd, fcntl.F_SETSIG, _RING)
                fcntl.fcntl(self._fd, _SET_OWNER, _OWNER.pack(_OWNER_IS_THREAD, get_native_id()))
                fcntl.fcntl(self._fd, fcntl.F_NOTIFY, fcntl.DN_MODIFY | fcntl.DN_MULTISHOT)
            except OSError:
                self._disarm()

    def wait(self, seconds: float) -> None:
        """Returns when the bell rang or the time is up. Raises InterruptedWaitError."""
        if sys.platform == "linux" and self._fd >= 0:
            woken = signal.sigtimedwait(self._wakes, seconds)
            if woken is not None and woken.si_signo != _RING:
                raise InterruptedWaitError(woken.si_signo)
        else:
            time.sleep(min(self._pause, seconds))
            self._pause *= 1.5
            self._guard.check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            self._disarm()

    def _disarm(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if sys.platform == "linux" and not self._was_blocked:
            signal.sigtimedwait({_RING}, 0)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {_RING})


class Watch:
    """Sleeps until the file ``durable`` below the directory ``marks`` is written. OSError where inotify is not."""

    def __init__(self, marks: int) -> None:
        import ctypes
        import select

        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = -1
        try:
            fd: int = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        except AttributeError as error:
            raise OSError("no inotify here") from error
        path = os.fsencode(f"/proc/self/fd/{marks}/durable")
        if fd < 0 or libc.inotify_add_watch(fd, path, _IN_MODIFY) < 0:
            number = ctypes.get_errno()
            if fd >= 0:
                os.close(fd)
            raise OSError(number, os.strerror(number))
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """True as soon as the file was written since the last call, False when the time is up."""
        if not self._poll.poll(seconds * 1_000):
            return False
        os.read(self._fd, _EVENTS_BYTES)
        return True

    def close(self) -> None:
        """Gives the descriptor back."""
        os.close(self._fd)
