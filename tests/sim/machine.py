"""The disk of a simulated machine: what everybody sees, what the medium has, and what a power cut leaves of the rest.

A file has live bytes (the page cache) and durable ones; writes wait between the two until a sync. A sync that fails
loses what waited and never brings it back, whatever later syncs say, as real systems do.
"""

from __future__ import annotations

import errno
import os
import random
from itertools import pairwise

SECTOR = 512


class SimFile:
    """``pending`` are writes (data, offset) and truncations (None, size) that no sync has covered."""

    def __init__(self, inode: int) -> None:
        self.inode = inode
        self.live = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[bytes | None, int]] = []
        self.names = 1
        self.lock: int | None = None

    def change(self, data: bytes | None, at: int) -> None:
        """A write, or a truncation, that everybody sees at once."""
        _put(self.live, data, at)
        self.pending.append((data, at))

    def sync(self) -> None:
        """All that waits is on the medium."""
        for data, at in self.pending:
            _put(self.durable, data, at)
        self.pending.clear()

    def sync_failed(self, chance: random.Random, *, evict: bool) -> None:
        """Some of what waits arrived, the rest is lost; with ``evict`` the page cache forgets it too."""
        self._arrive(chance)
        if evict:
            self.live = bytearray(self.durable)

    def cut(self, chance: random.Random) -> None:
        """Power is gone and back."""
        self._arrive(chance)
        self.live = bytearray(self.durable)
        self.lock = None

    def _arrive(self, chance: random.Random) -> None:
        mood = chance.randrange(4)
        for data, at in self.pending:
            kind = mood if mood < 2 else chance.randrange(4)
            if kind == 0 or (data is None and kind > 1 and chance.random() < 0.5):
                _put(self.durable, data, at)
            elif data is not None and kind == 2:
                _put(self.durable, data[: chance.randrange(len(data) + 1)], at)
            elif data is not None and kind == 3:
                self._sectors(data, at, chance)
        self.pending.clear()

    def _sectors(self, data: bytes, at: int, chance: random.Random) -> None:
        edges = [0, *range(SECTOR - at % SECTOR, len(data), SECTOR), len(data)]
        for start, end in pairwise(edges):
            if chance.random() < 0.5:
                _put(self.durable, data[start:end], at + start)
        if chance.random() < 0.5 and len(self.durable) < at + len(data):
            self.durable.extend(bytes(at + len(data) - len(self.durable)))


class SimDirectory:
    """``pending`` are namings (None: unnamings) that no sync has covered."""

    def __init__(self) -> None:
        self.live: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}
        self.pending: list[tuple[str, Node | None]] = []

    def change(self, name: str, node: Node | None) -> None:
        """A name is given or taken away, for everybody at once."""
        _name(self.live, name, node)
        self.pending.append((name, node))

    def sync(self) -> None:
        """The names are on the medium."""
        self.durable = dict(self.live)
        self.pending.clear()

    def cut(self, chance: random.Random, *, ordered: bool) -> None:
        """Power is gone and back. ``ordered``: a journal keeps the order of changes, so that a beginning survives."""
        if ordered:
            arrived = self.pending[: chance.randrange(len(self.pending) + 1)]
        else:
            arrived = [change for change in self.pending if chance.random() < 0.5]
        for name, node in arrived:
            _name(self.durable, name, node)
        self.pending.clear()
        self.live = dict(self.durable)


Node = SimFile | SimDirectory


class Machine:
    """One disk. ``room`` is how many more bytes fit, None for plenty; ``ordered`` as in ``SimDirectory.cut``, ``evict``
    as in ``SimFile.sync_failed``."""

    def __init__(self, chance: random.Random, *, ordered: bool, evict: bool = False) -> None:
        self.chance = chance
        self.ordered = ordered
        self.evict = evict
        self.room: int | None = None
        self.root = SimDirectory()
        self._inodes = 100

    def make_file(self) -> SimFile:
        """A file without a name."""
        self._inodes += 1
        return SimFile(self._inodes)

    def take_room(self, growth: int) -> int:
        """How many bytes of a growing write fit; OSError when none do."""
        if self.room is None or growth <= 0:
            return growth
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = min(growth, self.room)
        self.room -= taken
        return taken

    def power_cut(self) -> None:
        """What was not synced survives by chance; nobody holds anything."""
        seen: set[int] = set()
        self._cut(self.root, seen)

    def _cut(self, directory: SimDirectory, seen: set[int]) -> None:
        # Files that only a lost name leads to go with it; those with a durable name stay.
        directory.cut(self.chance, ordered=self.ordered)
        for _, node in sorted(directory.live.items()):
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, SimDirectory):
                self._cut(node, seen)
            else:
                node.cut(self.chance)
        for node in directory.live.values():
            if isinstance(node, SimFile):
                node.names = sum(other is node for other in directory.live.values())


def _put(target: bytearray, data: bytes | None, at: int) -> None:
    if data is None:
        del target[at:]
    else:
        data_at = at + len(data)
        target.extend(bytes(max(at - len(target), 0)))
        target[at:data_at] = data
        return
    target.extend(bytes(max(at - len(target), 0)))


def _name(names: dict[str, Node], name: str, node: Node | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node
