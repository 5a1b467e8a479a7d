"""A disk that remembers what was done to which file, and under which locks."""

from __future__ import annotations

import errno
import os

import msgspec

from nereus_cli.disk import SystemDisk


class Event(msgspec.Struct, frozen=True):
    """One call on a file of that name; ``held`` are the locks that this process had then."""

    call: str
    name: str
    held: frozenset[str]


class Watched(SystemDisk):
    """``failing`` counts down to the sync of data that fails, once."""

    def __init__(self, failing: int = 0) -> None:
        self.events: list[Event] = []
        self._names: dict[int, str] = {}
        self._held: set[str] = set()
        self._failing = failing

    def calls(self) -> list[str]:
        """Each as ``call name``."""
        return [f"{event.call} {event.name}" for event in self.events]

    def _saw(self, call: str, name: str) -> None:
        self.events.append(Event(call, name, frozenset(self._held)))

    def open_directory(self, path: str, *, below: int | None = None) -> int:
        fd = super().open_directory(path, below=below)
        self._names[fd] = os.path.basename(path)
        return fd

    def open_file(
        self,
        name: str,
        *,
        below: int,
        create: bool = False,
        exclusive: bool = False,
        write: bool = True,
        links: int = 1,
    ) -> int:
        fd = super().open_file(name, below=below, create=create, exclusive=exclusive, write=write, links=links)
        self._names[fd] = name
        return fd

    def make_directory(self, name: str, *, below: int) -> None:
        super().make_directory(name, below=below)
        self._saw("make", name)

    def write_at(self, fd: int, data: bytes, offset: int) -> int:
        self._saw("write", self._names[fd])
        return super().write_at(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        self._saw("truncate", self._names[fd])
        super().truncate(fd, size)

    def sync_data(self, fd: int) -> None:
        self._saw("sync", self._names[fd])
        self._failing -= 1
        if self._failing == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync_data(fd)

    def sync_directory(self, fd: int) -> None:
        self._saw("sync", self._names[fd])
        super().sync_directory(fd)

    def link(self, source: str, target: str, *, below: int) -> None:
        self._saw("link", target)
        super().link(source, target, below=below)

    def unlink(self, name: str, *, below: int) -> None:
        self._saw("unlink", name)
        super().unlink(name, below=below)

    def try_lock(self, fd: int) -> bool:
        taken = super().try_lock(fd)
        if taken:
            self._saw("take", self._names[fd])
            self._held.add(self._names[fd])
        return taken

    def unlock(self, fd: int) -> None:
        super().unlock(fd)
        self._held.discard(self._names[fd])
