"""Signals while bytes of ours are under way.

INT, TERM and TSTP are masked from before the append lock is taken until the answer is known, so that nobody
else waits for a holder that was stopped or is busy dying. A signal that would have ended the process is taken
out of the kernel's hands and becomes part of the answer; one with a handler of its own is delivered afterwards.
Outside the main thread nothing is masked: signals go to the main thread there.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Self

HELD = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGTSTP})
_ENDING = (signal.SIGINT, signal.SIGTERM)


class InterruptedWaitError(Exception):
    """A signal that would have ended the process came while we waited; it is used up."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


class Guard:
    """``with Guard() as guard``: HELD is masked inside, and back as it was behind it.

    ``patient``: a signal never ends a wait, but is delivered behind it."""

    def __init__(self, *, patient: bool = False) -> None:
        self._main = _in_main_thread()
        self._patient = patient
        self._before: Iterable[int] = ()
        self.ending: frozenset[int] = frozenset()

    def __enter__(self) -> Self:
        if self._main:
            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
            ours = {number for number in _ENDING if not self._patient and _would_end(number)}
            self.ending = frozenset(ours.difference(self._before))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open()

    def open(self) -> None:
        """Signals act as outside: for waiting with nothing written. They may raise out of this call."""
        if self._main:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def shut(self) -> None:
        """As inside again."""
        if self._main:
            signal.pthread_sigmask(signal.SIG_BLOCK, HELD)

    def check(self) -> None:
        """Raises InterruptedWaitError when a signal that would have ended the process is waiting."""
        if self.ending:
            pending = self.ending.intersection(signal.sigpending())
            if pending:
                raise InterruptedWaitError(signal.sigwait(pending))


def _would_end(number: int) -> bool:
    return signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}


def _in_main_thread() -> bool:
    threading = sys.modules.get("threading")
    return threading is None or threading.current_thread() is threading.main_thread()
