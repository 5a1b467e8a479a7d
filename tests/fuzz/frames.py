"""Targets: everything that reads the log's own bytes: frames, segment headers, the mark and the note."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Final

from nereus_cli.codec import encode_command, encode_mutation
from nereus_cli.log import frame, mark, segment
from nereus_cli.log.frame import Frame, Place, Stamp
from nereus_cli.ports import CorruptLogError, Kind, Link, NewerFormatError
from tests.codec.samples import MUTATIONS, STATED, sample
from tests.fuzz.mutator import MSGPACK_TOKENS
from tests.fuzz.target import Target

SEED: Final = frame.seed_of(b"0123456789abcdef")
BASE: Final = Place(7, 0)
_STAMP: Final = Stamp(6, 1_800_000_000_000_000_000, 5_000_000_000, b"b" * 16)
_LENGTH_AT: Final = 12
_CHAIN_AT: Final = 24
_SEGMENT: Final = segment.name_of(3)


def _frames() -> list[bytes]:
    """Chains of a few frames each, one with a SEAL at its end."""
    bodies = [(Kind.CLIENT, encode_command(sample(stated))) for stated in STATED.values()]
    bodies += [(Kind.OWNER, frame.owner_body(Link(1, 2, 3), encode_mutation(one))) for one in MUTATIONS.values()]
    bodies += [(Kind.CLIENT, b""), (Kind.CLIENT, frame.MAGIC * 3)]
    made = []
    for start in range(0, len(bodies), 3):
        position, chain, data = BASE.position, BASE.chain, b""
        for kind, body in [*bodies[start : start + 3], (frame.SEAL, b"")]:
            data += frame.encode(kind, body, Place(position, chain), _STAMP, SEED)
            chain = frame.checksum_of(data[data.rfind(frame.MAGIC + b"\x01") - frame.CHECKSUM_BYTES :])
            position += 1
        made.append(data)
    return made


def seal_frames(data: bytearray) -> None:
    """Makes the checksum of each frame that fits true, and the chain with it, as far as lengths lead."""
    at, chain = 0, BASE.chain
    while len(data) - at >= frame.HEAD_BYTES:
        end = at + frame.HEAD_BYTES + struct.unpack_from("<I", data, at + _LENGTH_AT)[0]
        if end > len(data):
            return
        struct.pack_into("<I", data, at + _CHAIN_AT, chain)
        chain = zlib.crc32(data[at + frame.CHECKSUM_BYTES : end], SEED)
        struct.pack_into("<I", data, at, chain)
        at = end


def _again(found: Frame) -> bytes:
    stamp = Stamp(found.synced_through, found.persisted_at, found.monotonic_ns, found.boot_id)
    return frame.encode(found.kind, found.body, Place(found.position, found.chain), stamp, SEED)


def _scanned(data: bytes) -> str:
    position = BASE.position
    for found in frame.scan(data, 0, BASE, SEED):
        if found.position != position:
            return "a frame out of its place"
        if _again(found) != data[found.start : found.end]:
            return "a frame that is not written as it was read"
        if found.kind != frame.SEAL:
            found.record()
        position += 1
    return ""


def _found(data: bytes) -> str:
    claimed = frame.claimed_bytes(data)
    if claimed is not None and not frame.HEAD_BYTES <= claimed <= frame.HEAD_BYTES + frame.LENGTH_MAX:
        return f"a claim of {claimed} bytes"
    found = frame.find(data, 0, SEED)
    if found is not None and _again(found) != data[found.start : found.end]:
        return "a frame that is not written as it was found"
    return ""


def _header(data: bytes) -> str:
    header = segment.decode(data, _SEGMENT)
    again = segment.encode(header)
    return "" if segment.decode(again, _SEGMENT) == header else "a header that does not come back"


def _mark(data: bytes) -> str:
    found = mark.decode_mark(data)
    return "" if found is None or mark.decode_mark(mark.encode_mark(found)) == found else "a mark that changes"


def _note(data: bytes) -> str:
    found = mark.decode_note(data)
    return "" if found is None or mark.decode_note(mark.encode_note(found)) == found else "a note that changes"


def _seal_to(end: int) -> Callable[[bytearray], None]:
    def seal(data: bytearray) -> None:
        if len(data) >= end:
            data[:4] = zlib.crc32(data[4:end]).to_bytes(4, "little")

    return seal


_HEADER: Final = segment.Header(
    why=segment.Why.POISONED, ordinal=3, base=9, chain=77, previous_end=900, through=11, store_id=b"i" * 16,
    salt=b"s" * 16, created_at=1_800_000_000_000_000_000, floor=0,
)  # fmt: skip
_MARK: Final = mark.Mark(boot_id=b"b" * 16, ordinal=3, inode=1 << 40, durable=8, offset=512, chain=77)
_NOTE: Final = mark.Note(boot_id=b"b" * 16, ordinal=3, inode=1 << 40, first=9, last=12, poisoned=True, pid=4_711)

TARGETS: Final = (
    Target(
        name="frame-scan", samples=_frames(), tokens=MSGPACK_TOKENS, run=_scanned, allowed=(NewerFormatError,),
        seal=seal_frames, share=4,
    ),
    Target(
        name="frame-find", samples=_frames(), tokens=(*MSGPACK_TOKENS, frame.MAGIC), run=_found,
        allowed=(NewerFormatError,), seal=seal_frames, share=3,
    ),
    Target(
        name="segment-header", samples=(segment.encode(_HEADER),), tokens=MSGPACK_TOKENS, run=_header,
        allowed=(CorruptLogError, NewerFormatError), seal=_seal_to(segment.HEADER_BYTES), share=1,
    ),
    Target(
        name="mark", samples=(mark.encode_mark(_MARK),), tokens=MSGPACK_TOKENS[:9], run=_mark,
        allowed=(NewerFormatError,), seal=_seal_to(mark.RECORD_BYTES), share=1,
    ),
    Target(
        name="note", samples=(mark.encode_note(_NOTE),), tokens=MSGPACK_TOKENS[:9], run=_note,
        allowed=(NewerFormatError,), seal=_seal_to(mark.RECORD_BYTES), share=1,
    ),
)  # fmt: skip
