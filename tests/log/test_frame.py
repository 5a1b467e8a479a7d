from __future__ import annotations

import struct
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.log import frame
from nereus_cli.log.frame import Place, Stamp
from nereus_cli.ports import Kind, Link, NewerFormatError

U64 = st.integers(0, 2**64 - 1)
U32 = st.integers(0, 2**32 - 1)
STAMP = st.builds(
    Stamp,
    synced_through=U64,
    persisted_at=st.integers(-(2**63), 2**63 - 1),
    monotonic_ns=U64,
    boot_id=st.binary(min_size=16, max_size=16),
)
PLACE = st.builds(Place, position=U64, chain=U32)
LINK = st.builds(Link, epoch=U64, prev=U64, rid=U64)
FIXED = Stamp(synced_through=41, persisted_at=1_700_000_000_000_000_000, monotonic_ns=5_000, boot_id=bytes(range(16)))
SALT = bytes(range(100, 116))
SEED = frame.seed_of(SALT)


def test_golden_client_frame() -> None:
    data = frame.encode(Kind.CLIENT, b"hello", Place(42, 0xDEADBEEF), FIXED, SEED)
    assert data.hex() == GOLDEN_CLIENT


def test_golden_owner_frame() -> None:
    body = frame.owner_body(Link(3, 40, 0x0102030405060708), b"x")
    data = frame.encode(Kind.OWNER, body, Place(42, 0xDEADBEEF), FIXED, SEED)
    assert data.hex() == GOLDEN_OWNER


def test_golden_seal() -> None:
    assert frame.encode(frame.SEAL, b"", Place(42, 0xDEADBEEF), FIXED, SEED).hex() == GOLDEN_SEAL


GOLDEN_CLIENT = (
    "da3b3ac54e52667201010000050000002a00000000000000efbeadde290000000000000000002a36fe9c971788130000"
    "00000000000102030405060708090a0b0c0d0e0f68656c6c6f"
)
GOLDEN_OWNER = (
    "916cc37f4e52667201020000190000002a00000000000000efbeadde290000000000000000002a36fe9c971788130000"
    "00000000000102030405060708090a0b0c0d0e0f03000000000000002800000000000000080706050403020178"
)
GOLDEN_SEAL = (
    "50b8c74b4e52667201030000000000002a00000000000000efbeadde290000000000000000002a36fe9c971788130000"
    "00000000000102030405060708090a0b0c0d0e0f"
)


def test_the_head_is_laid_out_as_the_document_says() -> None:
    data = frame.encode(Kind.CLIENT, b"hello", Place(42, 7), FIXED, SEED)
    assert frame.HEAD_BYTES == 68
    assert data[4:8] == b"NRfr"
    assert data[8:12] == bytes([1, 1, 0, 0])
    assert struct.unpack_from("<IQIQqQ", data, 12) == (5, 42, 7, 41, 1_700_000_000_000_000_000, 5_000)
    assert data[52:68] == bytes(range(16))
    assert struct.unpack_from("<I", data)[0] == zlib.crc32(SALT + data[4:])


@given(st.binary(max_size=300), PLACE, STAMP, U32)
def test_a_client_frame_comes_back(payload: bytes, place: Place, stamp: Stamp, seed: int) -> None:
    data = frame.encode(Kind.CLIENT, payload, place, stamp, seed)
    found = frame.parse(b"??" + data + b"??", 2, seed)
    assert found is not None
    assert (found.start, found.end, found.chain) == (2, 2 + len(data), place.chain)
    assert found.checksum == frame.checksum_of(data)
    record = found.record()
    assert (record.position, record.kind, record.link, record.payload) == (place.position, Kind.CLIENT, None, payload)
    assert Stamp(found.synced_through, record.persisted_at, record.monotonic_ns, record.boot_id) == stamp


@given(st.binary(max_size=300), LINK, PLACE, STAMP, U32)
def test_an_owner_frame_comes_back(payload: bytes, link: Link, place: Place, stamp: Stamp, seed: int) -> None:
    data = frame.encode(Kind.OWNER, frame.owner_body(link, payload), place, stamp, seed)
    found = frame.parse(data, 0, seed)
    assert found is not None
    record = found.record()
    assert (record.kind, record.link, record.payload) == (Kind.OWNER, link, payload)


