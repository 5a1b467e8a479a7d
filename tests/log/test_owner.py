"""Owner records on files: the fence reads what it has not seen, and poisoned segments change nothing in the chain."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.disk import SystemDisk
from nereus_cli.ports import EnqueueUncertainError, FencedError, OwnerHead
from nereus_cli.testing import Fault, FaultDisk, Medium
from tests.log.world import check_owners, fast_directory, open_log


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


class HalfEvicting(FaultDisk):
    """Drops the last page of a file whose sync failed, as far as our frames go."""

    def sync_data(self, fd: int) -> None:
        try:
            super().sync_data(fd)
        except OSError:
            self.truncate(fd, self.size(fd) - 10)
            raise


def test_the_fence_holds_over_rotations_and_poisonings(top: Path) -> None:
    log = open_log(top / "log", create=True)
    writer = log.claim(OwnerHead(0, 0), b"first")
    client = open_log(top / "log")
    for _ in range(40):
        client.append([b"x" * 900])
    assert writer.append([b"still"])[0].position == 42
    thief = open_log(top / "log").claim(writer.head, b"thief")
    for _ in range(40):
        client.append([b"x" * 900])
    with pytest.raises(FencedError, match=str(thief.head.position)):
        writer.append([b"late"])
    check_owners(log)


def test_a_foreign_owner_record_at_a_position_that_was_given_out_twice_is_seen(top: Path) -> None:
    """A client's frame at 2 was lost to a failing sync; then the position goes to another owner."""
    medium = Medium(str(top))
    log = open_log(top / "log", create=True, disk=FaultDisk(SystemDisk(), medium=medium))
    writer = log.claim(OwnerHead(0, 0), b"first")
    disk = FaultDisk(
        SystemDisk(),
        medium=medium,
        evict=True,
        faults=(
            Fault(at=1, only="sync_data", error=errno.EIO),
            Fault(at=1, only="link", error=errno.EIO),
        ),
    )
    failing = open_log(top / "log", disk=disk)
    with pytest.raises(EnqueueUncertainError):
        failing.append([b"lost"])
    thief = open_log(top / "log").claim(writer.head, b"thief")
    assert thief.head == OwnerHead(2, 2)
    with pytest.raises(FencedError):
        writer.append([b"late"])
    assert [record.payload for record in log.read(0)] == [b"first", b"thief"]


@pytest.mark.parametrize("count", [1, 3])
def test_an_owner_batch_whose_pages_are_gone_is_appended_again_with_a_new_prev(top: Path, count: int) -> None:
    medium = Medium(str(top))
    log = open_log(top / "log", create=True, disk=FaultDisk(SystemDisk(), medium=medium))
    log.append([b"client"])
    disk = FaultDisk(SystemDisk(), medium=medium, evict=True, faults=(Fault(at=2, only="sync_data", error=errno.EIO),))
    owner = open_log(top / "log", disk=disk)
    writer = owner.claim(OwnerHead(0, 0), b"acquired")
    placed = writer.append([b"record %d" % number for number in range(count)])
    assert disk.hits == 1
    assert [one.position for one in placed] == list(range(3, 3 + count))
    assert log.verify().segments == 2
    check_owners(log)
    assert [record.payload for record in log.read(2)] == [b"record %d" % number for number in range(count)]


def test_part_of_an_owner_batch_is_never_acknowledged(top: Path) -> None:
    """A sync failed and one page of three is gone: what could be carried stands, but nobody claims the batch."""
    log = open_log(top / "log", create=True)
    disk = HalfEvicting(SystemDisk(), faults=(Fault(at=2, only="sync_data", error=errno.EIO),))
    owner = open_log(top / "log", disk=disk)
    writer = owner.claim(OwnerHead(0, 0), b"acquired")
    with pytest.raises(EnqueueUncertainError, match="part of an owner's batch"):
        writer.append([b"one", b"two", b"three"])
    assert [record.payload for record in log.read(0)] == [b"acquired", b"one", b"two"]
    assert [torn.position for torn in owner.torn] == [4]
    check_owners(log)


def test_clients_get_the_rest_of_a_batch_appended_again(top: Path) -> None:
    log = open_log(top / "log", create=True)
    disk = HalfEvicting(SystemDisk(), faults=(Fault(at=1, only="sync_data", error=errno.EIO),))
    client = open_log(top / "log", disk=disk)
    assert [one.position for one in client.append([b"one", b"two", b"three"])] == [1, 2, 3]
    assert [record.payload for record in log.read(0)] == [b"one", b"two", b"three"]


def test_records_lost_twice_to_failing_syncs_are_uncertain(top: Path) -> None:
    medium = Medium(str(top))
    log = open_log(top / "log", create=True, disk=FaultDisk(SystemDisk(), medium=medium))
    faults = (Fault(at=1, only="sync_data", error=errno.EIO), Fault(at=3, only="sync_data", error=errno.EIO))
    client = open_log(top / "log", disk=FaultDisk(SystemDisk(), medium=medium, evict=True, faults=faults))
    with pytest.raises(EnqueueUncertainError, match="twice"):
        client.append([b"one"])
    assert log.append([b"next"])[0].position == 1
