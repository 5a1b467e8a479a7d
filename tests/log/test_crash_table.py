"""One test for each row of the table in docs/crash-safety.md, and one that holds the two together."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.disk import SystemDisk
from nereus_cli.log.files import FileLog
from nereus_cli.ports import CorruptLogError, NotQueuedError
from nereus_cli.testing import CrashedError, Everything, Fault, FaultDisk, Medium, Nothing
from nereus_cli.testing.medium import Choice
from tests.log.world import Ledger, fast_directory, open_log, rebooted

DOCUMENT = Path(__file__).parents[2] / "docs" / "crash-safety.md"
FIRST, SECOND = "0000000001.seg", "0000000002.seg"


class World:
    """A log of three records, on a medium, and what its next user finds."""

    def __init__(self, top: Path) -> None:
        (top / "machine").mkdir()
        self.top = top
        self.medium = Medium(str(top / "machine"))
        self.path = top / "machine" / "log"
        self.ledger = Ledger()
        self.append(3)

    def append(self, count: int = 1, size: int = 60, *faults: Fault) -> FaultDisk:
        """Appends one by one; a crash is the end of that process."""
        disk = FaultDisk(SystemDisk(), medium=self.medium, faults=faults)
        log = open_log(self.path, disk=disk, create=True)
        try:
            for _ in range(count):
                self.ledger.append(log, self.ledger.payloads(1, size))
        except CrashedError:
            pass
        assert disk.crashed == bool(faults)
        disk.forget()
        return disk

    def fill(self) -> None:
        """Nearly to the limit, so that the next record makes it rotate."""
        self.append(2, 4_000)

    def cut(self, choice: Choice) -> None:
        """The power goes; what the medium has is found by the next boot."""
        self.medium.after_cut(str(self.top / "after"), choice)
        self.path = self.top / "after" / "log"
        rebooted(self.path)

    def files(self) -> list[str]:
        return sorted(file.name for file in self.path.iterdir() if file.name not in {"mark", "locks", "syncing"})

    def found(self, boot: int = 1) -> FileLog:
        """The next process: everything acknowledged must be there, and the log must work."""
        log = open_log(self.path, boot=boot)
        self.ledger.check(log)
        return log

    def payloads(self) -> list[bytes]:
        return [record.payload for record in open_log(self.path).read(0)]


@pytest.fixture
def world() -> Iterator[World]:
    with fast_directory() as top:
        yield World(top)


def test_every_row_has_its_test_and_every_test_its_row() -> None:
    rows = re.findall(r"^\| (C\d\d) \|", DOCUMENT.read_text(), re.MULTILINE)
    tests = [name for name in vars(sys.modules[__name__]) if re.match(r"test_c\d\d_", name)]
    assert rows == sorted(set(rows))
    assert sorted({f"C{name[6:8]}" for name in tests}) == rows


def test_c01_half_a_frame(world: World) -> None:
    world.append(1, 60, Fault(at=1, only="write_at", short=True))
    log = world.found()
    assert [torn.position for torn in log.torn] == [4]
    assert world.files() == [FIRST, log.torn[0].file]


def test_c01_the_copy_is_durable_before_the_tail_is_cut(world: World) -> None:
    world.append(1, 60, Fault(at=1, only="write_at", short=True))
    half = (world.path / FIRST).read_bytes()[-67:]
    world.append(1)
    (name,) = (name for name in world.files() if name.startswith("torn-"))
    world.cut(Nothing())
    assert (world.path / name).read_bytes() == half
    world.found(boot=2)


def test_c02_a_frame_nobody_synced(world: World) -> None:
    world.append(1, 60, Fault(at=1, only="write_at", after=True))
    assert open_log(world.path).bounds().last == 4
    assert world.ledger.uncertain[0] not in world.payloads()
    world.found()
    assert world.payloads()[3] == world.ledger.uncertain[0]
    assert world.files() == [FIRST]


def test_c03_a_sync_whose_holder_died(world: World) -> None:
    world.append(1, 60, Fault(at=1, only="sync_data"))
    log = world.found()
    assert world.files() == [FIRST, SECOND]
    assert world.payloads()[3] == world.ledger.uncertain[0]
    assert log.torn == ()


def test_c04_a_sync_that_succeeded_and_was_not_told(world: World) -> None:
    world.append(1, 60, Fault(at=1, only="sync_data", after=True))
    world.found()
    assert world.files() == [FIRST, SECOND]
    assert world.payloads()[3] == world.ledger.uncertain[0]


def test_c05_a_segment_half_made(world: World) -> None:
    world.fill()
    world.append(1, 60 + 1_000, Fault(at=1, only="link"))
    leftover = world.path / "new-2-99"
    leftover.write_bytes(b"half")
    world.found()
    assert world.files() == [FIRST, SECOND]


def test_c06_a_successor_the_mark_does_not_know(world: World) -> None:
    world.fill()
    world.append(1, 1_060, Fault(at=1, only="link", after=True))
    inode = (world.path / SECOND).stat().st_ino
    world.found()
    assert (world.path / SECOND).stat().st_ino == inode
    assert world.files() == [FIRST, SECOND]


def test_c07_a_seal_without_a_successor(world: World) -> None:
    world.fill()
    world.append(1, 1_060, Fault(at=2, only="sync_data", after=True))
    assert world.files() == [FIRST]
    log = world.found()
    assert world.files() == [FIRST, SECOND]
    assert log.torn == ()


def test_c08_half_a_seal(world: World) -> None:
    world.fill()
    world.append(1, 1_060, Fault(at=4, only="write_at", short=True))
    log = world.found()
    assert [torn.bytes_cut for torn in log.torn] == [34]
    assert world.files()[:2] == [FIRST, SECOND]


def test_c09_a_hole_and_frames_behind_it(world: World) -> None:
    world.append(1, 60, Fault(at=1, only="write_at", after=True))
    size = (world.path / FIRST).stat().st_size
    world.append(1, 60, Fault(at=1, only="write_at", after=True))
    data = bytearray((world.path / FIRST).read_bytes())
    data[size - 135 : size] = bytes(135)
    (world.path / FIRST).write_bytes(data)
    log = world.found(boot=2)
    assert [(torn.position, torn.bytes_cut) for torn in log.torn] == [(4, 270)]
    assert (world.path / log.torn[0].file).read_bytes() == bytes(data[size - 135 :])


def test_c10_a_successor_whose_name_is_lost(world: World) -> None:
    world.fill()
    world.append(1, 1_060, Fault(at=1, only="sync_directory"))
    assert world.files() == [FIRST, SECOND]
    world.cut(Nothing())
    assert world.files() == [FIRST]
    world.found(boot=2)


def test_c11_a_successor_with_a_second_name(world: World) -> None:
    world.fill()
    world.append(1, 1_060, Fault(at=1, only="unlink"))
    world.cut(Everything())
    assert [name for name in world.files() if name.startswith("new-2-")]
    world.found(boot=2)
    assert world.files() == [FIRST, SECOND]


def test_c12_a_mark_of_an_earlier_boot(world: World) -> None:
    disk = FaultDisk(SystemDisk())
    log = open_log(world.path, disk=disk, boot=2)
    assert log.bounds().durable == 3
    assert disk.calls.index("sync_data") < len(disk.calls) - 1 - disk.calls[::-1].index("write_at"), "then the mark"
    world.found(boot=2)


def test_c13_a_mark_older_than_its_file(world: World) -> None:
    mark = (world.path / "mark" / "durable").read_bytes()
    world.append(3)
    (world.path / "mark" / "durable").write_bytes(mark)
    world.found()


def test_c14_a_file_shorter_than_what_is_proven(world: World) -> None:
    data = (world.path / FIRST).read_bytes()
    (world.path / FIRST).write_bytes(data[:-10])
    for boot in (1, 2):
        with pytest.raises(CorruptLogError):
            open_log(world.path, boot=boot).append([b"x"])
    assert (world.path / FIRST).read_bytes() == data[:-10]


def test_c15_directories_without_a_segment(world: World) -> None:
    for file in world.path.glob("*.seg"):
        file.unlink()
    (world.path / "mark" / "durable").unlink()
    with pytest.raises(FileNotFoundError):
        open_log(world.path)
    world.ledger = Ledger()
    world.append(1)
    world.found()


def test_c16_a_tail_that_was_cut_earlier(world: World) -> None:
    world.append(1, 60, Fault(at=1, only="write_at", short=True))
    name = world.found().torn[0].file
    log = world.found()
    assert [(finding.file, finding.damage) for finding in log.verify().findings] == [(name, False)]
    assert log.torn == ()


def test_c17_a_note_that_cannot_be_read(world: World) -> None:
    world.append(1, 60, Fault(at=1, only="write_at", after=True))
    (world.path / "syncing").write_bytes(b"\xff" * 64)
    world.found()
    assert world.files() == [FIRST, SECOND]


def test_c18_a_failed_sync_that_could_not_be_repaired(world: World) -> None:
    sync = Fault(at=1, only="sync_data", error=errno.EIO)
    link = Fault(at=1, only="link", error=errno.ENOSPC, for_ever=True)
    failing = open_log(world.path, disk=FaultDisk(SystemDisk(), faults=(sync, link)))
    world.ledger.append(failing, world.ledger.payloads(1))
    assert len(world.ledger.uncertain) == 1
    size = (world.path / FIRST).stat().st_size
    refused = open_log(world.path, disk=FaultDisk(SystemDisk(), faults=(link,)))
    with pytest.raises(NotQueuedError) as caught:
        refused.append([b"refused"])
    assert caught.value.errno == errno.ENOSPC
    assert (world.path / FIRST).stat().st_size == size
    world.found()
    assert world.payloads()[3] == world.ledger.uncertain[0]
    assert b"refused" not in world.payloads()


@pytest.mark.parametrize("left", [[FIRST], []], ids=["the newest is missing", "all are missing"])
@pytest.mark.parametrize("boot", [1, 2])
def test_c19_a_mark_of_a_segment_that_is_gone(world: World, boot: int, left: list[str]) -> None:
    world.append(4, 4_000)
    assert world.files() == [FIRST, SECOND]
    for name in {FIRST, SECOND}.difference(left):
        (world.path / name).unlink()
    mark = (world.path / "mark" / "durable").read_bytes()
    for _ in range(2):
        with pytest.raises(CorruptLogError):
            open_log(world.path, boot=boot, create=True).append([b"x"])
    assert world.files() == left
    assert (world.path / "mark" / "durable").read_bytes() == mark
