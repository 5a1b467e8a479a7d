"""What every CommandLog must do: the one in memory and the one on files, and whichever comes next."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.domain.limits import TINY
from nereus_cli.ports import (
    Appended,
    Bounds,
    CommandLog,
    Durability,
    EnqueueUncertainError,
    FencedError,
    Kind,
    NotQueuedError,
    OwnerHead,
)
from nereus_cli.testing import MemoryLog
from tests.log.world import SetClock, fast_directory, open_log


class Adapter(Protocol):
    """How a kind of log is made, and how another process would open the same one."""

    def open(self) -> CommandLog: ...
    def another(self) -> CommandLog: ...
    def close(self) -> None: ...


class InMemory:
    def __init__(self) -> None:
        self.log = MemoryLog(clock=SetClock(), limits=TINY)

    def open(self) -> CommandLog:
        return self.log

    def another(self) -> CommandLog:
        return self.log.another()

    def close(self) -> None:
        self.log.close()


class OnFiles:
    def __init__(self) -> None:
        self.directory = fast_directory()
        self.path: Path = self.directory.__enter__() / "log"
        self.logs: list[CommandLog] = []

    def open(self) -> CommandLog:
        self.logs.append(open_log(self.path, create=True, limits=TINY))
        return self.logs[-1]

    def another(self) -> CommandLog:
        return self.open()

    def close(self) -> None:
        for log in self.logs:
            log.close()
        self.directory.__exit__(None, None, None)


@pytest.fixture(params=[InMemory, OnFiles], ids=["memory", "files"])
def adapter(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    made: Adapter = request.param()
    yield made
    made.close()


@pytest.fixture
def log(adapter: Adapter) -> CommandLog:
    return adapter.open()


def payloads(log: CommandLog, after: int = 0, through: int | None = None) -> list[bytes]:
    return [record.payload for record in log.read(after, through=through)]


def test_a_new_log_is_empty(log: CommandLog) -> None:
    assert log.bounds() == Bounds(1, 0, 0)
    assert payloads(log) == []
    assert log.record_at(1) is None
    assert log.barrier() == 0
    assert log.append([]) == []
    assert isinstance(log.durability, Durability)


def test_it_has_one_id_for_ever(adapter: Adapter) -> None:
    log = adapter.open()
    assert len(log.store_id) == 16
    assert adapter.another().store_id == log.store_id


def test_records_stand_in_order_and_can_be_read_by_every_handle(adapter: Adapter) -> None:
    log, other = adapter.open(), adapter.another()
    first = log.append([b"a", b""])
    second = other.append([b"c"])
    assert [one.position for one in (*first, *second)] == [1, 2, 3]
    for handle in (log, other):
        assert payloads(handle) == [b"a", b"", b"c"]
        assert payloads(handle, 1) == [b"", b"c"]
        assert payloads(handle, 1, 2) == [b""]
        assert payloads(handle, 3) == payloads(handle, 7) == payloads(handle, 2, 2) == []
        assert payloads(handle, 0, 99) == [b"a", b"", b"c"]
        assert handle.bounds() == Bounds(1, 3, 3)
        assert handle.barrier() == 3


def test_a_record_says_when_it_was_appended_and_by_which_boot(log: CommandLog) -> None:
    (placed,) = log.append([b"x"])
    record = log.record_at(1)
    assert record is not None
    assert record.persisted_at == placed.persisted_at
    assert 0 < record.persisted_at - SetClock().now < 1_000_000
    assert record.monotonic_ns == record.persisted_at, "this clock shows the same on both"
    assert record.boot_id == SetClock().boot_id
    assert (record.kind, record.link) == (Kind.CLIENT, None)


def test_record_at_knows_only_what_is_there(log: CommandLog) -> None:
    log.append([b"a", b"b"])
    found = [log.record_at(position) for position in (-1, 0, 1, 2, 3)]
    assert [None if one is None else one.payload for one in found] == [None, None, b"a", b"b", None]


def test_reading_ends_where_the_log_ended_when_it_was_asked(log: CommandLog) -> None:
    log.append([b"a"])
    reading = log.read(0)
    log.append([b"b"])
    assert [record.payload for record in reading] == [b"a"]


def test_a_payload_may_be_as_large_as_the_limit_and_no_larger(log: CommandLog) -> None:
    largest = b"x" * TINY.record_bytes_max
    log.append([largest])
    with pytest.raises(ValueError, match="8193 bytes"):
        log.append([b"fine", largest + b"x"])
    assert payloads(log) == [largest]


def test_many_records_cross_every_boundary(adapter: Adapter) -> None:
    log = adapter.open()
    expected: list[bytes] = []
    for number in range(40):
        batch = [b"%d.%d" % (number, one) + b"x" * (number * 37 % 900) for one in range(number % 4)]
        placed = log.append(batch)
        assert [one.position for one in placed] == list(range(len(expected) + 1, len(expected) + len(batch) + 1))
        expected.extend(batch)
    assert payloads(log) == payloads(adapter.another()) == expected
    for after in range(0, len(expected), 7):
        assert payloads(log, after) == expected[after:]


def test_one_call_may_hold_more_than_a_segment(log: CommandLog) -> None:
    batch = [b"%03d" % number + b"x" * 3_000 for number in range(20)]
    assert [one.position for one in log.append(batch)] == list(range(1, 21))
    assert payloads(log) == batch


@given(steps=st.lists(st.lists(st.binary(max_size=40), max_size=3), max_size=8), cut=st.integers(0, 30))
def test_what_was_appended_is_what_is_read(steps: list[list[bytes]], cut: int) -> None:
    for made in (InMemory(), OnFiles()):
        log = made.open()
        placed: list[Appended] = []
        for step in steps:
            placed.extend(log.append(step))
        whole = [payload for step in steps for payload in step]
        assert [one.position for one in placed] == list(range(1, len(whole) + 1))
        assert payloads(log, cut) == whole[cut:]
        assert payloads(log, 0, cut) == whole[:cut]
        made.close()


def test_wait_returns_at_once_when_there_is_more_and_in_time_when_there_is_not(log: CommandLog) -> None:
    assert log.wait(0, 0.05) == 0
    log.append([b"a", b"b"])
    assert log.wait(0, 30.0) == 2
    assert log.wait(1, 30.0) == 2
    assert log.wait(2, 0.05) == 2


def test_wait_is_woken_by_another_handle(adapter: Adapter) -> None:
    log, other = adapter.open(), adapter.another()
    seen: list[int] = []
    waiting = threading.Thread(target=lambda: seen.append(log.wait(0, 30.0)))
    waiting.start()
    other.append([b"x"])
    waiting.join(30)
    assert seen == [1]


def test_handles_in_threads_append_side_by_side(adapter: Adapter) -> None:
    logs = [adapter.open(), adapter.another(), adapter.another()]
    placed: list[tuple[int, bytes]] = []

    def work(name: int, log: CommandLog) -> None:
        for number in range(20):
            payload = b"%d.%d" % (name, number)
            placed.append((log.append([payload])[0].position, payload))

    threads = [threading.Thread(target=work, args=(name, logs[name % 3])) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    records = [(record.position, record.payload) for record in logs[0].read(0)]
    assert sorted(placed) == records
    assert [position for position, _ in records] == list(range(1, 81))


def test_owner_records_form_one_chain_among_those_of_clients(adapter: Adapter) -> None:
    log, client = adapter.open(), adapter.another()
    client.append([b"before"])
    writer = log.claim(OwnerHead(0, 0), b"acquired")
    assert writer.head == OwnerHead(2, 1)
    client.append([b"between"])
    assert [one.position for one in writer.append([b"one", b"two"])] == [4, 5]
    assert writer.head == OwnerHead(5, 1)
    assert writer.append([]) == []
    assert writer.head == OwnerHead(5, 1)
    client.append([b"behind"])
    again = client.claim(writer.head, b"next")
    assert again.head == OwnerHead(7, 2)
    links = [record.link for record in log.read(0)]
    assert [None if link is None else (link.epoch, link.prev) for link in links] == [
        None,
        (1, 0),
        None,
        (1, 2),
        (1, 4),
        None,
        (2, 5),
    ]
    rids = {link.rid for link in links if link is not None}
    assert len(rids) == 4
    assert [record.kind for record in log.read(0)].count(Kind.OWNER) == 4
    assert [record.payload for record in log.read(0) if record.kind == Kind.OWNER] == [
        b"acquired",
        b"one",
        b"two",
        b"next",
    ]


def test_a_deposed_owner_is_fenced_for_ever(adapter: Adapter) -> None:
    log, other = adapter.open(), adapter.another()
    deposed = log.claim(OwnerHead(0, 0), b"first")
    other.append([b"client"])
    successor = other.claim(deposed.head, b"second")
    other.append([b"x" * 5_000])
    other.append([b"x" * 5_000])
    for _ in range(2):
        with pytest.raises(FencedError):
            deposed.append([b"late"])
    assert deposed.head == OwnerHead(1, 1)
    successor.append([b"in time"])
    assert b"late" not in payloads(log)


def test_a_claim_behind_an_old_head_is_fenced(adapter: Adapter) -> None:
    log = adapter.open()
    writer = log.claim(OwnerHead(0, 0), b"first")
    writer.append([b"x"])
    for seen in (OwnerHead(0, 0), OwnerHead(1, 1)):
        with pytest.raises(FencedError):
            adapter.another().claim(seen, b"too late")
    assert payloads(log) == [b"first", b"x"]


def test_a_log_in_memory_fails_when_told_to() -> None:
    log = MemoryLog(clock=SetClock())
    log.fail_next(NotQueuedError("no"))
    log.fail_next(EnqueueUncertainError("perhaps"), stored=True)
    with pytest.raises(NotQueuedError):
        log.append([b"a"])
    with pytest.raises(EnqueueUncertainError):
        log.append([b"b"])
    assert log.append([b"c"])[0].position == 2
    assert payloads(log) == [b"b", b"c"]
