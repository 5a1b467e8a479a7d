"""The evidence of all keepers of a store, read once and then only where it grew."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from contextlib import suppress
from typing import Final

import msgspec

from nereus_cli.destinations.keeper_facts import (
    Closed,
    Ended,
    Lost,
    NotStarted,
    Started,
    Stopped,
    TimedOut,
    checked_lines,
    fact,
)
from nereus_cli.destinations.keeper_mounted import mount_of
from nereus_cli.destinations.keeper_store import Store, evidence_names, open_keeper, open_store

_READ_BYTES: Final = 1 << 20


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Whose file it is. ``own`` is False if the file is not the one the keeper wrote: a copy of it, or what was left
    of it when its file system was mounted anew, as behind a medium that was pulled.

    ``boot_id`` is in hexadecimal digits; ``boot_ns`` is when it was begun, by the clock that counts suspend."""

    boot_id: str
    pid: int
    wall_ns: int
    boot_ns: int
    own: bool


class Trace(msgspec.Struct, kw_only=True):
    """Everything said of one attempt. ``files`` are those that took or repeated it; ``end`` is final."""

    files: set[str] = msgspec.field(default_factory=set)
    started: Started | None = None
    timed_out: bool = False
    stopped: bool = False
    lost: bool = False
    end: Ended | NotStarted | Closed | None = None


class _File(msgspec.Struct, kw_only=True):
    head: Head | None = None
    offset: int = 0


class Evidence:
    """A snapshot that ``refresh`` brings up to date. Facts once read stay, also when their file goes."""

    def __init__(self, store: Store, only: Container[str] | None = None) -> None:
        """``only`` limits what is kept to these attempts, such as those that are open. Raises OSError."""
        opened = open_store(store)
        try:
            self._directory = open_keeper(opened)
        finally:
            os.close(opened)
        self._only = only
        self._files: dict[str, _File] = {}
        self._traces: dict[str, Trace] = {}

    def close(self) -> None:
        os.close(self._directory)

    def refresh(self) -> None:
        """Read what was added. One pass over the names, nothing is read twice."""
        for name in evidence_names(self._directory):
            with suppress(FileNotFoundError):
                self._read(name, self._files.setdefault(name, _File()))

    def trace(self, attempt_id: str) -> Trace | None:
        """What is known of an attempt, as of the last refresh."""
        return self._traces.get(attempt_id)

    def forget(self, attempt_ids: Iterable[str]) -> None:
        """Let go of attempts that are settled."""
        for attempt_id in attempt_ids:
            self._traces.pop(attempt_id, None)

    def heads(self) -> list[Head]:
        """The heads of all files that have one, in the order of the names."""
        return [file.head for _, file in sorted(self._files.items()) if file.head is not None]

    def _read(self, name: str, file: _File) -> None:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=self._directory)
        try:
            rest = b""
            while data := os.pread(fd, _READ_BYTES, file.offset + len(rest)):
                whole, newline, rest = (rest + data).rpartition(b"\n")
                file.offset += len(whole) + len(newline)
                for words in checked_lines(whole):
                    self._take(name, file, words, fd)
        finally:
            os.close(fd)

    def _take(self, name: str, file: _File, words: list[str], fd: int) -> None:
        if words[0] == "HEAD":
            file.head = file.head or _head(words, fd)
        elif len(words) > 1 and (self._only is None or words[1] in self._only):
            self._note(name, words)

    def _note(self, name: str, words: list[str]) -> None:
        said = fact(words)
        if said is None and words[0] != "TAKEN":
            return
        trace = self._traces.setdefault(words[1], Trace())
        match said:
            case None:
                trace.files.add(name)
            case Started():
                trace.files.add(name)
                trace.started = said
            case TimedOut():
                trace.timed_out = True
            case Stopped():
                trace.stopped = True
            case Lost():
                trace.lost = True
            case Ended():
                trace.end = said
            case NotStarted() | Closed() if trace.end is None:
                trace.end = said
            case _:
                return


def _head(words: list[str], fd: int) -> Head | None:
    own = os.fstat(fd)
    try:
        _, _, boot_id, device, inode, pid, wall_ns, boot_ns = words[:8]
        same = (int(device), int(inode)) == (own.st_dev, own.st_ino)
        # Not said by earlier versions, not known on every system.
        mount = int(words[8]) if len(words) > 8 else 0  # noqa: PLR2004 -- the ninth word
        same = same and mount in {0, mount_of(fd) or mount}
        return Head(boot_id=boot_id, pid=int(pid), wall_ns=int(wall_ns), boot_ns=int(boot_ns), own=same)
    except ValueError:
        return None
