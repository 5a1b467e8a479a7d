"""One stream of a child: a pipe that is always read, a file that holds its beginning.

The child never blocks for long and never fails because of us: what goes beyond the bound, or finds the disk full,
is counted and dropped.
"""

import os

READ_BYTES = 1 << 16
# What a pipe can hold at most, as far as a child without privileges can widen it.
DRAIN_BYTES_MAX = 1 << 20


class Stream:
    """The reading end and what became of its bytes. ``total`` counts all, ``kept`` those in the file."""

    __slots__ = ("_file", "_path", "_room", "_store", "fd", "kept", "total")

    def __init__(self, fd: int, store: int, path: str, bytes_max: int) -> None:
        """``fd`` is the reading end, ours from now on; ``path`` is below ``store`` and made when first needed."""
        os.set_blocking(fd, False)
        self.fd = fd
        self.total = 0
        self.kept = 0
        self._store = store
        self._path = path
        self._room = bytes_max
        self._file = -1

    def ended(self) -> bool:
        """Whether the last writer closed it, and we did."""
        return self.fd < 0

    def read(self) -> int:
        """Read once. Returns the number of bytes; 0 if there are none now or, with ``ended``, none to come."""
        try:
            data = os.read(self.fd, READ_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self.close()
            return 0
        self.total += len(data)
        if self._room:
            self._keep(data[: self._room])
        return len(data)

    def drain(self) -> None:
        """Read what is in the pipe, without waiting for its end: somebody else may hold that open."""
        left = DRAIN_BYTES_MAX
        while not self.ended() and left > 0:
            done = self.read()
            if done == 0:
                return
            left -= done

    def close(self) -> None:
        """Let go of pipe and file; a writer that is left gets SIGPIPE."""
        for fd in (self.fd, self._file):
            if fd >= 0:
                os.close(fd)
        self.fd = self._file = -1
        self._room = 0

    def _keep(self, data: bytes) -> None:
        try:
            if self._file < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(self._path, flags, 0o600, dir_fd=self._store)
            while data:
                done = os.write(self._file, data)
                self.kept += done
                self._room -= done
                data = data[done:]
        except OSError:
            # What is kept is a beginning without holes, so the first failure ends it.
            self._room = 0
        if not self._room and self._file >= 0:
            os.close(self._file)
            self._file = -1
