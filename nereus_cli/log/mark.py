"""The mark and the note: two records of 64 bytes, each in a file of its own, each replaced by one write.

Neither is ever synced. The mark is a lower bound of what is durable. The note says what a sync in flight
covers; it is open while its ``last`` is above the mark, so nothing has to clear it and raising and clearing
cannot come apart.
"""

from __future__ import annotations

import struct
import zlib

import msgspec

from nereus_cli.log.frame import Place
from nereus_cli.ports import NewerFormatError

RECORD_BYTES = 64
MARK_MAGIC = b"NRm1"
NOTE_MAGIC = b"NRn1"

_MARK = struct.Struct("<I4s16sQQQQI4x")
_NOTE = struct.Struct("<I4s16sQQQQII")
_CHECKSUM_BYTES = 4


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """``durable`` is the highest position known durable, ``offset`` the first byte behind it in the segment
    ``ordinal`` (whose file is ``inode``), ``chain`` its checksum. Worth something only in the boot that wrote it."""

    boot_id: bytes
    ordinal: int
    inode: int
    durable: int
    offset: int
    chain: int

    @property
    def place(self) -> Place:
        """Where the frame behind it stands."""
        return Place(self.durable + 1, self.chain)

    def settles(self, ordinal: int, position: int) -> bool:
        """Whether it says what became of a frame that was written at a position of a segment."""
        return self.ordinal > ordinal or (self.ordinal == ordinal and self.durable >= position)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A sync of ``first`` to ``last`` in one segment was begun by ``pid``. ``poisoned``: it failed.

    Ordinal 0 stands for a note that cannot be read: then any sync may have been under way."""

    boot_id: bytes
    ordinal: int
    inode: int
    first: int
    last: int
    poisoned: bool
    pid: int

    def open_beside(self, mark: Mark) -> bool:
        """Nobody has said how this sync ended."""
        if self.ordinal == 0:
            return True
        same = (self.boot_id, self.ordinal, self.inode) == (mark.boot_id, mark.ordinal, mark.inode)
        return same and self.last > mark.durable


UNREADABLE = Note(boot_id=b"", ordinal=0, inode=0, first=0, last=0, poisoned=True, pid=0)


def encode_mark(mark: Mark) -> bytes:
    """The 64 bytes of a mark."""
    return _sealed(
        _MARK.pack(0, MARK_MAGIC, mark.boot_id, mark.ordinal, mark.inode, mark.durable, mark.offset, mark.chain)
    )


def encode_note(note: Note) -> bytes:
    """The 64 bytes of a note."""
    return _sealed(
        _NOTE.pack(
            0, NOTE_MAGIC, note.boot_id, note.ordinal, note.inode, note.first, note.last, note.poisoned, note.pid
        )
    )


def decode_mark(raw: bytes) -> Mark | None:
    """None for bytes that are not a whole mark; NewerFormatError for a mark of another format."""
    if not _whole(raw, MARK_MAGIC):
        return None
    _, _, boot_id, ordinal, inode, durable, offset, chain = _MARK.unpack(raw)
    return Mark(boot_id=boot_id, ordinal=ordinal, inode=inode, durable=durable, offset=offset, chain=chain)


def decode_note(raw: bytes) -> Note | None:
    """None for bytes that are not a whole note; NewerFormatError for a note of another format."""
    if not _whole(raw, NOTE_MAGIC):
        return None
    _, _, boot_id, ordinal, inode, first, last, poisoned, pid = _NOTE.unpack(raw)
    return Note(boot_id=boot_id, ordinal=ordinal, inode=inode, first=first, last=last, poisoned=bool(poisoned), pid=pid)


def _sealed(packed: bytes) -> bytes:
    body = packed[_CHECKSUM_BYTES:]
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little") + body


def _whole(raw: bytes, magic: bytes) -> bool:
    if len(raw) != RECORD_BYTES or zlib.crc32(raw[_CHECKSUM_BYTES:]) != int.from_bytes(raw[:_CHECKSUM_BYTES], "little"):
        return False
    found = raw[_CHECKSUM_BYTES : _CHECKSUM_BYTES + len(magic)]
    if found != magic:
        raise NewerFormatError(f"the record {found!r} is of a format that this version does not know")
    return True
