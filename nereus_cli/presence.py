"""Is there an owner, and does it make progress? Asked without taking any lock.

The owner listens on a socket in its own directory and writes a beat there; a socket that refuses means nobody,
one that accepts without a recent beat means a process that stands still.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import Final

import msgspec

from nereus_cli.codec import packed
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.instant import SECOND

STALE_NS: Final = 10 * SECOND
BEAT_EVERY_NS: Final = SECOND
_SOCKET = "sock"
_BEAT = "beat"
_BEAT_BYTES: Final = 1_024
_TROUBLE_CHARACTERS: Final = 300
_CHECK: Final = 6


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner last said of itself. ``trouble`` is why it does not dispatch, or empty."""

    pid: int
    epoch: int
    since: int
    monotonic_ns: int
    boot_id: bytes
    applied: int = 0
    running: int = 0
    trouble: str = ""
    gated_ns: int = 0


class Presence(msgspec.Struct, frozen=True):
    """``alive``, ``stale`` or ``none``; with the newest beat where there is an owner."""

    state: str
    beat: Beat | None = None


def _address(directory: int) -> str:
    """Below a directory of any depth: a socket address holds about a hundred bytes only."""
    return f"/proc/self/fd/{directory}/{_SOCKET}"


def probe(path: str, monotonic_ns: int, boot_id: bytes) -> Presence:
    """Looks at the owner's directory at ``path``; never waits for anybody. An owner that cannot be asked is none."""
    if not os.path.lexists(f"{path}/{_SOCKET}"):
        return Presence("none")
    import socket

    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return Presence("none")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.setblocking(False)  # noqa: FBT003 -- the standard library's signature
            door.connect(_address(directory) if os.path.isdir("/proc/self/fd") else f"{path}/{_SOCKET}")
    except BlockingIOError:
        pass  # a full queue of callers: somebody is there, the beat tells how it fares
    except OSError:
        return Presence("none")
    finally:
        os.close(directory)
    beat = read_beat(path)
    fresh = beat is not None and beat.boot_id == boot_id and monotonic_ns - beat.monotonic_ns < STALE_NS
    return Presence("alive" if fresh else "stale", beat)


def read_beat(path: str) -> Beat | None:
    """The newest beat, or None when none can be read. One that is being written is read again."""
    for _ in range(50):
        try:
            with open(f"{path}/{_BEAT}", "rb") as file:
                raw = file.read(_BEAT_BYTES)
        except OSError:
            return None
        body = raw[_CHECK : _CHECK + int.from_bytes(raw[4:_CHECK], "big")]
        if raw and zlib.crc32(body) == int.from_bytes(raw[:4], "big"):
            try:
                return msgspec.msgpack.decode(body, type=Beat)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return None
    return None


class OwnerSocket:
    """The owner's side: listens for as long as it lives. Whoever holds the lease may replace a dead one's."""

    def __init__(self, path: str) -> None:
        """Listens below the owner's directory at ``path``, which exists."""
        import socket

        self._directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_SOCKET, dir_fd=self._directory)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)  # noqa: FBT003 -- the standard library's signature
        old = os.umask(0o177)
        try:
            self._socket.bind(_address(self._directory) if os.path.isdir("/proc/self/fd") else f"{path}/{_SOCKET}")
        finally:
            os.umask(old)
        self._inode = os.stat(_SOCKET, dir_fd=self._directory).st_ino
        self._socket.listen(64)
        self._beat = SystemDisk().open_file(_BEAT, below=self._directory, create=True)

    def fileno(self) -> int:
        """Readable when somebody asks."""
        return self._socket.fileno()

    def answer(self) -> None:
        """Lets everybody in who waits, and out again: that it answers is the answer."""
        with contextlib.suppress(OSError):
            while True:
                self._socket.accept()[0].close()

    def beat(self, beat: Beat) -> None:
        """Says how it fares: one write over the one before, so that a full disk does not silence it. A reader tells by
        the checksum whether it saw it whole."""
        body = packed(msgspec.structs.replace(beat, trouble=beat.trouble[:_TROUBLE_CHARACTERS]))
        record = zlib.crc32(body).to_bytes(4, "big") + len(body).to_bytes(2, "big") + body
        with contextlib.suppress(OSError):
            os.pwrite(self._beat, record.ljust(_BEAT_BYTES, b"\0"), 0)

    def close(self) -> None:
        """Stops listening and takes the name away, unless another owner has it by now, as may be where locks lie."""
        with contextlib.suppress(OSError):
            if os.stat(_SOCKET, dir_fd=self._directory).st_ino == self._inode:
                os.unlink(_SOCKET, dir_fd=self._directory)
        self._socket.close()
        os.close(self._beat)
        os.close(self._directory)
