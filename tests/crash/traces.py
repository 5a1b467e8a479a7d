"""From a trace of several processes to what they did to the files below one directory, in order.

Times are line numbers of the trace. strace holds every call at its entry and at its end, so a call that ended on an
earlier line than another began was over by then, whatever the processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

_CALL: Final = re.compile(r"^(\d+) +(\w+)\((.*)$")
_RESUMED: Final = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
_RESULT: Final = re.compile(r"^(.*)\)\s+= (-?\d+)(?:<((?:\\x[0-9a-f]{2}|[^>])*)>)?.*$")
_STRING: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_PLACE: Final = re.compile(r"^(AT_FDCWD|\d+)(?:<((?:\\x[0-9a-f]{2})*)>)?(?:\(deleted\))?(?:, |$)")
CALLS: Final = (
    "openat", "open", "creat", "write", "pwrite64", "ftruncate", "link", "linkat", "unlink", "unlinkat", "rename",
    "renameat", "renameat2", "mkdir", "mkdirat", "symlink", "symlinkat", "fsync", "fdatasync",
)  # fmt: skip
OPTIONS: Final = ("-xx", "-s", str(1 << 21), "-e", "trace=" + ",".join(f"?{name}" for name in CALLS))


class Data(msgspec.Struct, frozen=True):
    """Bytes were put into a file, or (None) its end was moved to ``offset``."""

    node: int
    offset: int
    data: bytes | None
    begun: int
    done: int


class Name(msgspec.Struct, frozen=True):
    """A directory gave names (to nodes) or took them away (None), all at once."""

    directory: int
    names: tuple[tuple[int, str, int | None], ...]
    begun: int
    done: int


class Sync(msgspec.Struct, frozen=True):
    """What was done to a node before ``begun`` is durable from ``done`` on."""

    node: int
    directory: bool
    begun: int
    done: int


class Said(msgspec.Struct, frozen=True):
    """A process said something on the file ``path``: what it said could be heard from ``begun`` on."""

    path: str
    data: bytes
    begun: int
    done: int


Event = Data | Name | Sync | Said


class Trace:
    """``events`` in the order in which they began. Node 0 is the directory itself; ``directories`` are nodes too."""

    def __init__(self, file: Path, root: Path) -> None:
        self.root = str(root)
        self.events: list[Event] = []
        self.directories: set[int] = {0}
        self._nodes: dict[str, int] = {self.root: 0}
        self._sizes: dict[int, int] = {}
        self._next = 1
        for name, arguments, result, path, begun, done in _calls(file):
            if result >= 0:
                self._take(name, arguments, result, path, begun, done)
        self.events.sort(key=lambda event: event.begun)

    def _take(self, name: str, arguments: str, result: int, path: str, begun: int, done: int) -> None:
        if name in {"openat", "open", "creat"}:
            self._opened(path, arguments, begun, done)
        elif name in {"write", "pwrite64"}:
            self._wrote(name, arguments, result, begun, done)
        elif name in {"fsync", "fdatasync"}:
            node = self._nodes.get(_place(arguments))
            if node is not None:
                self.events.append(Sync(node, node in self.directories, begun, done))
        elif name == "ftruncate":
            node = self._nodes.get(_place(arguments))
            if node is not None:
                size = int(arguments.rsplit(",", 1)[1])
                self._sizes[node] = size
                self.events.append(Data(node, size, None, begun, done))
        else:
            self._named(name, _paths(name, arguments), begun, done)

    def _opened(self, path: str, arguments: str, begun: int, done: int) -> None:
        if not self._inside(path):
            return
        if path not in self._nodes and "O_CREAT" in arguments:
            self._name(path, self._node(path), begun, done)
        if "O_TRUNC" in arguments and self._sizes.get(self._nodes[path]):
            self._sizes[self._nodes[path]] = 0
            self.events.append(Data(self._nodes[path], 0, None, begun, done))

    def _wrote(self, name: str, arguments: str, result: int, begun: int, done: int) -> None:
        path = _place(arguments)
        found = _STRING.search(arguments)
        data = _bytes(found[1])[:result] if found else b""
        node = self._nodes.get(path)
        if node is None:
            if not self._inside(path):
                self.events.append(Said(path, data, begun, done))
            return
        size = self._sizes.get(node, 0)
        offset = int(arguments.rsplit(",", 1)[1]) if name == "pwrite64" else size
        self._sizes[node] = max(size, offset + len(data))
        self.events.append(Data(node, offset, data, begun, done))

    def _named(self, name: str, paths: list[str], begun: int, done: int) -> None:
        path = paths[-1]
        if not self._inside(path):
            return
        if name.startswith("mkdir"):
            node = self._node(path)
            self.directories.add(node)
            self._name(path, node, begun, done)
        elif name.startswith("unlink"):
            self._name(path, None, begun, done)
        elif name.startswith("link"):
            self._nodes[path] = self._nodes[paths[0]]
            self._name(path, self._nodes[path], begun, done)
        elif name.startswith("rename"):
            node = self._nodes.pop(paths[0])
            self._nodes[path] = node
            gone = (*self._entry(paths[0]), None)
            self.events.append(Name(self._entry(path)[0], (gone, (*self._entry(path), node)), begun, done))

    def _name(self, path: str, node: int | None, begun: int, done: int) -> None:
        directory, name = self._entry(path)
        self.events.append(Name(directory, ((directory, name, node),), begun, done))

    def _entry(self, path: str) -> tuple[int, str]:
        above, name = os.path.split(path)
        return self._nodes[above], name

    def _node(self, path: str) -> int:
        self._nodes[path] = self._next
        self._next += 1
        return self._nodes[path]

    def _inside(self, path: str) -> bool:
        return path.startswith(self.root + "/")


def _calls(file: Path) -> Iterator[tuple[str, str, int, str, int, int]]:
    """Name, arguments, result, the path of a result, first and last line of each call that ended."""
    pending: dict[str, tuple[str, int]] = {}
    with file.open(encoding="ascii", errors="replace") as lines:
        for number, line in enumerate(lines):
            resumed = _RESUMED.match(line)
            if resumed:
                before, begun = pending.pop(resumed[1], ("", number))
                name, text = resumed[2], before + resumed[3]
            else:
                call = _CALL.match(line)
                if call is None:
                    continue
                begun, name, text = number, call[2], call[3]
                if text.rstrip().endswith("<unfinished ...>"):
                    pending[call[1]] = text.rstrip().removesuffix("<unfinished ...>").rstrip(), number
                    continue
            ended = _RESULT.match(text.rstrip())
            if ended:
                path = _bytes(ended[3] or "").decode()
                yield name, ended[1], int(ended[2]), path, begun, number


def _place(arguments: str) -> str:
    """The path of the descriptor that is the first argument."""
    found = _PLACE.match(arguments)
    return _bytes(found[2] or "").decode() if found else ""


def _paths(name: str, arguments: str) -> list[str]:
    """The paths a call names, absolute."""
    if name.startswith("symlink"):
        arguments = arguments.split(", ", 1)[1]
    paths = []
    while arguments:
        place = _PLACE.match(arguments)
        below = _bytes(place[2] or "").decode() if place else ""
        arguments = arguments[place.end() :] if place else arguments
        said = _STRING.match(arguments)
        if said is None:
            break
        paths.append(os.path.join(below, _bytes(said[1]).decode()))
        arguments = arguments[said.end() :].removeprefix(", ")
    return paths


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
