"""The sockets of the keeper: two places to listen, and the daemons that came.

``sock`` is where starts are accepted and goes with the lock when draining begins; ``NAME.sock`` stays to the end, so
that the next daemon still hears of the attempts of a keeper that drains, and can stop them.
"""

import os
import socket
import sys
from collections.abc import Callable

from nereus_cli.keeper import PROTOCOL
from nereus_cli.keeper.lines import line
from nereus_cli.keeper.loop import READ, WRITE, Loop
from nereus_cli.keeper.wire import Drain, MalformedError, Start, Stop, parse, split

ACCEPTING = "sock"
READ_BYTES = 1 << 18
# A daemon that stopped reading is let go; it finds everything in the evidence when it comes back.
UNREAD_BYTES_MAX = 16 << 20

Request = Start | Stop | Drain | MalformedError


class Daemons:
    """Accepts, reads requests, sends lines to everybody connected."""

    def __init__(self, directory: int, name: str, loop: Loop, ask: Callable[[Request], None]) -> None:
        """``ask`` is called for each request, in the order of arrival. Raises OSError if nobody can listen."""
        self._directory = directory
        self._loop = loop
        self._ask = ask
        self._hello = line("HELLO", PROTOCOL, name, os.getpid())
        self._connections: set[_Connection] = set()
        self._listeners: dict[str, socket.socket] = {}
        for place in (f"{name}.sock", ACCEPTING):
            self._listeners[place] = self._listen(place)

    def __bool__(self) -> bool:
        return bool(self._connections)

    @property
    def unsent(self) -> bool:
        """Whether somebody has yet to take what was said."""
        return any(connection.out for connection in self._connections)

    def say(self, data: bytes) -> None:
        for connection in list(self._connections):
            connection.say(data)

    def leave(self, place: str) -> None:
        """No longer listen there; those connected stay."""
        listener = self._listeners.pop(place)
        self._loop.remove(listener.fileno())
        remove(self._directory, place)
        listener.close()

    def leave_all(self) -> None:
        for place in list(self._listeners):
            self.leave(place)

    def _listen(self, place: str) -> socket.socket:
        remove(self._directory, place)
        listener = socket.socket(socket.AF_UNIX)
        near(self._directory, place, listener.bind)
        listener.listen(16)
        listener.settimeout(0)
        self._loop.add(listener.fileno(), lambda: self._accept(listener))
        return listener

    def _accept(self, listener: socket.socket) -> None:
        try:
            accepted = listener.accept()[0]
        except OSError:
            return
        accepted.settimeout(0)
        connection = _Connection(accepted, self._loop, self._ask, self._connections.discard)
        self._connections.add(connection)
        connection.say(self._hello)


class _Connection:
    """One daemon. What it has sent whole is carried out even if it is gone by then."""

    def __init__(
        self,
        peer: socket.socket,
        loop: Loop,
        ask: Callable[[Request], None],
        gone: Callable[["_Connection"], None],
    ) -> None:
        self._peer = peer
        self._loop = loop
        self._ask = ask
        self._gone = gone
        self._fd = peer.fileno()
        self._buffer = bytearray()
        self.out = bytearray()
        self._writes = False
        loop.add(self._fd, self._ready)

    def say(self, data: bytes) -> None:
        self.out += data
        self._send()

    def _ready(self) -> None:
        if self.out:
            self._send()
        if self._fd >= 0:
            self._receive()

    def _send(self) -> None:
        try:
            while self.out:
                del self.out[: self._peer.send(self.out)]
        except BlockingIOError:
            pass
        except OSError:
            self._close()
            return
        if len(self.out) > UNREAD_BYTES_MAX:
            self._close()
        elif bool(self.out) is not self._writes:
            self._writes = bool(self.out)
            self._loop.change(self._fd, READ | WRITE if self._writes else READ)

    def _receive(self) -> None:
        try:
            data = self._peer.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._buffer += data
        try:
            for body in split(self._buffer):
                self._ask(_request(body))
        except MalformedError as wrong:
            self._ask(wrong)
            data = b""
        if not data:
            self._close()

    def _close(self) -> None:
        if self._fd < 0:
            return
        self._loop.remove(self._fd)
        self._fd = -1
        self._peer.close()
        self.out.clear()
        self._gone(self)


def _request(body: bytes) -> Request:
    try:
        return parse(body)
    except MalformedError as wrong:
        return wrong


def near(directory: int, name: str, use: Callable[[str], None]) -> None:
    """Call bind or connect with an address for a name in an open directory, however long its path is.

    A socket address holds about a hundred bytes. Linux reaches the directory by its descriptor; elsewhere it is
    entered for the moment of the call."""
    if sys.platform == "linux" and os.path.isdir(f"/proc/self/fd/{directory}"):
        use(f"/proc/self/fd/{directory}/{name}")
        return
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fchdir(directory)
        use(name)
    finally:
        os.fchdir(here)
        os.close(here)


def remove(directory: int, name: str) -> None:
    """Remove a name that may be gone already."""
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return
