from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.log.files import FileLog
from nereus_cli.ports import CorruptLogError, NotQueuedError
from nereus_cli.testing import Fault, FaultDisk
from tests.log.world import LARGE, Ledger, SetClock, fast_directory, open_log

READ_ONLY_CALLS = {"open_directory", "open_file", "read_at", "size", "inode", "inode_of", "names"}


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


class ReadOnlyDisk(SystemDisk):
    """As a file system that was mounted read-only."""

    def __init__(self, number: int = errno.EROFS) -> None:
        self.number = number

    def open_file(
        self,
        name: str,
        *,
        below: int,
        create: bool = False,
        exclusive: bool = False,
        write: bool = True,
        links: int = 1,
    ) -> int:
        if write:
            raise OSError(self.number, "may not be written", name)
        return super().open_file(name, below=below, create=create, exclusive=exclusive, write=write, links=links)

    def make_directory(self, name: str, *, below: int) -> None:
        raise OSError(self.number, f"may not be written below {below}", name)


class CountingDisk(SystemDisk):
    """Counts the bytes that are read."""

    bytes_read = 0

    def read_at(self, fd: int, size: int, offset: int) -> bytes:
        data = super().read_at(fd, size, offset)
        self.bytes_read += len(data)
        return data


def test_any_position_of_a_large_segment_is_found_with_few_reads(top: Path) -> None:
    log = open_log(top / "log", create=True, limits=LARGE)
    for start in range(0, 20_000, 2_000):
        log.append([b"%05d" % number + b"x" * (number % 301) for number in range(start, start + 2_000)])
    log.close()
    for position in (1, 2, 777, 10_000, 19_999, 20_000):
        disk = CountingDisk()
        log = open_log(top / "log", disk=disk, limits=LARGE)
        record = log.record_at(position)
        assert record is not None
        assert record.position == position
        assert record.payload.startswith(b"%05d" % (position - 1))
        assert disk.bytes_read < 1_500_000
        log.close()
    log = open_log(top / "log", limits=LARGE)
    log.append([b"y" * 900_000, b"z" * PRODUCTION.record_bytes_max, b"end"])
    for position in (20_003, 20_002, 20_001, 20_000, 9):
        assert next(log.read(position - 1)).position == position
    assert sum(1 for _ in log.read(0)) == 20_003
    for position in (19_000, 3, 12_345, 20_002):
        found = log.record_at(position)
        assert found is not None
        assert found.position == position


def test_a_position_before_one_huge_record_is_found(top: Path) -> None:
    log = open_log(top / "log", create=True, limits=LARGE)
    log.append([b"small"] * 10)
    log.append([b"v" * (1 << 20)])
    for position in (5, 11):
        found = open_log(top / "log", limits=LARGE).record_at(position)
        assert found is not None
        assert found.position == position


def test_records_larger_than_a_read_are_read(top: Path) -> None:
    log = open_log(top / "log", create=True, limits=LARGE)
    sizes = [1 << 20, 0, 300_000, 70_000, 1 << 20]
    for size in sizes:
        log.append([b"v" * size])
    other = open_log(top / "log", limits=LARGE)
    other.append([b"w"])
    assert [len(record.payload) for record in other.read(0)] == [*sizes, 1]


def test_readers_of_a_healthy_log_write_nothing_and_take_no_lock(top: Path) -> None:
    ledger = Ledger()
    log = open_log(top / "log", create=True)
    for _ in range(30):
        ledger.append(log, ledger.payloads(1, 700))
    disk = FaultDisk(SystemDisk())
    reader = open_log(top / "log", disk=disk)
    assert reader.bounds().durable == 30
    assert len(list(reader.read(0))) == 30
    assert reader.record_at(17) is not None
    assert reader.wait(0, 1.0) == 30
    assert reader.verify().sound
    assert set(disk.calls) <= READ_ONLY_CALLS


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("boot", [1, 2])
@pytest.mark.parametrize("mark", [True, False])
def test_a_log_that_may_not_be_written_can_be_read_as_far_as_it_is_proven(
    top: Path, number: int, boot: int, mark: bool
) -> None:
    ledger = Ledger()
    log = open_log(top / "log", create=True)
    for _ in range(16):
        ledger.append(log, ledger.payloads(1, 700))
    log.close()
    if not mark:
        (top / "log" / "mark" / "durable").unlink()
        (top / "log" / "mark").rmdir()
    reader = open_log(top / "log", disk=ReadOnlyDisk(number), boot=boot)
    expected = 16 if mark else 15
    assert reader.bounds().durable == expected, "the last frame proves only what was durable before it"
    assert reader.bounds().last == 16
    assert [record.payload for record in reader.read(0)] == list(ledger.acknowledged.values())[:expected]
    assert reader.wait(expected, 0.01) == expected
    with pytest.raises(NotQueuedError) as refused:
        reader.append([b"x"])
    assert refused.value.errno == number
    with pytest.raises(OSError, match="may not"):
        reader.barrier()


