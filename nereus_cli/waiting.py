"""How the owner waits: for a timer, a descriptor, a signal or the log, whichever is first."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Final

from nereus_cli.domain.instant import MILLISECOND, SECOND
from nereus_cli.ports import CommandLog, LogError

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LISTEN_S: Final = 1.0
_SELECT_MAX: Final = 1_024


class Waiter:
    """One sleeping place with a bell that any thread or signal handler may ring. Counts requests to stop."""

    def __init__(self) -> None:
        """Takes over the stop signals; the main thread makes it."""
        self._closing = threading.RLock()
        self._closed = False
        self._bell, self._rope = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._rope, False)
        self.stops = 0
        self._before = {number: signal.signal(number, self._stop) for number in _STOP_SIGNALS}

    def close(self) -> None:
        """Gives the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        with self._closing:
            self._closed = True
            os.close(self._bell)
            os.close(self._rope)

    def ring(self) -> None:
        """Ends the present or the next wait; nothing once this is closed. A descriptor that was closed may be another
        file's by now, even that of the log's mark, so ringing and closing exclude each other."""
        with self._closing, contextlib.suppress(BlockingIOError, OSError):
            if not self._closed:
                os.write(self._rope, b"!")

    def wait(self, nanoseconds: int, readable: Sequence[int], writable: Sequence[int]) -> None:
        """Returns when the time is up, a descriptor is ready or somebody rings."""
        with contextlib.suppress(InterruptedError):
            if self._bell in _ready((self._bell, *readable), writable, max(nanoseconds, 0)):
                with contextlib.suppress(BlockingIOError):
                    os.read(self._bell, 65_536)

    def _stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- the shape of a handler
        self.stops += 1
        self.ring()


def _ready(readable: Sequence[int], writable: Sequence[int], nanoseconds: int) -> set[int]:
    """Which of them are. Select waits to the microsecond, but holds small descriptors only: a process that inherited a
    thousand open files has larger ones, and waits to the next millisecond."""
    if max((*readable, *writable)) < _SELECT_MAX:
        reads, writes, _ = select.select(readable, writable, (), nanoseconds / SECOND)
        return {*reads, *writes}
    poll = select.poll()
    for fd in {*readable, *writable}:
        poll.register(fd, (select.POLLIN if fd in readable else 0) | (select.POLLOUT if fd in writable else 0))
    return {fd for fd, _ in poll.poll(-(-nanoseconds // MILLISECOND))}


class LogBell:
    """Rings when something new is durable: a thread that waits on a log of its own."""

    def __init__(self, log: CommandLog, ring: Callable[[], None]) -> None:
        """``log`` is used by this thread alone and closed by it."""
        self._log = log
        self._ring = ring
        self._ended = False
        self._thread = threading.Thread(target=self._listen, name="log-bell", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends within a second; nobody has to wait for it."""
        self._ended = True

    def _listen(self) -> None:
        seen = 0
        while not self._ended:
            try:
                position = self._log.wait(seen, _LISTEN_S)
            except (LogError, OSError):
                threading.Event().wait(_LISTEN_S)  # the owner's own reading says what is wrong
                position = seen
            if position > seen:
                seen = position
                self._ring()
        self._log.close()
