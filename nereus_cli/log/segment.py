"""The head of a segment file: 512 bytes with their own checksum, complete and synced before the file has its name.

A segment ends where its successor's base says. A position belongs to the newest segment whose base is not above it.
"""

from __future__ import annotations

import enum
import struct
import zlib

import msgspec

from nereus_cli.log.frame import Place, seed_of
from nereus_cli.ports import CorruptLogError, NewerFormatError

VERSION = 1
MAGIC = b"NRsg"
HEADER_BYTES = 512
SUFFIX = ".seg"

_HEADER = struct.Struct("<I4sHBxQQIIQQ16s16sqQ")
_CHECKSUM_BYTES = 4
_DIGITS = 10


class Why(enum.IntEnum):
    """Why a segment was begun."""

    FIRST = 0
    ROTATED = 1
    POISONED = 2


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """``chain`` is the checksum of the frame at ``base - 1``, ``previous_end`` the offset in the segment before
    at which that one ends, ``through`` the last position this file held when it got its name (``base - 1``: none).
    ``floor`` and the bytes behind it are zero until compaction and checkpoints need them."""

    why: Why
    ordinal: int
    base: int
    chain: int
    previous_end: int
    through: int
    store_id: bytes
    salt: bytes
    created_at: int
    floor: int = 0

    @property
    def seed(self) -> int:
        """Where the checksums of its frames start."""
        return seed_of(self.salt)

    @property
    def place(self) -> Place:
        """Where its first frame stands."""
        return Place(self.base, self.chain)


def name_of(ordinal: int) -> str:
    """The file name of a segment."""
    return f"{ordinal:0{_DIGITS}d}{SUFFIX}"


def ordinal_of(name: str) -> int | None:
    """The ordinal in a segment's file name, or None for any other name."""
    digits = name.removesuffix(SUFFIX)
    if name.endswith(SUFFIX) and len(digits) == _DIGITS and digits.isascii() and digits.isdigit():
        return int(digits)
    return None


def encode(header: Header) -> bytes:
    """The 512 bytes a segment begins with."""
    body = _HEADER.pack(
        0,
        MAGIC,
        VERSION,
        header.why,
        header.ordinal,
        header.base,
        header.chain,
        0,
        header.previous_end,
        header.through,
        header.store_id,
        header.salt,
        header.created_at,
        header.floor,
    )[_CHECKSUM_BYTES:].ljust(HEADER_BYTES - _CHECKSUM_BYTES, b"\0")
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little") + body


def decode(raw: bytes, name: str) -> Header:
    """The header of the segment file called ``name``.

    Raises CorruptLogError, or NewerFormatError when it is whole and of a version not known here."""
    if len(raw) < HEADER_BYTES or zlib.crc32(raw[_CHECKSUM_BYTES:HEADER_BYTES]) != int.from_bytes(raw[:4], "little"):
        raise CorruptLogError(f"{name}: the segment header is damaged", file=name, position=0)
    fields = _HEADER.unpack_from(raw)
    if fields[1] != MAGIC or fields[4] != ordinal_of(name):
        raise CorruptLogError(f"{name}: this is another file's header", file=name, position=0)
    if fields[2] != VERSION or fields[3] > max(Why):
        raise NewerFormatError(f"{name}: segment format {fields[2]}; this version reads format {VERSION}")
    return Header(
        why=Why(fields[3]),
        ordinal=fields[4],
        base=fields[5],
        chain=fields[6],
        previous_end=fields[8],
        through=fields[9],
        store_id=fields[10],
        salt=fields[11],
        created_at=fields[12],
        floor=fields[13],
    )
