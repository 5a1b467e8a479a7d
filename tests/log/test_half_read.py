"""An exception in the middle of reading the tail leaves a handle that knows where it stands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.log import frame
from nereus_cli.log.frame import Frame, Place
from nereus_cli.log.tail import Tail
from nereus_cli.ports import EnqueueUncertainError
from tests.log.world import Ledger, open_log


def test_a_handle_that_read_half_of_the_tail_does_not_write_over_the_other_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when memory runs out there: found by failing every allocation of an append."""
    scan = frame.scan

    def stopped(buffer: bytes, start: int, place: Place, seed: int) -> Iterator[Frame]:
        for found in scan(buffer, start, place, seed):
            yield found
            raise MemoryError

    ledger = Ledger()
    log = open_log(tmp_path / "log", create=True)
    ledger.append(log, ledger.payloads(2))
    with monkeypatch.context() as patch:
        patch.setattr(frame, "scan", stopped)
        with pytest.raises(EnqueueUncertainError):
            log.append([b"it stands"])
    other = open_log(tmp_path / "log")
    ledger.append(other, ledger.payloads(1))
    ledger.append(log, ledger.payloads(3))
    ledger.check(other)
    assert [record.payload for record in log.read(2, through=3)] == [b"it stands"]


def test_a_handle_that_entered_half_of_a_segment_enters_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    log = open_log(tmp_path / "log", create=True)
    ledger.append(log, ledger.payloads(2))
    tail = Tail(log._handle.room, write=True)
    mark = log._handle.room.mark()
    assert mark is not None
    with monkeypatch.context() as patch:
        patch.setattr(Tail, "sealed", property(lambda _: False, lambda _, __: _no_memory()), raising=False)
        with pytest.raises(MemoryError):
            tail.enter(mark)
    tail.enter(mark)
    assert (tail.ordinal, tail.last, tail.end) == (mark.ordinal, mark.durable, mark.offset)
    tail.leave()


def test_a_tail_whose_leaving_was_broken_off_closes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number may be another file's by then: found by an exception at every line of a repair."""
    log = open_log(tmp_path / "log", create=True)
    room = log._handle.room
    mark = room.mark()
    assert mark is not None
    tail = Tail(room, write=True)
    tail.enter(mark)
    closed: list[int] = []

    def close(fd: int) -> None:
        closed.append(fd)
        os.close(fd)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(room.disk, "close", close)
        with pytest.raises(KeyboardInterrupt):
            tail.leave()
        tail.leave()
    assert len(closed) == 1
    log.close()


def _no_memory() -> None:
    raise MemoryError
