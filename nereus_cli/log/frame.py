"""One record as bytes: a fixed head, for owner records their link, and the payload. Pure.

The checksum covers everything behind it and starts from the store's secret salt, so that bytes inside a
payload cannot pass for a frame. The head names the checksum of the frame before: a frame fits one place.
The first 24 bytes keep their meaning in every version, and a frame always ends ``length`` bytes behind its
head, which is how a newer frame is told from a damaged one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import msgspec

from nereus_cli.ports import Kind, Link, LogRecord, NewerFormatError

VERSION = 1
MAGIC = b"NRfr"
SEAL = 3
LENGTH_MAX = 1 << 26

_HEAD = struct.Struct("<I4sBBHIQIQqQ16s")
_LINK = struct.Struct("<QQQ")
_CHECKSUM = struct.Struct("<I")
HEAD_BYTES = _HEAD.size
LINK_BYTES = _LINK.size
CHECKSUM_BYTES = _CHECKSUM.size


class Stamp(msgspec.Struct, frozen=True):
    """What the frames of one batch share: the highest position their writer knew durable, and its clocks."""

    synced_through: int
    persisted_at: int
    monotonic_ns: int
    boot_id: bytes


class Place(msgspec.Struct, frozen=True):
    """Where a frame stands in the chain: its position and the checksum of the frame before."""

    position: int
    chain: int


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A frame whose checksum holds. ``start`` and ``end`` are offsets in the buffer it was parsed from."""

    kind: int
    position: int
    chain: int
    synced_through: int
    persisted_at: int
    monotonic_ns: int
    boot_id: bytes
    body: bytes
    checksum: int
    start: int
    end: int

    def record(self) -> LogRecord:
        """The record in it; not for a SEAL."""
        owner = self.kind == Kind.OWNER
        return LogRecord(
            position=self.position,
            kind=Kind.OWNER if owner else Kind.CLIENT,
            persisted_at=self.persisted_at,
            boot_id=self.boot_id,
            monotonic_ns=self.monotonic_ns,
            link=Link(*_LINK.unpack_from(self.body)) if owner else None,
            payload=self.body[LINK_BYTES:] if owner else self.body,
        )


def seed_of(salt: bytes) -> int:
    """Where every checksum of a store starts."""
    return zlib.crc32(salt)


def encode(kind: int, body: bytes, place: Place, stamp: Stamp, seed: int) -> bytes:
    """The frame of a body at its place. ``body`` begins with the link when the kind is OWNER."""
    head = _HEAD.pack(
        0,
        MAGIC,
        VERSION,
        kind,
        0,
        len(body),
        place.position,
        place.chain,
        stamp.synced_through,
        stamp.persisted_at,
        stamp.monotonic_ns,
        stamp.boot_id,
    )[CHECKSUM_BYTES:]
    checksum = zlib.crc32(body, zlib.crc32(head, seed))
    return b"".join((_CHECKSUM.pack(checksum), head, body))


def owner_body(link: Link, payload: bytes) -> bytes:
    """The body of an owner record."""
    return _LINK.pack(link.epoch, link.prev, link.rid) + payload


def checksum_of(frame: bytes) -> int:
    """The checksum an encoded frame begins with: the chain value of the frame behind it."""
    checksum: int = _CHECKSUM.unpack_from(frame)[0]
    return checksum


def claimed_bytes(buffer: bytes, start: int = 0) -> int | None:
    """How long the frame that seems to begin here says it is; None when nothing here looks like one."""
    if len(buffer) - start < HEAD_BYTES:
        return None
    head = _HEAD.unpack_from(buffer, start)
    return HEAD_BYTES + head[5] if head[1] == MAGIC and head[5] <= LENGTH_MAX else None


def parse(buffer: bytes, start: int, seed: int) -> Frame | None:
    """The frame that begins at ``start``, or None for anything whose checksum does not hold.

    Raises NewerFormatError for a whole frame of a version, kind or flag that this one does not know."""
    if len(buffer) - start < HEAD_BYTES:
        return None
    head = _HEAD.unpack_from(buffer, start)
    end = start + HEAD_BYTES + head[5]
    if head[1] != MAGIC or end > len(buffer):
        return None
    with memoryview(buffer) as view:
        if zlib.crc32(view[start + CHECKSUM_BYTES : end], seed) != head[0]:
            return None
    if head[2] != VERSION or head[4] or not _known(head[3], head[5]):
        raise NewerFormatError(
            f"frame format {head[2]} (kind {head[3]}, flags {head[4]}) at position {head[6]}; "
            f"this version reads format {VERSION}"
        )
    return Frame(
        kind=head[3],
        position=head[6],
        chain=head[7],
        synced_through=head[8],
        persisted_at=head[9],
        monotonic_ns=head[10],
        boot_id=head[11],
        body=buffer[start + HEAD_BYTES : end],
        checksum=head[0],
        start=start,
        end=end,
    )


def scan(buffer: bytes, start: int, place: Place, seed: int) -> Iterator[Frame]:
    """The valid consecutive frames from ``start`` on; the first is at ``place``. A SEAL is yielded, and last."""
    position, chain = place.position, place.chain
    while (frame := parse(buffer, start, seed)) is not None:
        if frame.position != position or frame.chain != chain:
            return
        yield frame
        if frame.kind == SEAL:
            return
        position, chain, start = position + 1, frame.checksum, frame.end


def find(buffer: bytes, start: int, seed: int) -> Frame | None:
    """The first valid frame that begins at or behind ``start``, wherever that is."""
    at = buffer.find(MAGIC, start + CHECKSUM_BYTES)
    while at >= 0:
        frame = parse(buffer, at - CHECKSUM_BYTES, seed)
        if frame is not None:
            return frame
        at = buffer.find(MAGIC, at + 1)
    return None


def _known(kind: int, length: int) -> bool:
    return kind == Kind.CLIENT or (kind == Kind.OWNER and length >= LINK_BYTES) or (kind == SEAL and length == 0)
