"""What a power cut may leave of what a trace did: the rules of POSIX, and those of ext4 as it is usually mounted.

posix   whatever no sync covered may be there or not, each change for itself, a write also in part or as zeroes
ext4    names come and go in order (one journal); bytes behind the end of a file appear in order and by blocks

A sync of a file covers its bytes and its size, one of a directory its names; under ext4 either also everything
that happened to names up to the last thing that happened to that node.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from tests.crash.traces import Data, Event, Name, Said, Sync, Trace

_BLOCK: Final = 4_096
_SECTOR: Final = 512

Part = Callable[[bytes], bytes]


class Tree(msgspec.Struct):
    """Files by path, below the root."""

    files: dict[str, bytes]
    directories: set[str]


class State(msgspec.Struct, frozen=True):
    """What is found behind a cut, and what had been said by then. ``how`` reproduces it."""

    tree: Tree
    said: Sequence[Said]
    how: str


class Model:
    """One trace under one profile."""

    def __init__(self, trace: Trace, profile: str) -> None:
        self.trace = trace
        self.profile = profile
        self.changes = [event for event in trace.events if isinstance(event, Data | Name)]
        self.syncs = [event for event in trace.events if isinstance(event, Sync)]
        self.said = [event for event in trace.events if isinstance(event, Said)]
        self._covered = {id(change): self._covered_from(change) for change in self.changes}

    def moments(self) -> list[int]:
        """Behind each line at which something changed, was synced or was said."""
        return sorted({line for event in self.trace.events for line in _lines(event)})

    def states(self, moment: int, count: int, chance: random.Random) -> Iterator[State]:
        """At most ``count`` states that a cut at that moment may leave: first nothing more than what is durable,
        then everything, then each open change alone and all but it, then random ones."""
        begun = [change for change in self.changes if change.begun <= moment]
        fixed = {id(change) for change in begun if self._covered[id(change)] <= moment}
        free = [change for change in begun if id(change) not in fixed]
        said = [one for one in self.said if one.begun <= moment]
        for number, kept in enumerate(self._choices(free, count, chance)):
            tree = self._tree(begun, fixed, kept)
            yield State(tree, said, f"{self.profile}, line {moment}, choice {number}: kept {_numbers(free, kept)}")

    def _choices(self, free: Sequence[Data | Name], count: int, chance: random.Random) -> Iterator[dict[int, Part]]:
        whole: Part = bytes
        everything = {id(change): whole for change in free}
        plain = [{}, everything] if free else [{}]
        plain += [{id(change): whole} for change in free]
        plain += [{key: part for key, part in everything.items() if key != id(change)} for change in free]
        if len(plain) > max(count // 2, 2):
            plain = plain[:2] + chance.sample(plain[2:], max(count // 2 - 2, 0))
        for choice in plain:
            yield self._lawful(free, choice)
        for _ in range(count - len(plain) if free else 0):
            yield self._lawful(free, {id(one): _part(self.profile, chance) for one in free if chance.random() < 0.5})

    def _lawful(self, free: Sequence[Data | Name], kept: dict[int, Part]) -> dict[int, Part]:
        """Under ext4: nothing that happened to names without what happened before, no bytes behind a missing end."""
        if self.profile == "posix":
            return kept
        lawful: dict[int, Part] = {}
        names = True
        ends: set[int] = set()
        for change in free:
            key = id(change)
            if isinstance(change, Name):
                names = names and key in kept
                if names:
                    lawful[key] = bytes
            elif key in kept and change.node not in ends:
                lawful[key] = kept[key]
            if isinstance(change, Data) and change.offset >= _BLOCK // 8 and kept.get(key) is not bytes:
                ends.add(change.node)
        return lawful

    def _tree(self, begun: Sequence[Data | Name], fixed: set[int], kept: dict[int, Part]) -> Tree:
        names: dict[int, dict[str, int]] = {}
        contents: dict[int, bytearray] = {}
        for change in begun:
            key = id(change)
            if key not in fixed and key not in kept:
                continue
            if isinstance(change, Name):
                for directory, name, node in change.names:
                    if node is None:
                        names.setdefault(directory, {}).pop(name, None)
                    else:
                        names.setdefault(directory, {})[name] = node
            else:
                _write(contents.setdefault(change.node, bytearray()), change, kept.get(key, bytes))
        tree = Tree({}, set())
        self._walk(0, "", names, contents, tree)
        return tree

    def _walk(
        self, node: int, path: str, names: dict[int, dict[str, int]], contents: dict[int, bytearray], tree: Tree
    ) -> None:
        for name, below in names.get(node, {}).items():
            place = f"{path}/{name}" if path else name
            if below in self.trace.directories:
                tree.directories.add(place)
                self._walk(below, place, names, contents, tree)
            else:
                tree.files[place] = bytes(contents.get(below, b""))

    def _covered_from(self, change: Data | Name) -> int:
        """The line from which on a change is durable."""
        lines = [sync.done for sync in self.syncs if sync.begun > change.done and self._covers(sync, change)]
        return min(lines, default=1 << 60)

    def _covers(self, sync: Sync, change: Data | Name) -> bool:
        if isinstance(change, Data):
            return sync.node == change.node
        if sync.directory and any(directory == sync.node for directory, _, _ in change.names):
            return True
        if self.profile == "posix":
            return False
        return any(
            other.done < sync.begun and other.begun >= change.begun and _concerns(other, sync.node)
            for other in self.changes
            if isinstance(other, Name)
        )


def _concerns(name: Name, node: int) -> bool:
    return any(node in {directory, given} for directory, _, given in name.names)


def _write(content: bytearray, change: Data, part: Part) -> None:
    if change.data is None:
        del content[change.offset :]
        content.extend(bytes(change.offset - len(content)))
        return
    data = part(change.data)
    content.extend(bytes(max(change.offset - len(content), 0)))
    content[change.offset : change.offset + len(data)] = data


def _part(profile: str, chance: random.Random) -> Part:
    """What of a write gets there."""
    kind = chance.randrange(4)
    at = chance.random()
    if kind < 2:
        return bytes
    if profile == "ext4":
        return lambda data: data if len(data) < _BLOCK else data[: int(len(data) * at) // _BLOCK * _BLOCK]
    if kind == 2:
        return lambda data: data[: int(len(data) * at)]
    first = chance.randrange(2)
    return lambda data: b"".join(
        data[start : start + _SECTOR] if (start // _SECTOR + first) % 2 else bytes(len(data[start : start + _SECTOR]))
        for start in range(0, len(data), _SECTOR)
    )


def _lines(event: Event) -> set[int]:
    return {event.begun, event.done}


def _numbers(free: Sequence[Data | Name], kept: dict[int, Part]) -> str:
    lines = [str(change.begun) for change in free if id(change) in kept]
    return f"{','.join(lines)} of {','.join(str(change.begun) for change in free)}"