def test_a_log_that_may_not_be_written_and_is_too_short_is_corrupt(top: Path) -> None:
    ledger = Ledger()
    log = open_log(top / "log", create=True)
    for _ in range(5):
        ledger.append(log, ledger.payloads(1))
    log.close()
    with (top / "log" / "0000000001.seg").open("r+b") as file:
        file.truncate(700)
    reader = open_log(top / "log", disk=ReadOnlyDisk(), boot=2)
    with pytest.raises(CorruptLogError, match="position 5, which was durable"):
        reader.bounds()


def test_readers_do_not_wait_for_ever_for_an_adoption(top: Path) -> None:
    ledger = Ledger()
    log = open_log(top / "log", create=True)
    ledger.append(log, ledger.payloads(1))
    ledger.append(log, ledger.payloads(1))
    disk = SystemDisk()
    lock = disk.open_file("sync", below=disk.open_directory(str(top / "log" / "locks")))
    assert disk.try_lock(lock)
    reader = open_log(top / "log", boot=2, wait=0.05)
    assert reader.bounds().durable == 2
    disk.unlock(lock)


@pytest.mark.parametrize("path", ["nothing", "empty"])
def test_what_is_no_log_is_not_made_one_by_looking(top: Path, path: str) -> None:
    (top / "empty").mkdir()
    with pytest.raises(FileNotFoundError):
        open_log(top / path)
    assert [file.name for file in top.iterdir()] == ["empty"]
    assert not list((top / "empty").iterdir())
    log = open_log(top / path, create=True)
    assert log.append([b"x"])[0].position == 1


def test_a_log_that_lost_all_its_segments_is_not_believed(top: Path) -> None:
    log = open_log(top / "log", create=True)
    log.append([b"x"])
    (top / "log" / "0000000001.seg").unlink()
    with pytest.raises(FileNotFoundError):
        log.bounds()
    with pytest.raises(NotQueuedError):
        log.append([b"y"])


def test_a_directory_may_be_named_in_bytes(top: Path) -> None:
    log = FileLog(bytes(top / "log"), disk=SystemDisk(), clock=SetClock(), limits=LARGE, create=True)
    assert log.append([b"x"])[0].position == 1


def test_what_is_behind_a_fork_is_refused(top: Path) -> None:
    log = open_log(top / "log", create=True)
    log._pid += 1
    with pytest.raises(RuntimeError, match="fork"):
        log.append([b"x"])


def test_an_owner_may_not_append_more_than_a_segment_at_once(top: Path) -> None:
    from nereus_cli.ports import OwnerHead

    log = open_log(top / "log", create=True)
    writer = log.claim(OwnerHead(0, 0), b"x")
    with pytest.raises(ValueError, match="one segment"):
        writer.append([b"x" * 5_000, b"y" * 5_000])
    assert log.bounds().last == 1


def test_a_failed_open_is_said_not_guessed(top: Path) -> None:
    log = open_log(top / "log", create=True)
    log.append([b"x"])
    log.close()
    errors = 0
    for at in range(1, 30):
        disk = FaultDisk(SystemDisk(), faults=(Fault(at=at, only="open_file", error=errno.EIO),))
        try:
            durable = open_log(top / "log", disk=disk).bounds().durable
        except OSError:
            errors += 1
        else:
            assert durable == 1
        disk.forget()
    assert errors >= 3


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_missing_segment_is_named_by_whoever_looks(top: Path, missing: int) -> None:
    """Also one below everything that is still to be read: a log without holes is what everybody stands on."""
    log = open_log(top / "log", create=True)
    for _ in range(40):
        log.append([b"x" * 1_000])
    log.close()
    assert len(list((top / "log").glob("*.seg"))) > 3
    name = f"{missing:010d}.seg"
    (top / "log" / name).unlink()
    log = open_log(top / "log")
    with pytest.raises(CorruptLogError, match=f"{name}: missing") as damage:
        log.bounds()
    assert damage.value.file == name
    log.close()
