"""Marks and notes that are old, lost, copied or unreadable: believing them too much loses records, so nobody does."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nereus_cli.disk import SystemDisk
from nereus_cli.log import mark as marks
from nereus_cli.log.files import FileLog
from nereus_cli.log.mark import Note
from nereus_cli.ports import CorruptLogError, OwnerHead
from nereus_cli.testing import Fault, FaultDisk
from tests.log.world import LARGE, SMALL, Ledger, SetClock, fast_directory, open_log


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


def open_note(path: Path) -> bytes:
    """The note of a sync that began just above the mark."""
    mark = marks.decode_mark((path / "mark" / "durable").read_bytes())
    assert mark is not None
    return marks.encode_note(
        Note(
            boot_id=mark.boot_id,
            ordinal=mark.ordinal,
            inode=mark.inode,
            first=mark.durable + 1,
            last=mark.durable + 3,
            poisoned=False,
            pid=1,
        )
    )


def leave(_path: Path) -> None:
    """Nothing more happens to the files."""


def delete_the_mark(path: Path) -> None:
    (path / "mark" / "durable").unlink()


def tear_the_mark(path: Path) -> None:
    file = path / "mark" / "durable"
    file.write_bytes(file.read_bytes()[:40] + bytes(24))


def delete_both(path: Path) -> None:
    delete_the_mark(path)
    (path / "syncing").unlink()


def tear_the_note(path: Path) -> None:
    (path / "syncing").write_bytes(b"\xff" * 64)


def tear_both(path: Path) -> None:
    tear_the_mark(path)
    tear_the_note(path)


def copy(path: Path) -> None:
    shutil.copytree(path, path.with_name("copy"))
    shutil.rmtree(path)
    path.with_name("copy").rename(path)


def lose_the_locks(path: Path) -> None:
    shutil.rmtree(path / "locks")
    shutil.rmtree(path / "mark")


@pytest.mark.parametrize("boot", [1, 2])
@pytest.mark.parametrize("noted", [False, True], ids=["", "a sync in flight"])
@pytest.mark.parametrize("limits", [SMALL, LARGE], ids=["older segment", "same segment"])
@pytest.mark.parametrize(
    "then",
    [leave, delete_the_mark, tear_the_mark, delete_both, tear_the_note, tear_both, copy, lose_the_locks],
    ids=lambda then: then.__name__,
)
def test_an_old_mark_loses_nothing(
    top: Path, then: Callable[[Path], None], limits: object, noted: bool, boot: int
) -> None:
    """The mark and the note go back to what they were twenty records ago, as when a medium is pulled and put back."""
    path = top / "log"
    assert isinstance(limits, type(SMALL))
    ledger = Ledger()
    log = open_log(path, create=True, limits=limits)
    for _ in range(10):
        ledger.append(log, ledger.payloads(1, 200))
    mark = (path / "mark" / "durable").read_bytes()
    note = open_note(path) if noted else (path / "syncing").read_bytes()
    ledger.own(log, ledger.payloads(3), OwnerHead(0, 0))
    for _ in range(30 if limits == SMALL else 10):
        ledger.append(log, ledger.payloads(2, 200))
    log.close()
    (path / "mark" / "durable").write_bytes(mark)
    (path / "syncing").write_bytes(note)
    then(path)
    log = open_log(path, boot=boot, limits=limits)
    ledger.check(log)
    ledger.check(log)
    assert log.torn == ()
    log.close()


def test_a_handle_that_stays_open_follows_a_mark_that_was_replaced(top: Path) -> None:
    ledger = Ledger()
    old = open_log(top / "log", create=True)
    ledger.append(old, ledger.payloads(2))
    delete_the_mark(top / "log")
    new = open_log(top / "log")
    ledger.append(new, ledger.payloads(2))
    assert old.barrier() == 4
    ledger.append(old, ledger.payloads(1))
    assert new.bounds().durable == 5, "both look at the same file again"
    ledger.append(new, ledger.payloads(1))
    ledger.check(old)
    ledger.check(new)


def test_an_unreadable_note_is_a_sync_of_unknown_result(top: Path) -> None:
    ledger = Ledger()
    log = open_log(top / "log", create=True)
    ledger.append(log, ledger.payloads(2))
    tear_the_note(top / "log")
    ledger.append(log, ledger.payloads(2))
    assert log.verify().segments == 2
    ledger.append(log, ledger.payloads(2))
    assert log.verify().segments == 2
    ledger.check(log)


def test_an_old_mark_of_a_segment_that_was_poisoned_is_outrun(top: Path) -> None:
    """Such a segment has no SEAL: only its successor tells that it is not the newest any more."""
    path, ledger = top / "log", Ledger()
    log = open_log(path, create=True)
    ledger.append(log, ledger.payloads(2))
    mark, note = (path / "mark" / "durable").read_bytes(), (path / "syncing").read_bytes()
    fault = Fault(at=1, only="sync_data", error=errno.EIO)
    ledger.append(open_log(path, disk=FaultDisk(SystemDisk(), faults=(fault,))), ledger.payloads(2))
    assert log.verify().segments == 2
    (path / "mark" / "durable").write_bytes(mark)
    (path / "syncing").write_bytes(note)
    ledger.append(open_log(path), ledger.payloads(1))
    ledger.check(open_log(path))


def test_a_mark_from_the_future_of_another_file_proves_nothing(top: Path) -> None:
    """A copy made while the log was written may hold a newer mark than its segment."""
    ledger = Ledger()
    log = open_log(top / "log", create=True, limits=LARGE)
    ledger.append(log, ledger.payloads(2))
    shutil.copytree(top / "log", top / "copy")
    ledger.append(log, ledger.payloads(2))
    shutil.copy(top / "log" / "mark" / "durable", top / "copy" / "mark" / "durable")
    copied = open_log(top / "copy", limits=LARGE)
    assert copied.bounds().durable == 2
    assert copied.append([b"x"])[0].position == 3


def test_leftovers_of_makers_are_swept_by_the_next_one(top: Path) -> None:
    ledger = Ledger()
    log = open_log(top / "log", create=True)
    ledger.append(log, ledger.payloads(2))
    (top / "log" / "new-7-99").write_bytes(b"half a segment")
    assert [finding.file for finding in log.verify().findings] == ["new-7-99"]
    delete_the_mark(top / "log")
    log = open_log(top / "log", boot=2)
    ledger.check(log)
    assert not log.verify().findings
    assert msgspec.json.encode(log.verify())


@pytest.mark.parametrize("torn", [0, 1, 40])
def test_a_log_that_ends_before_what_was_folded_is_not_written_again(top: Path, torn: int) -> None:
    """Rows beside the log prove what was durable in it where the mark cannot: here in a copy cut short."""
    ledger = Ledger()
    log = open_log(top / "log", create=True, limits=LARGE)
    ledger.append(log, ledger.payloads(2))
    size = (top / "log" / "0000000001.seg").stat().st_size
    ledger.append(log, ledger.payloads(1))
    store_id = log.store_id
    log.close()
    copy(top / "log")
    with (top / "log" / "0000000001.seg").open("r+b") as file:
        file.truncate(size + torn)

    def opened(applied: int) -> FileLog:
        def folded(asked: bytes) -> int:
            assert asked == store_id
            return applied

        clock = SetClock()
        return FileLog(str(top / "log"), disk=SystemDisk(), clock=clock, limits=LARGE, create=True, applied=folded)

    for _ in range(2):
        with pytest.raises(CorruptLogError, match="the copy's projection"):
            opened(3).append([b"x"])
    with pytest.raises(CorruptLogError, match="the copy's projection"):
        opened(3).bounds()
    assert (top / "log" / "0000000001.seg").stat().st_size == size + torn
    assert opened(2).append([b"x"])[0].position == 3
