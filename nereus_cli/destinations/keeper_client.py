"""The daemon's side of the keeper: find or start it, hand it attempts, hear what became of them.

The order that loses nothing: ``connect`` first, before the first Admission of a shell attempt, because only evidence
that is older than an Admission can prove that an attempt never started; then ``decide_all`` for what an earlier
owner left open; then ``pump`` whenever ``fileno`` is readable. A fact may be told both ways; it is the same fact.
After KeeperGone everything open is decided again, after KeeperGone (accepting) or KeeperDraining ``connect`` is
called again before the next start. An attempt is handed over once, whatever happens then.
"""

from __future__ import annotations

import os
import selectors
import sys
import time
from collections.abc import Sequence
from typing import Final

from nereus_cli.destinations.keeper_connection import Connection, greet
from nereus_cli.destinations.keeper_facts import Fact, KeeperDraining, KeeperGone, fact
from nereus_cli.destinations.keeper_launch import KEEPER_ENTRY, KeeperAwayError, Launcher
from nereus_cli.destinations.keeper_requests import DRAIN, StartRequest, start_frame, stop_frame
from nereus_cli.destinations.keeper_store import Store, open_keeper, open_store

PROTOCOL: Final = 1
_ACCEPTING: Final = "sock"
_PAUSE_S: Final = 0.01
# A keeper that drains is asked for, not waited for: it may be stopped.
_DRAINING_ANSWERS_WITHIN_S: Final = 0.5

__all__ = ["KeeperAwayError", "KeeperClient", "StartRequest"]


class KeeperClient:
    """Not for several threads. Nothing but ``connect`` ever waits."""

    def __init__(
        self,
        store: Store,
        boot_id: bytes,
        *,
        python: str = sys.executable,
        entry: str = KEEPER_ENTRY,
        idle_s: float = 2.0,
    ) -> None:
        """``boot_id`` (16 bytes) is what frames call this boot. A keeper that this client starts ends ``idle_s``
        after its last child, once nobody is connected. Raises OSError if the store cannot be opened."""
        self._store = open_store(store)
        self._directory = open_keeper(self._store)
        self._launcher = Launcher(python, entry, boot_id, idle_s)
        self._selector = selectors.DefaultSelector()
        self._connections: dict[str, Connection] = {}
        self._accepting: Connection | None = None
        self._closed = False
        self._dying: set[int] = set()

    @property
    def accepting(self) -> bool:
        """Whether a keeper is connected that takes starts, as far as was heard."""
        return self._accepting is not None

    @property
    def pid(self) -> int | None:
        """The process of the keeper that takes starts: for people to read, never to signal."""
        return self._accepting.pid if self._accepting else None

    def connect(self, timeout_s: float = 10.0) -> None:
        """Be connected to a keeper of our protocol, started if need be; one of another is told to drain.

        Also connects to those that drain, which still report. Raises KeeperAwayError."""
        self._bury()
        until = time.monotonic() + timeout_s
        while self._accepting is None:
            left = until - time.monotonic()
            if left <= 0:
                raise KeeperAwayError("no keeper could be reached in time")
            found = greet(self._directory, _ACCEPTING, left)
            if found is None:
                self._launcher.launch(self._store, left)
            elif found.protocol == PROTOCOL:
                self._adopt(found)
                self._accepting = found
            else:
                self._adopt(found)
                found.send(DRAIN)
            if self._accepting is None:
                time.sleep(_PAUSE_S)
        self._join_draining()

    def fileno(self) -> int:
        """Readable when ``pump`` has something to do, be it to read or to send."""
        return self._selector.fileno()

    def wants_write(self) -> bool:
        """Whether something waits to be sent; ``pump`` sends it."""
        return any(connection.unsent for connection in self._connections.values())

    def start(self, requests: Sequence[StartRequest]) -> None:
        """Hand over attempts, in order, with one send. Returns at once.

        Raises KeeperAwayError if no keeper takes starts, ValueError for a request over 16 MiB: none was sent then."""
        if self._accepting is None:
            raise KeeperAwayError("no keeper is connected")
        self._send(self._accepting, b"".join(map(start_frame, requests)))

    def stop(self, attempt_id: str, *, kill: bool = False) -> None:
        """End an attempt: TERM, its grace, KILL; with ``kill`` at once KILL. Nothing happens if it has ended."""
        for connection in list(self._connections.values()):
            self._send(connection, stop_frame(attempt_id, kill=kill))

    def drain(self) -> None:
        """Have the accepting keeper take no more starts; KeeperDraining follows."""
        if self._accepting is not None:
            self._send(self._accepting, DRAIN)

    def pump(self) -> list[Fact]:
        """Send what waits, and return what came, without waiting."""
        self._bury()
        facts: list[Fact] = []
        for key, events in self._selector.select(0):
            connection: Connection = key.data
            if events & selectors.EVENT_WRITE:
                self._send(connection, b"")
            if events & selectors.EVENT_READ:
                facts += self._receive(connection)
        return facts

    def close(self) -> None:
        """Leave; the keeper and its children go on. Harmless when repeated."""
        if self._closed:
            return
        self._closed = True
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._accepting = None
        self._selector.close()
        os.close(self._directory)
        os.close(self._store)

    def _join_draining(self) -> None:
        for name in os.listdir(self._directory):
            keeper, dot, _ = name.rpartition(".sock")
            if dot and keeper not in self._connections:
                try:
                    found = greet(self._directory, name, _DRAINING_ANSWERS_WITHIN_S)
                except OSError:
                    continue
                if found is not None:
                    self._adopt(found)

    def _adopt(self, connection: Connection) -> None:
        before = self._connections.pop(connection.keeper, None)
        if before is not None:
            self._drop(before)
        self._connections[connection.keeper] = connection
        self._selector.register(connection, selectors.EVENT_READ, connection)

    def _drop(self, connection: Connection) -> None:
        self._selector.unregister(connection)
        connection.close()

    def _send(self, connection: Connection, data: bytes) -> None:
        connection.send(data)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
        self._selector.modify(connection, events, connection)

    def _receive(self, connection: Connection) -> list[Fact]:
        facts = [said for words in connection.lines() if (said := fact(words)) is not None]
        if self._accepting is connection and any(isinstance(said, KeeperDraining) for said in facts):
            self._accepting = None
        if connection.gone:
            del self._connections[connection.keeper]
            self._drop(connection)
            self._dying.add(connection.pid)
            self._bury()
            facts.append(KeeperGone(keeper=connection.keeper, accepting=connection is self._accepting))
            if connection is self._accepting:
                self._accepting = None
        return facts

    def _bury(self) -> None:
        """Where this process is the one that orphans come to, such as the first of a container, a keeper ends as its
        child. Asked for at once, a pid that is not its child cannot have become one."""
        for pid in list(self._dying):
            try:
                gone = os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:
                gone = True
            if gone:
                self._dying.discard(pid)
