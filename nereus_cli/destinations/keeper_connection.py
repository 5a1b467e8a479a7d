"""One connection to one keeper: never blocks after its greeting."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from nereus_cli.destinations.keeper_facts import checked_lines
from nereus_cli.destinations.keeper_launch import KeeperAwayError
from nereus_cli.destinations.keeper_store import near

_READ_BYTES: Final = 1 << 18
# At most this much is read in one go, so that a talkative keeper does not hold up its daemon.
_READS_MAX: Final = 8


class Connection:
    """Made by ``greet``. ``protocol`` and ``keeper`` are what it said of itself, ``pid`` is its process."""

    def __init__(self, peer: socket.socket, hello: list[str], unread: bytes) -> None:
        self._peer = peer
        self._unread = unread
        self._out = bytearray()
        self.protocol = int(hello[1])
        self.keeper = hello[2]
        self.pid = int(hello[3])
        self.gone = False
        peer.setblocking(False)  # noqa: FBT003 - its signature is not ours

    def fileno(self) -> int:
        return self._peer.fileno()

    @property
    def unsent(self) -> bool:
        """Whether something waits until the keeper reads."""
        return bool(self._out) and not self.gone

    def send(self, data: bytes) -> None:
        """Send what can be sent now and keep the rest."""
        self._out += data
        self.flush()

    def flush(self) -> None:
        """Send more of what waits; a keeper that is gone is found out by reading."""
        with suppress(OSError):
            while self._out:
                del self._out[: self._peer.send(self._out)]

    def lines(self) -> Iterator[list[str]]:
        """The lines that have come, without waiting; ``gone`` once there will be no more."""
        data = [self._unread]
        for _ in range(_READS_MAX):
            try:
                more = self._peer.recv(_READ_BYTES)
            except BlockingIOError:
                break
            except OSError:
                more = b""
            if not more:
                self.gone = True
                break
            data.append(more)
        whole, _, self._unread = b"".join(data).rpartition(b"\n")
        return checked_lines(whole)

    def close(self) -> None:
        self._peer.close()


def greet(directory: int, name: str, timeout_s: float) -> Connection | None:
    """Connect to a socket in an open ``keeper/`` and wait for the greeting.

    None if nobody listens there. Raises KeeperAwayError if somebody does and does not answer in time."""
    peer = socket.socket(socket.AF_UNIX)
    try:
        peer.settimeout(max(timeout_s, 0.001))
        near(directory, name, peer.connect)
        return _greeted(peer)
    except (FileNotFoundError, ConnectionError):
        peer.close()
        return None
    except TimeoutError:
        peer.close()
        raise KeeperAwayError("the keeper does not answer") from None
    except BaseException:
        peer.close()
        raise


def _greeted(peer: socket.socket) -> Connection:
    data = b""
    while b"\n" not in data:
        more = peer.recv(_READ_BYTES)
        if not more:
            raise ConnectionResetError
        data += more
    first, _, unread = data.partition(b"\n")
    for hello in checked_lines(first):
        if hello[0] == "HELLO" and len(hello) > 3 and hello[1].isdecimal() and hello[3].isdecimal():  # noqa: PLR2004 - protocol, name, pid
            return Connection(peer, hello, unread)
    raise KeeperAwayError("what listens on the keeper's socket is not a keeper")
