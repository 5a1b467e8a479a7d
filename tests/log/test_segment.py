from __future__ import annotations

import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.log import mark as marks
from nereus_cli.log import segment
from nereus_cli.log.mark import Mark, Note
from nereus_cli.log.segment import Header, Why
from nereus_cli.ports import CorruptLogError, NewerFormatError

U64 = st.integers(0, 2**64 - 1)
U32 = st.integers(0, 2**32 - 1)
ID = st.binary(min_size=16, max_size=16)
HEADER = st.builds(
    Header,
    why=st.sampled_from(Why),
    ordinal=st.integers(1, 9_999_999_999),
    base=U64,
    chain=U32,
    previous_end=U64,
    through=U64,
    store_id=ID,
    salt=ID,
    created_at=st.integers(-(2**63), 2**63 - 1),
    floor=U64,
)
MARK = st.builds(Mark, boot_id=ID, ordinal=U64, inode=U64, durable=U64, offset=U64, chain=U32)
NOTE = st.builds(Note, boot_id=ID, ordinal=U64, inode=U64, first=U64, last=U64, poisoned=st.booleans(), pid=U32)
FIXED = Header(
    why=Why.POISONED,
    ordinal=3,
    base=20,
    chain=0xDEADBEEF,
    previous_end=4_000,
    through=22,
    store_id=bytes(range(16)),
    salt=bytes(range(100, 116)),
    created_at=1_700_000_000_000_000_000,
)


def resealed(data: bytes) -> bytes:
    return zlib.crc32(data[4:]).to_bytes(4, "little") + data[4:]


def test_golden_header() -> None:
    data = segment.encode(FIXED)
    assert len(data) == 512
    assert data[:112].hex() == (
        "325a3a994e5273670100020003000000000000001400000000000000efbeadde00000000a00f00000000000016000000"
        "00000000000102030405060708090a0b0c0d0e0f6465666768696a6b6c6d6e6f7071727300002a36fe9c971700000000"
        "00000000000000000000000000000000"
    )
    assert data[112:] == bytes(400)


def test_golden_mark_and_note() -> None:
    mark = Mark(boot_id=bytes(range(16)), ordinal=3, inode=77, durable=22, offset=900, chain=0xDEADBEEF)
    note = Note(boot_id=bytes(range(16)), ordinal=3, inode=77, first=23, last=25, poisoned=True, pid=4_242)
    assert marks.encode_mark(mark).hex() == (
        "ee323e2c4e526d31000102030405060708090a0b0c0d0e0f03000000000000004d000000000000001600000000000000"
        "8403000000000000efbeadde00000000"
    )
    assert marks.encode_note(note).hex() == (
        "cff687ae4e526e31000102030405060708090a0b0c0d0e0f03000000000000004d000000000000001700000000000000"
        "19000000000000000100000092100000"
    )


def test_half_of_one_mark_and_half_of_another_is_none() -> None:
    first = Mark(boot_id=bytes(16), ordinal=3, inode=77, durable=22, offset=900, chain=5)
    second = msgspec.structs.replace(first, durable=23, offset=1_000, chain=6)
    half = marks.encode_mark(second)[:48] + marks.encode_mark(first)[48:]
    assert marks.decode_mark(half) is None
    assert marks.decode_note(half) is None


@given(HEADER)
def test_a_header_comes_back(header: Header) -> None:
    assert segment.decode(segment.encode(header), segment.name_of(header.ordinal)) == header


@given(MARK, NOTE)
def test_a_mark_and_a_note_come_back(mark: Mark, note: Note) -> None:
    assert len(marks.encode_mark(mark)) == len(marks.encode_note(note)) == 64
    assert marks.decode_mark(marks.encode_mark(mark)) == mark
    assert marks.decode_note(marks.encode_note(note)) == note


@given(st.integers(0, 511), st.integers(1, 255))
def test_a_header_with_any_byte_changed_is_damaged(at: int, flip: int) -> None:
    data = bytearray(segment.encode(FIXED))
    data[at] ^= flip
    with pytest.raises(CorruptLogError, match=r"0000000003\.seg") as caught:
        segment.decode(bytes(data), "0000000003.seg")
    assert (caught.value.file, caught.value.position, caught.value.offset) == ("0000000003.seg", 0, 0)


@given(st.integers(0, 63), st.integers(1, 255), MARK, NOTE)
def test_a_mark_or_note_with_any_byte_changed_says_nothing(at: int, flip: int, mark: Mark, note: Note) -> None:
    for data in (bytearray(marks.encode_mark(mark)), bytearray(marks.encode_note(note))):
        data[at] ^= flip
        assert marks.decode_mark(bytes(data)) is None
        assert marks.decode_note(bytes(data)) is None
        assert marks.decode_mark(bytes(data[:at])) is None


def test_a_header_under_another_name_is_damage() -> None:
    with pytest.raises(CorruptLogError, match="another file"):
        segment.decode(segment.encode(FIXED), "0000000004.seg")


@pytest.mark.parametrize(("at", "value"), [(8, 2), (9, 1), (10, 3)])
def test_a_whole_header_that_is_not_understood_is_newer(at: int, value: int) -> None:
    data = bytearray(segment.encode(FIXED))
    data[at] = value
    with pytest.raises(NewerFormatError, match=r"0000000003\.seg"):
        segment.decode(resealed(bytes(data)), "0000000003.seg")


def test_marks_and_notes_of_another_format_are_newer() -> None:
    mark = marks.encode_mark(Mark(boot_id=bytes(16), ordinal=1, inode=1, durable=1, offset=1, chain=1))
    newer = resealed(mark[:4] + b"NRm2" + mark[8:])
    with pytest.raises(NewerFormatError, match="NRm2"):
        marks.decode_mark(newer)
    with pytest.raises(NewerFormatError, match="NRm2"):
        marks.decode_note(newer)


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [
        ("0000000001.seg", 1),
        ("9999999999.seg", 9_999_999_999),
        ("1.seg", None),
        ("00000000001.seg", None),
        ("0000000001.seg~", None),
        ("0000000001", None),
        ("000000000x.seg", None),
        ("000000000\u0661.seg", None),
    ],
)
def test_names(name: str, ordinal: int | None) -> None:
    assert segment.ordinal_of(name) == ordinal
    if ordinal is not None:
        assert segment.name_of(ordinal) == name


def test_a_note_is_open_only_above_the_mark_of_the_same_file() -> None:
    mark = Mark(boot_id=bytes(16), ordinal=3, inode=77, durable=22, offset=900, chain=0)
    note = Note(boot_id=bytes(16), ordinal=3, inode=77, first=23, last=23, poisoned=False, pid=1)
    assert note.open_beside(mark)
    assert marks.UNREADABLE.open_beside(mark)
    for change in ({"last": 22}, {"ordinal": 2}, {"inode": 78}, {"boot_id": bytes(15) + b"1"}):
        assert not msgspec.structs.replace(note, **change).open_beside(mark)
