"""The two locks of a log: *append* gives out positions, *sync* has the one sync in flight.

Where both are needed *sync* is taken first, never the other way round. They are kernel locks on files of their
own, so they end with their holder; every wait has an end and names the holder.
"""

from __future__ import annotations

from nereus_cli.log.guard import Guard
from nereus_cli.ports import Disk, NotQueuedError


class Lock:
    """One of the two, as seen by one handle. Not for several threads at once."""

    def __init__(self, disk: Disk, fd: int, name: str) -> None:
        self._disk = disk
        self._fd = fd
        self.name = name
        self.held = False

    def try_take(self) -> bool:
        """Takes it if nobody has it."""
        try:
            self.held = self._disk.try_lock(self._fd)
        except BaseException:
            # It may have been granted all the same.
            self.free()
            raise
        return self.held

    def take(self, seconds: float, guard: Guard | None = None) -> None:
        """Waits at most ``seconds``; signals act as usual meanwhile if a guard is given.

        Raises NotQueuedError that names the holder."""
        if self.try_take():
            return
        try:
            if guard is not None:
                guard.open()
            self.held = self._disk.lock(self._fd, seconds)
            if guard is not None:
                guard.shut()
        except BaseException:
            self.free()
            raise
        if not self.held:
            holder = self.holder()
            raise NotQueuedError(f"the {self.name} lock is {said_of(holder)}", holder=holder)

    def drop(self) -> None:
        """Gives it back; harmless when not held."""
        if self.held:
            self.free()

    def free(self) -> None:
        """Gives it back where an exception keeps anybody from knowing whether it is held."""
        self._disk.unlock(self._fd)
        self.held = False

    def holder(self) -> int | None:
        """The pid of the holder, where the kernel says it."""
        return self._disk.lock_holder(self._fd)


def said_of(holder: int | None) -> str:
    """How a message calls the holder of a lock."""
    return "held by another process" if holder is None else f"held by process {holder}"
