"""Waiting for descriptors: one poll object and what to call for each."""

import select
from collections.abc import Callable

READ = select.POLLIN
WRITE = select.POLLOUT


class Loop:
    """Handlers are called with nothing and find out by themselves; a call in vain does no harm."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[], None]] = {}

    def add(self, fd: int, handler: Callable[[], None], events: int = READ) -> None:
        self._handlers[fd] = handler
        self._poll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        self._poll.modify(fd, events)

    def remove(self, fd: int) -> None:
        del self._handlers[fd]
        self._poll.unregister(fd)

    def wait(self, timeout_ms: int | None) -> list[Callable[[], None]]:
        """What to call now; waits for something, at most ``timeout_ms``."""
        ready = self._poll.poll(timeout_ms)
        return [handler for fd, _ in ready if (handler := self._handlers.get(fd)) is not None]
