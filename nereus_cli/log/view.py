"""How far the log is durable, for those who read: without a lock on a healthy log."""

from __future__ import annotations

import time
from collections.abc import Callable

from nereus_cli.log import commit, repair
from nereus_cli.log.guard import Guard
from nereus_cli.log.handle import Handle
from nereus_cli.log.mark import Mark
from nereus_cli.log.room import Room
from nereus_cli.log.tail import Tail
from nereus_cli.log.wake import Watch
from nereus_cli.ports import NotQueuedError

POLL_S_MAX = 1.0
_POLL_BLIND_S = 0.05


def durable(handle: Handle) -> Mark:
    """The mark, made believable first if it is not and we may; else what the newest segment itself proves.

    Raises FileNotFoundError, CorruptLogError, NewerFormatError."""
    mark = handle.mark()
    if mark is not None:
        return mark
    try:
        with Guard(patient=True) as guard:
            commit.mend(handle, guard)
        mark = handle.mark()
    except FileNotFoundError:
        raise
    except (OSError, NotQueuedError):
        mark = None
    return _proven(handle) if mark is None else mark


def _proven(handle: Handle) -> Mark:
    """As far as bases, headers, frames and an older mark prove it; never more, often less, than is durable."""
    tail = Tail(handle.room, write=False)
    try:
        repair.enter_newest(handle, tail)
        tail.advance()
        repair.refuse_loss(handle, tail)
        return repair.mark_below(handle, tail, tail.proven + 1)
    finally:
        tail.leave()


class Waiter:
    """Waits for the mark to be raised; inotify from the first wait on, where it works and is wanted.

    ``look`` says how far the log is durable now."""

    def __init__(self, room: Room, look: Callable[[], int], *, watch: bool) -> None:
        self._room = room
        self._look = look
        self._watch: Watch | None = None
        self._blind = not watch

    def wait(self, after: int, seconds: float) -> int:
        """As ``CommandLog.wait``."""
        end = time.monotonic() + seconds
        while True:
            watch = self._watching()
            position = self._look()
            left = end - time.monotonic()
            if position > after or left <= 0:
                return position
            if watch is None:
                time.sleep(min(left, _POLL_BLIND_S))
            elif not watch.wait(min(left, POLL_S_MAX)) and self._room.reopen_mark():
                self.close()

    def close(self) -> None:
        """Gives the watch back."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _watching(self) -> Watch | None:
        if self._watch is None and not self._blind:
            try:
                self._watch = Watch(self._room.marks)
            except OSError:
                self._blind = True
        return self._watch
