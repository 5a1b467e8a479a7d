"""Which locks are held at each call, and what comes before what, in everything that happens to a log."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nereus_cli.log.files import FileLog
from nereus_cli.ports import OwnerHead
from nereus_cli.testing import CrashedError, Fault, FaultDisk
from tests.log.watching import Event, Watched
from tests.log.world import Ledger, fast_directory, open_log

BOTH = frozenset({"append", "sync"})
SEGMENT = ".seg"


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


def some_records(path: Path, ledger: Ledger) -> None:
    log = open_log(path, create=True)
    ledger.append(log, ledger.payloads(3))
    log.close()


def a_torn_tail(path: Path, ledger: Ledger) -> None:
    some_records(path, ledger)
    with (path / "0000000001.seg").open("ab") as file:
        file.write(b"\0" * 50)


def an_unreadable_note(path: Path, ledger: Ledger) -> None:
    some_records(path, ledger)
    (path / "syncing").write_bytes(b"\xff" * 64)


def append_two(log: FileLog, ledger: Ledger) -> None:
    ledger.append(log, ledger.payloads(1))
    ledger.append(log, ledger.payloads(3))


def append_much(log: FileLog, ledger: Ledger) -> None:
    for _ in range(4):
        ledger.append(log, ledger.payloads(1, 4_000))


def own(log: FileLog, ledger: Ledger) -> None:
    ledger.own(log, ledger.payloads(3), OwnerHead(0, 0))


def look(log: FileLog, _ledger: Ledger) -> None:
    log.bounds()


CASES: dict[str, tuple[Callable[[Path, Ledger], None], Callable[[FileLog, Ledger], None], int, int]] = {
    "appending": (some_records, append_two, 0, 1),
    "rotating": (some_records, append_much, 0, 1),
    "owning": (some_records, own, 0, 1),
    "a sync that fails": (some_records, append_two, 1, 1),
    "an unreadable note": (an_unreadable_note, append_two, 0, 1),
    "a torn tail": (a_torn_tail, append_two, 0, 1),
    "another boot": (some_records, append_two, 0, 2),
    "another boot, a torn tail": (a_torn_tail, look, 0, 2),
    "another boot, an unreadable note": (an_unreadable_note, look, 0, 2),
}


def watched(path: Path, case: str) -> list[Event]:
    prepare, act, failing, boot = CASES[case]
    ledger = Ledger()
    prepare(path, ledger)
    disk = Watched(failing)
    log = open_log(path, disk=disk, boot=boot)
    act(log, ledger)
    log.close()
    return disk.events


def needed(event: Event) -> frozenset[str]:
    """The locks without which a call may not be made."""
    if event.call in {"link", "unlink", "truncate"} or event.name.startswith(("new-", "torn-")):
        return BOTH
    if event.call == "write" and event.name.endswith(SEGMENT):
        return frozenset({"append"})
    if event.name in {"durable", "syncing"} or (event.call == "sync" and event.name.endswith(SEGMENT)):
        return frozenset({"sync"})
    return frozenset()


@pytest.mark.parametrize("case", CASES)
def test_every_call_is_made_under_the_locks_it_needs(top: Path, case: str) -> None:
    events = watched(top / "log", case)
    assert [event for event in events if not needed(event) <= event.held] == []
    assert any(event.call == "sync" and event.name.startswith(("new-", "0000")) for event in events)


@pytest.mark.parametrize("case", CASES)
def test_sync_is_taken_before_append_where_both_are_needed(top: Path, case: str) -> None:
    events = watched(top / "log", case)
    taken = [event for event in events if event.call == "take"]
    assert {event.name for event in taken} == BOTH
    assert [event for event in taken if event.name == "sync" and event.held] == []


@pytest.mark.parametrize("case", CASES)
def test_no_segment_is_synced_without_a_note_and_no_mark_raised_without_a_sync(top: Path, case: str) -> None:
    synced = noted = False
    for event in watched(top / "log", case):
        match event.call, event.name:
            case "write", "syncing":
                noted = True
            case "sync", name if name.endswith(SEGMENT):
                assert noted
                synced, noted = True, False
            case "sync", name if name.startswith("new-"):
                synced = True
            case "write", "durable":
                assert synced
            case _:
                continue


def test_an_adopted_name_is_written_again_and_synced_before_the_mark(top: Path) -> None:
    events = watched(top / "log", "another boot")
    calls = [f"{event.call} {event.name}" for event in events if event.name != "syncing"]
    begun = calls.index("link new-names")
    assert calls[begun : begun + 5] == [
        "link new-names",
        "unlink new-names",
        "sync log",
        "sync 0000000001.seg",
        "write durable",
    ]


def test_the_directories_of_a_new_log_are_durable_before_its_first_segment(top: Path) -> None:
    disk = Watched()
    open_log(top / "log", disk=disk, create=True).close()
    calls = disk.calls()
    assert calls[:5] == ["make log", "make mark", "make locks", "sync log", f"sync {top.name}"]
    assert calls.index("link 0000000001.seg") > 5


@pytest.mark.parametrize("case", ["rotating", "a sync that fails", "an unreadable note"])
def test_a_segment_is_durable_before_it_has_its_name_and_known_before_the_mark_moves(top: Path, case: str) -> None:
    calls = [f"{event.call} {event.name}" for event in watched(top / "log", case)]
    unnamed = next(call for call in calls if call.startswith("write new-2-")).removeprefix("write ")
    begun = calls.index(f"write {unnamed}")
    assert calls[begun : begun + 6] == [
        f"write {unnamed}",
        f"sync {unnamed}",
        "link 0000000002.seg",
        f"unlink {unnamed}",
        "sync log",
        "write durable",
    ]


def test_a_segment_ends_with_a_seal_that_is_durable_before_its_successor_begins(top: Path) -> None:
    calls = [f"{event.call} {event.name}" for event in watched(top / "log", "rotating") if event.call != "take"]
    begun = next(at for at, call in enumerate(calls) if call.startswith("write new-2-"))
    ending = [call for call in calls[:begun] if call != "write syncing"]
    assert ending[-6:] == [
        "write 0000000001.seg",
        "sync 0000000001.seg",
        "write durable",
        "write 0000000001.seg",
        "sync 0000000001.seg",
        "write durable",
    ]


def test_each_answer_comes_behind_a_sync_of_its_own(top: Path) -> None:
    disk, ledger = Watched(), Ledger()
    log = open_log(top / "log", disk=disk, create=True)
    for count in (1, 1, 2, 1):
        disk.events.clear()
        ledger.append(log, ledger.payloads(count))
        calls = [call for call in disk.calls() if not call.startswith("take") and call != "write syncing"]
        assert calls[-2:] == ["sync 0000000001.seg", "write durable"]
    log.close()


def test_a_barrier_syncs_what_a_dead_writer_left(top: Path) -> None:
    ledger = Ledger()
    some_records(top / "log", ledger)
    writer = FaultDisk(Watched(), faults=(Fault(at=1, only="write_at", after=True),))
    with contextlib.suppress(CrashedError):
        ledger.append(open_log(top / "log", disk=writer), ledger.payloads(1))
    assert writer.crashed
    writer.forget()
    disk = Watched()
    log = open_log(top / "log", disk=disk)
    assert (log.bounds().durable, log.bounds().last) == (3, 4)
    assert log.barrier() == 4
    assert log.bounds().durable == 4
    assert "sync 0000000001.seg" in disk.calls()
    log.close()
