"""The directory of a log: its names, and the descriptors one handle has open in it.

    0000000001.seg …   segments          mark/durable   the mark        locks/append, locks/sync   the two locks
    torn-…             tails cut off     syncing        the note        new-…                      a segment being made

Descriptors are opened when first needed, so that a reader opens no lock and nothing for writing it may not write.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from nereus_cli.log import mark as marks
from nereus_cli.log import segment
from nereus_cli.log.locks import Lock
from nereus_cli.log.mark import Mark, Note
from nereus_cli.log.segment import HEADER_BYTES, Header
from nereus_cli.ports import CorruptLogError, Disk

REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_READS_MAX = 200
_SEGMENT_NAMES_MAX = 3
_Small = TypeVar("_Small", Mark, Note)


class Room:
    """Everything that is done to the files of a log other than reading and writing frames."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.directory = disk.open_directory(path)
        self._open: list[int] = [self.directory]
        self._headers: dict[int, Header] = {}
        self._refusal: OSError | None = None

    def close(self) -> None:
        """Gives back every descriptor; locks end with theirs."""
        while self._open:
            self.disk.close(self._open.pop())

    # -- names

    def ordinals(self) -> list[int]:
        """Those of the segments there are, ascending."""
        found = (segment.ordinal_of(name) for name in self.disk.names(self.directory))
        return sorted(ordinal for ordinal in found if ordinal is not None)

    def inode_of(self, ordinal: int) -> int | None:
        """Which file has a segment's name now."""
        return self.disk.inode_of(segment.name_of(ordinal), below=self.directory)

    def open_segment(self, ordinal: int, *, write: bool) -> int:
        """A descriptor the caller closes. It may still have the names under which it was made."""
        name = segment.name_of(ordinal)
        return self.disk.open_file(name, below=self.directory, write=write, links=_SEGMENT_NAMES_MAX)

    def header(self, ordinal: int) -> Header:
        """A segment's header; read once, as it never changes."""
        known = self._headers.get(ordinal)
        if known is None:
            fd = self.open_segment(ordinal, write=False)
            try:
                known = self.read_header(fd, ordinal)
            finally:
                self.disk.close(fd)
        return known

    def newest_header(self) -> Header:
        """That of the newest segment. FileNotFoundError when there is none: then this is no log."""
        ordinals = self.ordinals()
        if not ordinals:
            raise FileNotFoundError(errno.ENOENT, "no log here", self.path)
        return self.header(ordinals[-1])

    def read_header(self, fd: int, ordinal: int) -> Header:
        """The header of the segment open as ``fd``, checked."""
        header = segment.decode(self.disk.read_at(fd, HEADER_BYTES, 0), segment.name_of(ordinal))
        first = next(iter(self._headers.values()), header)
        if (header.store_id, header.salt) != (first.store_id, first.salt):
            name = segment.name_of(ordinal)
            raise CorruptLogError(f"{name}: this segment is of another store", file=name, position=header.base)
        self._headers[ordinal] = header
        return header

    def open_for_writing(self) -> None:
        """Opens everything an append needs, so that it fails before anything was written. Raises OSError."""
        for name in ("append_lock", "sync_lock", "_mark_fd", "_note_fd"):
            getattr(self, name)
        if self._refusal is not None:
            raise self._refusal

    def drop_locks(self) -> None:
        """Gives back what an exception may have left locked."""
        for name in ("append_lock", "sync_lock"):
            if name in self.__dict__:
                lock: Lock = self.__dict__[name]
                lock.free()

    # -- mark and note

    @cached_property
    def marks(self) -> int:
        """The directory of the mark."""
        return self._kept(self._subdirectory("mark"))

    @cached_property
    def append_lock(self) -> Lock:
        """The lock under which positions are given out."""
        return Lock(self.disk, self._lock_file("append"), "append")

    @cached_property
    def sync_lock(self) -> Lock:
        """The lock of the one sync in flight."""
        return Lock(self.disk, self._lock_file("sync"), "sync")

    def mark(self) -> Mark | None:
        """The mark as it stands, believed or not."""
        try:
            fd = self._mark_fd
        except OSError as error:
            if error.errno not in REFUSED | {errno.ENOENT}:
                raise
            return None
        return self._small(fd, marks.decode_mark)

    def raise_mark(self, mark: Mark) -> None:
        """From here on everybody may know that everything through ``mark.durable`` is durable."""
        self._put(self._mark_fd, marks.encode_mark(mark))

    def note(self) -> Note | None:
        """The note as it stands; None where none was ever written. For those who may write."""
        found = self._small(self._note_fd, marks.decode_note)
        return marks.UNREADABLE if found is None and self.disk.size(self._note_fd) else found

    def write_note(self, note: Note) -> None:
        """Said before a sync, so that a successor knows what nobody knows if its holder dies."""
        self._put(self._note_fd, marks.encode_note(note))

    def reopen_mark(self) -> bool:
        """Follows the mark's name when another file has it by now; False when nothing changed."""
        inode_of, inode = self.disk.inode_of, self.disk.inode
        same = "_mark_fd" in self.__dict__ and inode_of("mark", below=self.directory) == inode(self.marks)
        if same and inode_of("durable", below=self.marks) == inode(self._mark_fd):
            return False
        for name in ("_mark_fd", "marks"):
            if name in self.__dict__:
                fd = self.__dict__.pop(name)
                self._open.remove(fd)
                self.disk.close(fd)
        return True

    @cached_property
    def _mark_fd(self) -> int:
        return self._kept(self._open_mark())

    @cached_property
    def _note_fd(self) -> int:
        return self._kept(self.disk.open_file("syncing", below=self.directory, create=True))

    @cached_property
    def _locks(self) -> int:
        return self._kept(self._subdirectory("locks"))

    def _lock_file(self, name: str) -> int:
        return self._kept(self.disk.open_file(name, below=self._locks, create=True))

    def _subdirectory(self, name: str) -> int:
        try:
            return self.disk.open_directory(name, below=self.directory)
        except FileNotFoundError:
            make_directory(self.disk, name, self.directory)
            return self.disk.open_directory(name, below=self.directory)

    def _open_mark(self) -> int:
        """Writable where that is allowed; made where it is missing and can be."""
        try:
            return self.disk.open_file("durable", below=self.marks, create=True)
        except OSError as error:
            if error.errno not in REFUSED:
                raise
            self._refusal = error
        return self.disk.open_file("durable", below=self.marks, write=False)

    def _kept(self, fd: int) -> int:
        self._open.append(fd)
        return fd

    def _small(self, fd: int, decode: Callable[[bytes], _Small | None]) -> _Small | None:
        """Read again on a bad checksum: a read may see half of a write that is under way."""
        for _ in range(_READS_MAX):
            raw = self.disk.read_at(fd, marks.RECORD_BYTES, 0)
            found = decode(raw)
            if found is not None or len(raw) < marks.RECORD_BYTES:
                return found
        return None

    def _put(self, fd: int, data: bytes) -> None:
        taken = self.disk.write_at(fd, data, 0)
        if taken != len(data):
            raise OSError(errno.ENOSPC, "a short write")


def make_directory(disk: Disk, name: str, below: int) -> None:
    """Makes a directory unless somebody else just did."""
    try:
        disk.make_directory(name, below=below)
    except FileExistsError:
        return
