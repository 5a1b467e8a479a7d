"""Moments between two system calls in which somebody else does something, or the system says something rare."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nereus_cli.disk import SystemDisk
from nereus_cli.log import commit, making, repair, segment
from nereus_cli.log.batch import Batch
from nereus_cli.log.frame import HEAD_BYTES
from nereus_cli.log.guard import Guard
from nereus_cli.ports import EnqueueUncertainError, FencedError, NotQueuedError, OwnerHead
from nereus_cli.testing import Fault, FaultDisk, Medium
from tests.log.world import LARGE, SMALL, Ledger, fast_directory, open_log

EEXIST = Fault(at=1, only="link", error=errno.EEXIST, after=True)
SYNC_FAILS = Fault(at=1, only="sync_data", error=errno.EIO)


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


class Meanwhile(SystemDisk):
    """Lets something happen just before the Nth call of a name."""

    def __init__(self, call: str, at: int, action: Callable[[], object]) -> None:
        self.call, self.at, self.action = call, at, action

    def _now(self, call: str) -> None:
        if call == self.call:
            self.at -= 1
            if self.at == 0:
                self.action()

    def sync_data(self, fd: int) -> None:
        self._now("sync_data")
        super().sync_data(fd)

    def try_lock(self, fd: int) -> bool:
        self._now("try_lock")
        return super().try_lock(fd)

    def unlock(self, fd: int) -> None:
        super().unlock(fd)
        self._now("unlock")


class Stingy(SystemDisk):
    """Takes a few bytes with each write, and in the end none."""

    def __init__(self, each: int, total: int) -> None:
        self.each, self.total = each, total

    def write_at(self, fd: int, data: bytes, offset: int) -> int:
        part = data[: min(self.each, self.total)]
        self.total -= len(part)
        return super().write_at(fd, part, offset) if part else 0


def nearly_full(path: Path, ledger: Ledger) -> None:
    log = open_log(path, create=True)
    ledger.append(log, ledger.payloads(2, 4_227))
    log.close()


def test_somebody_else_does_the_sync_while_we_ask_for_the_lock(top: Path) -> None:
    ledger = Ledger()
    other = open_log(top / "log", create=True)
    ledger.append(other, ledger.payloads(1))
    log = open_log(top / "log", disk=Meanwhile("try_lock", 2, other.barrier))
    ledger.append(log, ledger.payloads(1))
    ledger.check(other)


def test_a_successor_that_appears_while_a_segment_is_poisoned_is_adopted(top: Path) -> None:
    ledger = Ledger()
    ledger.append(open_log(top / "log", create=True), ledger.payloads(2))
    disk = FaultDisk(SystemDisk(), faults=(SYNC_FAILS, EEXIST))
    log = open_log(top / "log", disk=disk)
    ledger.append(log, ledger.payloads(2))
    assert disk.hits == 2
    assert not ledger.uncertain
    ledger.check(log)


def test_a_successor_that_appears_while_a_segment_is_rotated_is_adopted(top: Path) -> None:
    ledger = Ledger()
    nearly_full(top / "log", ledger)
    disk = FaultDisk(SystemDisk(), faults=(EEXIST,))
    log = open_log(top / "log", disk=disk)
    ledger.append(log, ledger.payloads(1))
    assert disk.hits == 1
    assert not ledger.uncertain
    ledger.check(log)


def test_half_a_frame_behind_the_last_one_of_a_full_segment_is_cut_before_the_seal(top: Path) -> None:
    ledger = Ledger()
    nearly_full(top / "log", ledger)

    def half_a_frame() -> None:
        with (top / "log" / "0000000001.seg").open("ab") as file:
            file.write(b"NRfr half")

    log = open_log(top / "log", disk=Meanwhile("sync_data", 1, half_a_frame))
    ledger.append(log, ledger.payloads(1))
    assert [torn.bytes_cut for torn in log.torn] == [9]
    assert log.verify().segments == 2
    ledger.check(log)


def test_a_frame_copied_behind_the_end_is_torn_and_proves_nothing(top: Path) -> None:
    ledger = Ledger()
    log = open_log(top / "log", create=True)
    ledger.append(log, ledger.payloads(1))
    ledger.append(log, ledger.payloads(1))
    file = top / "log" / "0000000001.seg"
    data = file.read_bytes()
    file.write_bytes(data + data[segment.HEADER_BYTES :])
    ledger.check(log)
    assert [torn.bytes_cut for torn in log.torn] == [len(data) - segment.HEADER_BYTES]


def test_somebody_elses_record_at_my_position_is_not_mine(top: Path) -> None:
    """My page was lost to a failing sync, and before I look the position is given out again."""
    medium = Medium(str(top))
    other = open_log(top / "log", create=True, disk=FaultDisk(SystemDisk(), medium=medium))
    other.append([b"first"])

    class Both(FaultDisk):
        def unlock(self, fd: int) -> None:
            super().unlock(fd)
            if "link" in self.calls:
                unlocked.append(fd)
            if len(unlocked) == 2 and not taken:
                taken.append(other.append([b"other"])[0].position)

    taken: list[int] = []
    unlocked: list[int] = []
    disk = Both(SystemDisk(), medium=medium, evict=True, faults=(SYNC_FAILS,))
    log = open_log(top / "log", disk=disk)
    assert log.append([b"mine"])[0].position == 3
    assert taken == [2]
    assert [record.payload for record in log.read(0)] == [b"first", b"other", b"mine"]


@pytest.mark.parametrize("each", [1, 7, 60, 10_000])
def test_writes_that_take_a_part_are_gone_on_with(top: Path, each: int) -> None:
    ledger = Ledger()
    ledger.append(open_log(top / "log", create=True), ledger.payloads(1))
    log = open_log(top / "log", disk=Stingy(each, 1 << 30))
    with Guard() as guard:
        for count in (1, 3):
            commit.write(log._handle, Batch(ledger.payloads(count)), guard)
    assert open_log(top / "log").barrier() == 5


@pytest.mark.parametrize("total", [0, 1, 5, 40, 69, 100, 128, 300])
@pytest.mark.parametrize("count", [1, 3])
def test_a_disk_that_takes_no_more_means_not_queued(top: Path, total: int, count: int) -> None:
    ledger = Ledger()
    ledger.append(open_log(top / "log", create=True), ledger.payloads(1))
    size = (top / "log" / "0000000001.seg").stat().st_size
    log = open_log(top / "log", disk=Stingy(50, total))
    payloads = ledger.payloads(count)
    frames = count * (HEAD_BYTES + len(payloads[0]))
    if total < frames:
        with pytest.raises(NotQueuedError) as caught:
            log.append(payloads)
        assert caught.value.errno == errno.ENOSPC
        assert (top / "log" / "0000000001.seg").stat().st_size == size
        ledger.refused.extend(payloads)
    else:
        with pytest.raises(EnqueueUncertainError):
            log.append(payloads)
    ledger.check(open_log(top / "log"))


@pytest.mark.parametrize(
    "fault", [Fault(at=1, short=True), Fault(at=1, after=True), Fault(at=2), Fault(at=2, short=True)]
)
def test_of_a_batch_whose_writer_died_nothing_is_seen(top: Path, fault: Fault) -> None:
    open_log(top / "log", create=True).append([b"first"])
    disk = FaultDisk(SystemDisk(), faults=(msgspec.structs.replace(fault, only="write_at"),))
    with pytest.raises(EnqueueUncertainError):
        open_log(top / "log", disk=disk).append([b"one", b"two", b"three"])
    assert disk.crashed
    disk.forget()
    log = open_log(top / "log")
    assert log.bounds().last == 1
    log.append([b"next"])
    assert [record.payload for record in log.read(0)] == [b"first", b"next"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_file_that_may_not_grow_any_further_takes_a_record_whole_or_not_at_all(top: Path, count: int) -> None:
    """The kernel itself writes short here, at every byte of the record in turn."""
    ledger = Ledger()
    log = open_log(top / "log", create=True, limits=LARGE)
    ledger.append(log, ledger.payloads(1))
    file = top / "log" / "0000000001.seg"
    size = file.stat().st_size
    frames = count * (HEAD_BYTES + 67)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for more in range(frames + 1):
        payloads = ledger.payloads(count)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + more, hard))
        try:
            ledger.append(log, payloads)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (len(ledger.refused), len(ledger.uncertain)) == (min(more + 1, frames) * count, 0)
        assert file.stat().st_size == size + (frames if more == frames else 0)
    ledger.check(log)


@pytest.mark.parametrize(("count", "at", "seen"), [(1, 1, True), (3, 1, False), (3, 2, True)])
def test_a_write_that_failed_although_it_worked_is_taken_back_only_if_nobody_can_have_seen_it(
    top: Path, count: int, at: int, seen: bool
) -> None:
    ledger = Ledger()
    ledger.append(open_log(top / "log", create=True), ledger.payloads(1))
    fault = Fault(at=at, only="write_at", error=errno.EIO, after=True)
    log = open_log(top / "log", disk=FaultDisk(SystemDisk(), faults=(fault,)))
    ledger.append(log, ledger.payloads(count))
    assert (len(ledger.uncertain), len(ledger.refused)) == ((count, 0) if seen else (0, count))
    assert open_log(top / "log").barrier() == (1 + count if seen else 1)
    ledger.check(open_log(top / "log"))


def test_a_mark_or_note_that_is_taken_in_part_leaves_the_answer_open(top: Path) -> None:
    ledger = Ledger()
    ledger.append(open_log(top / "log", create=True), ledger.payloads(1))
    for rest in (10, 64 + 10):
        payloads = ledger.payloads(1)
        log = open_log(top / "log", disk=Stingy(1_000, HEAD_BYTES + len(payloads[0]) + rest))
        with pytest.raises(EnqueueUncertainError):
            log.append(payloads)
        log = open_log(top / "log")
        assert payloads[0] in [record.payload for record in log.read(0, through=log.barrier())]
    log = open_log(top / "log")
    ledger.acknowledged.update({record.position: record.payload for record in log.read(0)})
    ledger.check(log)


def test_a_first_segment_is_made_once(top: Path) -> None:
    log = open_log(top / "log", create=True)
    log.append([b"x"])
    making.make_first_segment(log._handle)
    assert log.verify().segments == 1


def test_a_log_that_does_not_come_to_rest_takes_nothing(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_log(top / "log", create=True).append([b"x"])
    log = open_log(top / "log", boot=2)
    monkeypatch.setattr(repair, "settle", lambda _handle: None)
    with pytest.raises(NotQueuedError, match="rest"):
        log.append([b"y"])


def test_a_mark_that_may_only_be_read_refuses_an_append_before_anything_is_written(top: Path) -> None:
    class Refusing(SystemDisk):
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
            if name == "durable" and write:
                raise PermissionError(errno.EACCES, "refused", name)
            return super().open_file(name, below=below, create=create, exclusive=exclusive, write=write, links=links)

    open_log(top / "log", create=True).append([b"x"])
    size = (top / "log" / "0000000001.seg").stat().st_size
    log = open_log(top / "log", disk=Refusing())
    assert log.bounds().durable == 1
    with pytest.raises(NotQueuedError) as caught:
        log.append([b"y"])
    assert caught.value.errno == errno.EACCES
    assert (top / "log" / "0000000001.seg").stat().st_size == size


def test_a_pipe_in_the_place_of_the_mark_says_nothing_and_hides_nothing(top: Path) -> None:
    log = open_log(top / "log", create=True)
    log.append([b"a"])
    log.append([b"b"])
    (top / "log" / "mark" / "durable").unlink()
    os.mkfifo(top / "log" / "mark" / "durable")
    assert [record.payload for record in open_log(top / "log").read(0)] == [b"a", b"b"], "carried, and so proven"


def test_an_owner_sees_a_thief_in_the_same_segment(top: Path) -> None:
    log = open_log(top / "log", create=True, limits=LARGE)
    writer = log.claim(OwnerHead(0, 0), b"first")
    writer.append([b"second"])
    open_log(top / "log", limits=LARGE).claim(writer.head, b"thief")
    with pytest.raises(FencedError):
        writer.append([b"late"])


def test_a_batch_larger_than_a_segment_that_is_refused_half_way_is_uncertain(top: Path) -> None:
    open_log(top / "log", create=True).append([b"x"])
    log = open_log(top / "log", disk=Stingy(10_000, 9_000))
    with pytest.raises(EnqueueUncertainError):
        log.append([b"y" * 8_000, b"z" * 8_000])
    assert SMALL.segment_bytes_max < 16_000
    assert open_log(top / "log").barrier() == 2


def test_frames_that_cannot_be_read_stay_where_they_are_and_nothing_is_claimed_of_them(tmp_path: Path) -> None:
    """The sync failed, and the disk does not even give back what it was to keep: the new segment begins without it."""
    log = open_log(tmp_path / "log", create=True)
    ledger = Ledger()
    ledger.append(log, ledger.payloads(2))
    log.close()
    failing = Fault(at=1, only="sync_data", error=errno.EIO)
    plain = FaultDisk(SystemDisk(), faults=(failing,))
    ledger.append(open_log(tmp_path / "log", disk=plain), ledger.payloads(1))
    before = plain.calls.index("sync_data")
    reads = [number for number in range(before, len(plain.calls)) if plain.calls[number] == "read_at"]
    seen = 0
    for number in reads:
        path = tmp_path / str(number)
        log = open_log(path, create=True)
        told = Ledger()
        told.append(log, told.payloads(2))
        log.close()
        at = plain.calls[: number + 1].count("read_at")
        disk = FaultDisk(SystemDisk(), faults=(failing, Fault(at=at, only="read_at", error=errno.EIO)))
        told.append(open_log(path, disk=disk), told.payloads(1))
        seen += disk.hits == 2
        told.check(open_log(path))
    assert seen
