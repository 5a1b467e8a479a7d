"""A torn tail is cut and reported; anything that was durable and cannot be read is corruption, named, never cut."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.log import frame, segment
from nereus_cli.log.files import FileLog
from nereus_cli.log.frame import Frame
from nereus_cli.ports import CorruptLogError, NewerFormatError
from tests.log.world import LARGE, Ledger, fast_directory, open_log, rebooted

FIRST = "0000000001.seg"


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


def made(path: Path, count: int = 8, size: int = 20) -> Ledger:
    ledger = Ledger()
    log = open_log(path, create=True, limits=LARGE)
    for _ in range(count):
        ledger.append(log, ledger.payloads(1, size))
    log.close()
    return ledger


def frames_of(path: Path, name: str = FIRST) -> list[Frame]:
    data = (path / name).read_bytes()
    header = segment.decode(data, name)
    return list(frame.scan(data, segment.HEADER_BYTES, header.place, header.seed))


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_copy_cut_anywhere_in_its_last_frame_holds_all_others_and_says_what_it_dropped(top: Path) -> None:
    ledger = made(top / "log")
    *_, before, last = frames_of(top / "log")
    shutil.rmtree(top / "log" / "mark")
    for size in range(last.start, last.end):
        path = top / str(size)
        shutil.copytree(top / "log", path)
        with (path / FIRST).open("r+b") as file:
            file.truncate(size)
        log = open_log(path, boot=2, limits=LARGE)
        assert log.bounds().durable == before.position
        assert [record.payload for record in log.read(0)] == list(ledger.acknowledged.values())[:-1]
        dropped = size - last.start
        assert [(torn.position, torn.bytes_cut) for torn in log.torn] == ([(last.position, dropped)] if dropped else [])
        for torn in log.torn:
            assert (path / torn.file).read_bytes() == (top / "log" / FIRST).read_bytes()[last.start : size]
        assert log.append([b"next"])[0].position == last.position
        assert log.verify().sound
        log.close()


def test_a_file_shorter_than_its_own_frames_prove_is_corrupt_wherever_it_was_cut(top: Path) -> None:
    """Here the files are the very ones the mark speaks of, so that a missing end is a missing acknowledgement."""
    made(top / "log", 4)
    *_, last = frames_of(top / "log")
    for boot in (1, 2):
        for size in range(segment.HEADER_BYTES, last.end, 7):
            path = top / f"{boot}-{size}"
            shutil.copytree(top / "log", path)
            with (path / FIRST).open("r+b") as file:
                file.truncate(size)
            rebooted(path)
            whole = sum(one.end <= size for one in frames_of(path))
            before = contents(path)
            with open_closed(path, boot) as log:
                with pytest.raises(CorruptLogError) as caught:
                    list(log.read(0))
                assert caught.value.file == FIRST
                assert caught.value.position == whole + 1
                with pytest.raises(CorruptLogError):
                    log.append([b"no"])
                assert not log.verify().sound
            assert contents(path).keys() == before.keys()
            assert contents(path)[FIRST] == before[FIRST], "a damaged log is not touched"


class open_closed:  # noqa: N801 - used as a verb
    """Opens a log and closes it again."""

    def __init__(self, path: Path, boot: int) -> None:
        self.log = open_log(path, boot=boot, limits=LARGE)

    def __enter__(self) -> FileLog:
        return self.log

    def __exit__(self, *_: object) -> None:
        self.log.close()


@pytest.mark.parametrize("boot", [1, 2])
def test_any_changed_byte_below_a_proof_is_named_and_nothing_is_cut(top: Path, boot: int) -> None:
    ledger = made(top / "log", 5)
    frames = frames_of(top / "log")
    good = (top / "log" / FIRST).read_bytes()
    proven = frames[-1].synced_through
    assert proven == 4, "the last frame proves those before it"
    if boot == 2:
        shutil.rmtree(top / "log" / "mark")
    for at in range(segment.HEADER_BYTES, frames[-1].start if boot == 2 else frames[-1].end):
        path = top / "again"
        shutil.copytree(top / "log", path)
        data = bytearray(good)
        data[at] ^= 0x41
        (path / FIRST).write_bytes(data)
        rebooted(path)
        bad = next(one for one in frames if one.start <= at < one.end)
        with open_closed(path, boot) as log:
            read: list[bytes] = []
            with pytest.raises(CorruptLogError, match=FIRST) as caught:
                read.extend(record.payload for record in log.read(0))
            assert (caught.value.file, caught.value.position, caught.value.offset) == (FIRST, bad.position, bad.start)
            assert read == list(ledger.acknowledged.values())[: len(read)]
            verification = log.verify()
            damage = [finding for finding in verification.findings if finding.damage]
            assert [(one.file, one.offset, one.position) for one in damage] == [(FIRST, bad.start, bad.position)]
            assert verification.records == len(frames) - 1, "later records are still counted"
            assert log.torn == ()
        assert (path / FIRST).read_bytes() == bytes(data)
        assert not list(path.glob("torn-*"))
        shutil.rmtree(path)


@pytest.mark.parametrize("noted", [False, True], ids=["", "a sync in flight"])
def test_an_append_behind_an_old_mark_cuts_nothing_that_was_durable(top: Path, noted: bool) -> None:
    """The mark went back by three records, and one behind it is damaged: later frames prove that it was durable."""
    ledger = made(top / "log", 5)
    mark = (top / "log" / "mark" / "durable").read_bytes()
    note = (top / "log" / "syncing").read_bytes()
    log = open_log(top / "log", limits=LARGE)
    for _ in range(3):
        ledger.append(log, ledger.payloads(1, 20))
    log.close()
    bad = frames_of(top / "log")[5]
    data = bytearray((top / "log" / FIRST).read_bytes())
    data[bad.start + 70] ^= 1
    (top / "log" / FIRST).write_bytes(data)
    (top / "log" / "mark" / "durable").write_bytes(mark)
    (top / "log" / "syncing").write_bytes(b"\xff" * 64 if noted else note)
    log = open_log(top / "log", limits=LARGE)
    with pytest.raises(CorruptLogError) as caught:
        log.append([b"x"])
    assert (caught.value.file, caught.value.position, caught.value.offset) == (FIRST, bad.position, bad.start)
    assert (top / "log" / FIRST).read_bytes() == bytes(data)
    assert sorted(file.name for file in (top / "log").iterdir()) == [FIRST, "locks", "mark", "syncing"]
    assert log.bounds().durable == 5


def test_a_changed_byte_in_an_older_segment_is_named_by_readers_and_by_verify(top: Path) -> None:
    ledger = Ledger()
    log = open_log(top / "log", create=True)
    for _ in range(30):
        ledger.append(log, ledger.payloads(1, 700))
    log.close()
    frames = frames_of(top / "log", "0000000002.seg")
    bad = frames[3]
    file = top / "log" / "0000000002.seg"
    data = bytearray(file.read_bytes())
    data[bad.start + 80] ^= 1
    file.write_bytes(data)
    log = open_log(top / "log")
    with pytest.raises(CorruptLogError) as caught:
        list(log.read(0))
    assert (caught.value.file, caught.value.position, caught.value.offset) == (file.name, bad.position, bad.start)
    assert len(list(log.read(bad.position))) == 30 - bad.position, "what stands behind it can be read"
    assert log.record_at(bad.position - 1) is not None
    for after in (bad.position + 1, bad.position + 2):
        assert next(log.read(after)).position == after + 1
    assert not log.verify().sound
    frames = frames_of(top / "log", "0000000001.seg")
    seal = frames[-1]
    assert seal.kind == frame.SEAL
    file = top / "log" / "0000000001.seg"
    file.write_bytes(file.read_bytes()[: seal.start])
    assert "the segment was ended without its SEAL" in [finding.what for finding in log.verify().findings]


def test_damaged_and_missing_segments_are_found_by_readers_and_by_verify(top: Path) -> None:
    ledger = Ledger()
    log = open_log(top / "log", create=True)
    for _ in range(60):
        ledger.append(log, ledger.payloads(1, 700))
    log.close()
    names = sorted(file.name for file in (top / "log").glob("*.seg"))
    assert len(names) > 3
    for name in names[:-1]:
        path = top / f"without-{name}"
        shutil.copytree(top / "log", path)
        (path / name).unlink()
        log = open_log(path, boot=2)
        with pytest.raises(CorruptLogError, match=name):
            list(log.read(0))
        assert log.verify().sound == (name == names[0]), "who keeps the oldest is not known here"
        log.close()
        path = top / f"damaged-{name}"
        shutil.copytree(top / "log", path)
        data = bytearray((path / name).read_bytes())
        data[100] ^= 1
        (path / name).write_bytes(data)
        log = open_log(path, boot=2)
        with pytest.raises(CorruptLogError, match=name):
            list(log.read(0))
        assert not log.verify().sound
        log.close()


def test_a_segment_of_another_store_is_refused(top: Path) -> None:
    for name in ("log", "other"):
        log = open_log(top / name, create=True)
        for payload in Ledger().payloads(20, 700):
            log.append([payload])
        log.close()
    shutil.copy(top / "other" / FIRST, top / "log" / FIRST)
    log = open_log(top / "log")
    with pytest.raises(CorruptLogError, match="another store"):
        list(log.read(0))
    assert not log.verify().sound


@pytest.mark.parametrize("boot", [1, 2])
def test_a_newer_frame_is_refused_and_no_byte_changes(top: Path, boot: int) -> None:
    made(top / "log")
    file = top / "log" / FIRST
    data = file.read_bytes()
    header = segment.decode(data, FIRST)
    last = frames_of(top / "log")[-1]
    newer = bytearray(data[last.start : last.end])
    newer[8] = 2
    newer[:4] = zlib.crc32(newer[4:], header.seed).to_bytes(4, "little")
    with file.open("ab") as opened:
        opened.write(newer)
    before = contents(top / "log")
    log = open_log(top / "log", boot=boot, limits=LARGE)
    with pytest.raises(NewerFormatError):
        log.append([b"x"])
    with pytest.raises(NewerFormatError):
        log.bounds()
    log.close()
    assert {name: data for name, data in contents(top / "log").items() if not name.startswith("locks")} == {
        name: data for name, data in before.items() if not name.startswith("locks")
    }


def test_a_newer_segment_is_refused_and_no_byte_changes(top: Path) -> None:
    made(top / "log")
    file = top / "log" / FIRST
    data = bytearray(file.read_bytes())
    data[8] = 2
    data[:4] = zlib.crc32(data[4:512]).to_bytes(4, "little")
    file.write_bytes(data)
    before = contents(top / "log")
    with pytest.raises(NewerFormatError, match="segment format 2"):
        open_log(top / "log")
    assert contents(top / "log") == before


def test_half_a_frame_is_cut_by_the_next_append_and_kept_aside(top: Path) -> None:
    ledger = made(top / "log")
    last = frames_of(top / "log")[-1]
    with (top / "log" / FIRST).open("ab") as file:
        file.write(b"half a frame")
    log = open_log(top / "log", limits=LARGE)
    (finding,) = log.verify().findings
    assert (finding.file, finding.offset, finding.position, finding.damage) == (FIRST, last.end, 9, False)
    assert log.bounds().last == last.position
    ledger.append(log, ledger.payloads(1, 20))
    (torn,) = log.torn
    assert (torn.position, torn.bytes_cut) == (last.position + 1, 12)
    assert (top / "log" / torn.file).read_bytes() == b"half a frame"
    assert [one.file for one in log.verify().findings] == [torn.file]
    ledger.check(log)


def test_tails_torn_twice_at_one_place_are_both_kept(top: Path) -> None:
    made(top / "log")
    kept: list[str] = []
    for number in range(2):
        with (top / "log" / FIRST).open("ab") as file:
            file.write(b"junk %d" % number)
        path = top / "log"
        log = open_log(path, boot=number + 2, limits=LARGE)
        log.bounds()
        kept.extend(torn.file for torn in log.torn)
        log.close()
    assert len(set(kept)) == 2
    assert [(top / "log" / name).read_bytes() for name in kept] == [b"junk 0", b"junk 1"]
