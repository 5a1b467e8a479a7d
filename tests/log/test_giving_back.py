"""Nobody waits for a lock that nobody means to hold."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from nereus_cli.disk import SystemDisk
from nereus_cli.log.locks import Lock
from nereus_cli.ports import NotQueuedError
from nereus_cli.testing import Fault, FaultDisk
from tests.log.world import Ledger, open_log


@pytest.mark.parametrize("number", [1, 2])
def test_a_lock_that_was_granted_by_a_call_that_failed_is_given_back(tmp_path: Path, number: int) -> None:
    """The first is *append*, the second *sync*; the handle lives on, as an owner's does."""
    ledger = Ledger()
    ledger.append(open_log(tmp_path / "log", create=True), ledger.payloads(1))
    fault = Fault(at=number, only="try_lock", error=errno.EIO, after=True)
    refused = open_log(tmp_path / "log", disk=FaultDisk(SystemDisk(), faults=(fault,)))
    ledger.append(refused, ledger.payloads(1))
    other = open_log(tmp_path / "log", wait=0.05)
    ledger.check(other)
    refused.close()


def test_a_lock_that_is_lost_sight_of_while_it_is_given_back_is_given_back(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", create=True)
    room = log._handle.room
    room.sync_lock.try_take()
    room.sync_lock.held = False
    room.drop_locks()
    with (tmp_path / "log" / "locks" / "sync").open("rb") as file:
        assert Lock(SystemDisk(), file.fileno(), "sync").try_take()


def test_a_wait_that_is_over_holds_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", create=True)
    with (tmp_path / "log" / "locks" / "append").open("rb") as file:
        holder = Lock(SystemDisk(), file.fileno(), "append")
        assert holder.try_take()
        with pytest.raises(NotQueuedError):
            log._handle.room.append_lock.take(0.01)
        holder.drop()
        assert not holder.held
        assert log._handle.room.append_lock.try_take()