@given(st.binary(max_size=40), PLACE, STAMP, st.integers(1, 255), st.data())
def test_any_changed_byte_and_any_missing_end_is_seen(
    payload: bytes, place: Place, stamp: Stamp, flip: int, data: st.DataObject
) -> None:
    whole = frame.encode(Kind.CLIENT, payload, place, stamp, SEED)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= flip
    assert frame.parse(bytes(changed), 0, SEED) is None
    assert frame.parse(whole[:at], 0, SEED) is None


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=6), st.integers(1, 2**40), U32, st.data())
def test_a_scan_ends_at_the_first_frame_out_of_place(
    payloads: list[bytes], position: int, chain: int, data: st.DataObject
) -> None:
    frames: list[bytes] = []
    link = chain
    for number, payload in enumerate(payloads):
        frames.append(frame.encode(Kind.CLIENT, payload, Place(position + number, link), FIXED, SEED))
        link = frame.checksum_of(frames[-1])
    found = list(frame.scan(b"".join(frames), 0, Place(position, chain), SEED))
    assert [one.body for one in found] == payloads
    gone = data.draw(st.integers(0, len(frames) - 1))
    found = list(frame.scan(b"".join(frames[:gone] + frames[gone + 1 :]), 0, Place(position, chain), SEED))
    assert [one.body for one in found] == payloads[:gone]
    assert not list(frame.scan(b"".join(frames), 0, Place(position, chain ^ 1), SEED))
    assert not list(frame.scan(b"".join(frames), 0, Place(position + 1, chain), SEED))


def test_a_frame_fits_one_place() -> None:
    data = frame.encode(Kind.CLIENT, b"x", Place(7, 99), FIXED, SEED)
    assert [one.position for one in frame.scan(data, 0, Place(7, 99), SEED)] == [7]
    for place in (Place(6, 99), Place(8, 99), Place(7, 98), Place(7, 0)):
        assert list(frame.scan(data, 0, place, SEED)) == []


def test_a_scan_ends_with_a_seal() -> None:
    seal = frame.encode(frame.SEAL, b"", Place(1, 0), FIXED, SEED)
    behind = frame.encode(Kind.CLIENT, b"", Place(2, frame.checksum_of(seal)), FIXED, SEED)
    assert [one.kind for one in frame.scan(seal + behind, 0, Place(1, 0), SEED)] == [frame.SEAL]


@pytest.mark.parametrize("seed", [0, SEED ^ 1, frame.seed_of(b"another store")])
def test_a_frame_of_another_store_is_none(seed: int) -> None:
    data = frame.encode(Kind.CLIENT, b"x", Place(1, 0), FIXED, seed)
    assert frame.parse(data, 0, SEED) is None
    assert frame.find(data * 2, 0, SEED) is None


def test_find_steps_over_payloads_that_imitate_frames() -> None:
    forged = frame.encode(Kind.CLIENT, b"forged", Place(2, 0), FIXED, 0)
    outer = frame.encode(Kind.CLIENT, forged, Place(1, 0), FIXED, SEED)
    last = frame.encode(Kind.CLIENT, b"last", Place(2, frame.checksum_of(outer)), FIXED, SEED)
    found = frame.find(b"\0" + outer[1:] + last, 0, SEED)
    assert found is not None
    assert found.body == b"last"
    assert frame.find(outer[1:], 0, SEED) is None


@pytest.mark.parametrize(
    ("at", "value", "what"),
    [
        (8, 2, "frame format 2"),
        (9, 4, "kind 4"),
        (9, 0, "kind 0"),
        (10, 1, "flags 1"),
        (9, 3, "kind 3"),
        (9, 2, "kind 2"),
    ],
)
def test_a_whole_frame_that_is_not_understood_is_newer_not_damaged(at: int, value: int, what: str) -> None:
    data = bytearray(frame.encode(Kind.CLIENT, b"short", Place(7, 0), FIXED, SEED))
    data[at] = value
    assert frame.parse(bytes(data), 0, SEED) is None, "the checksum covers it"
    data[:4] = zlib.crc32(data[4:], SEED).to_bytes(4, "little")
    with pytest.raises(NewerFormatError, match=what):
        frame.parse(bytes(data), 0, SEED)


def test_a_length_is_believed_only_within_reason() -> None:
    data = frame.encode(Kind.CLIENT, b"12345", Place(1, 0), FIXED, SEED)
    assert frame.claimed_bytes(data) == len(data)
    assert frame.claimed_bytes(data[:40]) is None
    assert frame.claimed_bytes(b"x" * 100) is None
    large = data[:12] + (frame.LENGTH_MAX + 1).to_bytes(4, "little") + data[16:]
    assert frame.claimed_bytes(large) is None


def test_frames_are_values() -> None:
    found = frame.parse(frame.encode(Kind.CLIENT, b"", Place(1, 0), FIXED, SEED), 0, SEED)
    assert found is not None
    with pytest.raises(AttributeError):
        found.position = 2  # type: ignore[misc]  # that it cannot be set is the point
    assert msgspec.structs.replace(found, position=2) != found
