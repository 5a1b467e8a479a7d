"""The directories of a store that a keeper works in, and the lock that makes it the one."""

import fcntl
import os
import time
from contextlib import suppress

LOCK_WAIT_S = 0.1


class Place:
    """``store`` and ``keeper`` are open directories, reached by descriptor however long or moved their path is."""

    def __init__(self, store: int) -> None:
        """Takes over ``store``. Raises BlockingIOError if another keeper serves it, OSError if it cannot be used."""
        os.set_inheritable(store, False)  # noqa: FBT003 - its signature is not ours
        self.store = store
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        with suppress(FileExistsError):
            os.mkdir("keeper", 0o700, dir_fd=store)
        self.keeper = os.open("keeper", flags, dir_fd=store)
        # Closed by exec and not by fork: a child that has yet to exec may still start, and holds it.
        self._lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=self.keeper)
        self._take()

    def _take(self) -> None:
        # Somebody who asks whether a keeper lives holds the lock for a moment.
        until = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return

    def unlock(self) -> None:
        """Another keeper may serve from now on."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)
