"""A process's view of the simulated disk: the ``Disk`` port, where processes take turns and faults strike."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.sim.machine import Machine, Node, SimDirectory, SimFile

if TYPE_CHECKING:
    from tests.sim.process import Process

LOG = "log"


class SimDisk:
    """Holds the descriptors of one process; ``release`` gives them back as the system does at its end.

    ``touch`` of the process is called before every call: it lets others run, kills, or raises an error."""

    def __init__(self, machine: Machine, process: Process) -> None:
        self._machine = machine
        self._process = process
        self._open: dict[int, Node] = {}
        self._next = process.pid * 10_000

    def release(self) -> None:
        """The process is gone: descriptors and locks with it."""
        for fd in list(self._open):
            self._shut(fd)

    def open_directory(self, path: str, *, below: int | None = None) -> int:
        self._process.touch("open_directory")
        start: Node = self._machine.root if below is None else self._open[below]
        for part in (part for part in path.split("/") if part):
            start = _entry(start, part)
        if not isinstance(start, SimDirectory):
            raise _error(errno.ENOTDIR)
        return self._opened(start)

    def make_directory(self, name: str, *, below: int) -> None:
        self._process.touch("make_directory", changes=True)
        parent = self._directory(below)
        if name in parent.live:
            raise FileExistsError(errno.EEXIST, name)
        parent.change(name, SimDirectory())

    def open_file(
        self,
        name: str,
        *,
        below: int,
        create: bool = False,
        exclusive: bool = False,
        write: bool = True,  # noqa: ARG002 - the port's shape
        links: int = 1,
    ) -> int:
        self._process.touch("open_file", changes=create)
        parent = self._directory(below)
        node = parent.live.get(name)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, name)
            node = self._machine.make_file()
            parent.change(name, node)
        elif exclusive:
            raise FileExistsError(errno.EEXIST, name)
        if isinstance(node, SimDirectory) or node.names > links:
            raise PermissionError(errno.EPERM, name)
        return self._opened(node)

    def close(self, fd: int) -> None:
        self._shut(fd)

    def read_at(self, fd: int, size: int, offset: int) -> bytes:
        self._process.touch("read_at")
        return bytes(self._file(fd).live[offset : offset + size])

    def write_at(self, fd: int, data: bytes, offset: int) -> int:
        short = self._process.touch("write_at", changes=True, what=zlib.crc32(data), size=len(data))
        file = self._file(fd)
        wanted = len(data) if short is None else short
        growth = offset + wanted - len(file.live)
        if growth > 0:
            wanted -= growth - self._room_for(growth)
        file.change(bytes(data[:wanted]), offset)
        self._process.wrote(file)
        if short is not None:
            self._process.die()
        return wanted

    def _room_for(self, growth: int) -> int:
        try:
            return self._machine.take_room(growth)
        except OSError:
            self._process.world.sometimes("a full disk refused a write")
            raise

    def size(self, fd: int) -> int:
        self._process.touch("size")
        return len(self._file(fd).live)

    def inode(self, fd: int) -> int:
        self._process.touch("inode")
        return self._file(fd).inode if isinstance(self._open[fd], SimFile) else id_of(self._open[fd])

    def inode_of(self, name: str, *, below: int) -> int | None:
        self._process.touch("inode_of")
        node = self._directory(below).live.get(name)
        return None if node is None else id_of(node)

    def truncate(self, fd: int, size: int) -> None:
        self._process.touch("truncate", changes=True)
        self._file(fd).change(None, size)

    def sync_data(self, fd: int) -> None:
        file = self._file(fd)
        try:
            self._process.touch("sync_data", changes=True)
        except OSError:
            file.sync_failed(self._machine.chance, evict=self._machine.evict)
            raise
        file.sync()

    def sync_directory(self, fd: int) -> None:
        self._process.touch("sync_directory", changes=True)
        self._directory(fd).sync()

    def link(self, source: str, target: str, *, below: int) -> None:
        self._process.touch("link", changes=True)
        parent = self._directory(below)
        node = _entry(parent, source)
        if target in parent.live:
            raise FileExistsError(errno.EEXIST, target)
        if isinstance(node, SimFile):
            node.names += 1
        parent.change(target, node)

    def rename(self, source: str, target: str, *, below: int) -> None:
        self._process.touch("rename", changes=True)
        parent = self._directory(below)
        parent.change(target, _entry(parent, source))
        parent.change(source, None)

    def unlink(self, name: str, *, below: int) -> None:
        self._process.touch("unlink", changes=True)
        parent = self._directory(below)
        node = _entry(parent, name)
        if isinstance(node, SimFile):
            node.names -= 1
        parent.change(name, None)

    def names(self, directory: int) -> Iterable[str]:
        self._process.touch("names")
        return list(self._directory(directory).live)

    def try_lock(self, fd: int) -> bool:
        self._process.touch("try_lock")
        file = self._file(fd)
        if file.lock not in (None, fd):
            return False
        file.lock = fd
        return True

    def lock(self, fd: int, seconds: float) -> bool:
        if self.try_lock(fd):
            return True
        file = self._file(fd)
        self._process.wait_until(lambda: file.lock is None, seconds)
        return self.try_lock(fd)

    def unlock(self, fd: int) -> None:
        file = self._open.get(fd)
        if isinstance(file, SimFile) and file.lock == fd:
            file.lock = None

    def lock_holder(self, fd: int) -> int | None:
        self._process.touch("lock_holder")
        lock = self._file(fd).lock
        return None if lock is None else lock // 10_000

    def _opened(self, node: Node) -> int:
        self._next += 1
        self._open[self._next] = node
        return self._next

    def _shut(self, fd: int) -> None:
        node = self._open.pop(fd, None)
        if isinstance(node, SimFile) and node.lock == fd:
            node.lock = None

    def _file(self, fd: int) -> SimFile:
        node = self._open.get(fd)
        if not isinstance(node, SimFile):
            raise _error(errno.EBADF)
        return node

    def _directory(self, fd: int) -> SimDirectory:
        node = self._open.get(fd)
        if not isinstance(node, SimDirectory):
            raise _error(errno.EBADF)
        return node


def id_of(node: Node) -> int:
    """A number that names a node for its life; directories are never replaced here and share one."""
    return node.inode if isinstance(node, SimFile) else 1


def _entry(directory: Node, name: str) -> Node:
    if not isinstance(directory, SimDirectory):
        raise _error(errno.ENOTDIR)
    node = directory.live.get(name)
    if node is None:
        raise FileNotFoundError(errno.ENOENT, name)
    return node


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
