"""A disk that fails when told to, and remembers what a power cut may leave.

Every call that reaches the disk is numbered, so that a test can run its work once to count them and then once more
for each call, with a crash or an error there. A crash is not an error: from that call on nothing of this process
happens any more. Several disks may share one ``Medium``, as several processes share one machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

import msgspec

from nereus_cli.ports import Disk
from nereus_cli.testing.medium import Directory, Medium

_P = ParamSpec("_P")
_R = TypeVar("_R")


class CrashedError(BaseException):
    """The process that used this disk is no more. Not an Exception, so that nothing handles it by accident."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """At call number ``at`` (from 1) of those named ``only`` (all if empty): a crash, or ``error`` if that is not 0.

    ``after``: the call takes effect first. ``for_ever``: so do all later ones. ``short``: a write takes half of its
    bytes first."""

    at: int
    only: str = ""
    error: int = 0
    after: bool = False
    for_ever: bool = False
    short: bool = False


class FaultDisk:
    """A ``Disk`` in front of another one. ``calls`` are the names of the calls so far, ``hits`` how often the fault
    struck. ``forget`` closes what the crashed process had open, as the system would. ``evict``: after a failed sync the
    file shows what the medium has, as when the page cache drops the pages that could not be written."""

    def __init__(
        self, inner: Disk, *, faults: Sequence[Fault] = (), medium: Medium | None = None, evict: bool = False
    ) -> None:
        self._inner = inner
        self._faults = faults
        self._open: set[int] = set()
        self._evict = evict
        self.medium = medium
        self.calls: list[str] = []
        self.hits = 0
        self.crashed = False

    def forget(self) -> None:
        """Gives back every descriptor and lock of the crashed process."""
        self.crashed = True
        while self._open:
            self._inner.close(self._open.pop())

    def open_directory(self, path: str, *, below: int | None = None) -> int:
        fd = self._call("open_directory", self._inner.open_directory, path, below=below)
        self._open.add(fd)
        if self.medium is not None:
            self.medium.opened(fd, path, below)
        return fd

    def make_directory(self, name: str, *, below: int) -> None:
        def do() -> None:
            self._inner.make_directory(name, below=below)
            if self.medium is not None:
                self.medium.named(below, name, Directory())

        self._call("make_directory", do)

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
        def do() -> int:
            fd = self._inner.open_file(name, below=below, create=create, exclusive=exclusive, write=write, links=links)
            self._open.add(fd)
            if self.medium is not None:
                self.medium.opened(fd, name, below)
            return fd

        return self._call("open_file", do)

    def close(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            self._inner.close(fd)

    def read_at(self, fd: int, size: int, offset: int) -> bytes:
        return self._call("read_at", self._inner.read_at, fd, size, offset)

    def write_at(self, fd: int, data: bytes, offset: int) -> int:
        def do(part: bytes = data) -> int:
            taken = self._inner.write_at(fd, part, offset)
            if self.medium is not None:
                self.medium.wrote(fd, part[:taken], offset)
            return taken

        coming = self._due("write_at", ahead=1)
        if coming is not None and coming.short and not self.crashed:
            do(data[: len(data) // 2])
        return self._call("write_at", do)

    def size(self, fd: int) -> int:
        return self._call("size", self._inner.size, fd)

    def inode(self, fd: int) -> int:
        return self._call("inode", self._inner.inode, fd)

    def inode_of(self, name: str, *, below: int) -> int | None:
        return self._call("inode_of", self._inner.inode_of, name, below=below)

    def truncate(self, fd: int, size: int) -> None:
        def do() -> None:
            self._inner.truncate(fd, size)
            if self.medium is not None:
                self.medium.truncated(fd, size)

        self._call("truncate", do)

    def sync_data(self, fd: int) -> None:
        def do() -> None:
            self._inner.sync_data(fd)
            if self.medium is not None:
                self.medium.synced(fd)

        try:
            self._call("sync_data", do)
        except OSError:
            self._lose(fd)
            raise

    def sync_directory(self, fd: int) -> None:
        def do() -> None:
            self._inner.sync_directory(fd)
            if self.medium is not None:
                self.medium.synced(fd)

        self._call("sync_directory", do)

    def link(self, source: str, target: str, *, below: int) -> None:
        def do() -> None:
            self._inner.link(source, target, below=below)
            if self.medium is not None:
                self.medium.named(below, target, self.medium.node(below, source))

        self._call("link", do)

    def rename(self, source: str, target: str, *, below: int) -> None:
        def do() -> None:
            self._inner.rename(source, target, below=below)
            if self.medium is not None:
                self.medium.named(below, target, self.medium.node(below, source))
                self.medium.named(below, source, None)

        self._call("rename", do)

    def unlink(self, name: str, *, below: int) -> None:
        def do() -> None:
            self._inner.unlink(name, below=below)
            if self.medium is not None:
                self.medium.named(below, name, None)

        self._call("unlink", do)

    def names(self, directory: int) -> Iterable[str]:
        return self._call("names", self._inner.names, directory)

    def try_lock(self, fd: int) -> bool:
        return self._call("try_lock", self._inner.try_lock, fd)

    def lock(self, fd: int, seconds: float) -> bool:
        return self._call("lock", self._inner.lock, fd, seconds)

    def unlock(self, fd: int) -> None:
        if fd in self._open:
            self._inner.unlock(fd)

    def lock_holder(self, fd: int) -> int | None:
        return self._call("lock_holder", self._inner.lock_holder, fd)

    def _lose(self, fd: int) -> None:
        if self.medium is None:
            return
        durable = self.medium.sync_failed(fd)
        if self._evict:
            self._inner.truncate(fd, len(durable))
            self._inner.write_at(fd, durable, 0)

    def _call(self, name: str, do: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """One numbered call: the fault may come before it, after it, or not at all."""
        if self.crashed:
            raise CrashedError
        self.calls.append(name)
        fault = self._due(name)
        if fault is None:
            return do(*args, **kwargs)
        self.hits += 1
        if fault.after:
            do(*args, **kwargs)
        if fault.error:
            raise OSError(fault.error, os.strerror(fault.error))
        self.crashed = True
        raise CrashedError

    def _due(self, name: str, *, ahead: int = 0) -> Fault | None:
        """The fault that strikes the call just recorded, or the one ``ahead`` of it."""
        for fault in self._faults:
            if fault.only in {"", name}:
                number = ahead + (self.calls.count(name) if fault.only else len(self.calls))
                if number == fault.at or (fault.for_ever and number > fault.at):
                    return fault
        return None
