"""What is on the medium, apart from what the page cache shows: the model behind simulated power cuts.

A file has durable bytes and writes that no sync has covered; a directory has durable names and changes that no sync
has covered. A power cut keeps any subset of what was not covered, in any order of arrival, a write also in part.
"""

from __future__ import annotations

import os
import random
from typing import Protocol

_SECTOR_BYTES = 512


class Choice(Protocol):
    """How much of what is not durable survives a cut."""

    def keeps(self) -> bool:
        """Whether this one change survives."""

    def part(self, data: bytes) -> bytes | None:
        """What stands where a write was to go: all of it, a part with zeroes, or None for nothing."""


class Everything:
    """As a kill of all processes leaves it: nothing is lost."""

    def keeps(self) -> bool:
        return True

    def part(self, data: bytes) -> bytes | None:
        return data


class Nothing:
    """Whatever was not synced is gone."""

    def keeps(self) -> bool:
        return False

    def part(self, _data: bytes) -> bytes | None:
        return None


class Some:
    """A subset chosen by a seed: lost, kept, cut short, or with sectors zeroed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - chooses cases, not secrets

    def keeps(self) -> bool:
        return self._random.random() < 0.5  # noqa: PLR2004 - a coin

    def part(self, data: bytes) -> bytes | None:
        kind = self._random.randrange(4)
        if kind == 0:
            return None
        if kind == 1:
            return data
        if kind == 2:  # noqa: PLR2004 - the third of four ways
            return data[: self._random.randrange(len(data) + 1)]
        return b"".join(
            sector if self.keeps() else bytes(len(sector))
            for sector in (data[at : at + _SECTOR_BYTES] for at in range(0, len(data), _SECTOR_BYTES))
        )


class File:
    """``durable`` is what the medium holds; ``pending`` are the changes since, each a function on the bytes."""

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = durable
        self.pending: list[tuple[bytes | None, int]] = []

    def after(self, choice: Choice) -> bytes:
        """The bytes a cut leaves."""
        data = bytearray(self.durable)
        for written, at in self.pending:
            if written is None:
                if choice.keeps():
                    del data[at:]
                    data.extend(bytes(at - len(data)))
                continue
            part = choice.part(written)
            if part is not None:
                data.extend(bytes(max(at - len(data), 0)))
                data[at : at + len(part)] = part
        return bytes(data)


class Directory:
    """``durable`` maps names to what they name; ``pending`` are namings (None: unnamings) since."""

    def __init__(self) -> None:
        self.durable: dict[str, Node] = {}
        self.pending: list[tuple[str, Node | None]] = []

    def after(self, choice: Choice) -> dict[str, Node]:
        """The names a cut leaves."""
        names = dict(self.durable)
        for name, node in self.pending:
            if choice.keeps():
                if node is None:
                    names.pop(name, None)
                else:
                    names[name] = node
        return names


Node = File | Directory


class Medium:
    """The files below one directory of one machine, as its disk has them. What is there at first is durable."""

    def __init__(self, root: str) -> None:
        self._path = os.path.abspath(root)
        self._root = _loaded(self._path)
        self._nodes: dict[int, Node] = {}

    def after_cut(self, path: str, choice: Choice) -> None:
        """Makes the directory ``path`` and puts there what a power cut now would leave."""
        _stored(self._root, path, choice)

    def opened(self, fd: int, name: str, below: int | None) -> None:
        """A descriptor for something that exists, or for a file that was just made."""
        if below is None:
            inside = os.path.relpath(os.path.abspath(name), self._path)
            node: Node = self._root
            for part in inside.split(os.sep) if inside != "." else ():
                node = _names(node)[part]
            self._nodes[fd] = node
            return
        if name not in _names(self._nodes[below]):
            self.named(below, name, File())
        self._nodes[fd] = _names(self._nodes[below])[name]

    def named(self, below: int, name: str, node: Node | None) -> None:
        """A name was given to something, or (None) taken away."""
        _directory(self._nodes[below]).pending.append((name, node))

    def node(self, below: int, name: str) -> Node:
        """What a name stands for now."""
        return _names(self._nodes[below])[name]

    def wrote(self, fd: int, data: bytes, offset: int) -> None:
        """Bytes were taken, not synced."""
        self._file(fd).pending.append((data, offset))

    def truncated(self, fd: int, size: int) -> None:
        """The end was moved, not synced."""
        self._file(fd).pending.append((None, size))

    def synced(self, fd: int) -> None:
        """Everything pending of this file or directory is durable."""
        node = self._nodes[fd]
        if isinstance(node, File):
            node.durable = node.after(Everything())
        else:
            node.durable = node.after(Everything())
        node.pending.clear()

    def sync_failed(self, fd: int) -> bytes:
        """Everything pending of this file is lost, and no later sync brings it back. Returns what is durable."""
        file = self._file(fd)
        file.pending.clear()
        return file.durable

    def _file(self, fd: int) -> File:
        node = self._nodes[fd]
        if not isinstance(node, File):
            raise IsADirectoryError(fd)
        return node


def _directory(node: Node) -> Directory:
    if not isinstance(node, Directory):
        raise NotADirectoryError
    return node


def _names(node: Node) -> dict[str, Node]:
    return _directory(node).after(Everything())


def _loaded(path: str) -> Directory:
    directory = Directory()
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            directory.durable[entry.name] = _loaded(entry.path)
        elif entry.is_file(follow_symlinks=False):
            with open(entry.path, "rb") as file:
                directory.durable[entry.name] = File(file.read())
    return directory


def _stored(directory: Directory, path: str, choice: Choice) -> None:
    os.mkdir(path, 0o700)
    for name, node in directory.after(choice).items():
        below = os.path.join(path, name)
        if isinstance(node, Directory):
            _stored(node, below, choice)
        else:
            with open(os.open(below, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(node.after(choice))
