"""What may be found after a crash, one test a row: locks, evidence and doors laid out by hand."""

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.destinations import keeper_decide, keeper_mounted, keeper_store
from nereus_cli.destinations.keeper_decide import (
    COPIED,
    DOUBTED,
    KEEPER_DIED,
    KEEPER_ERRED,
    NO_KEEPER_BEFORE,
    NO_TRACE,
    OTHER_BOOT,
    DoorClosed,
    NoEvidence,
    OpenAttempt,
    StillOpen,
    Verdict,
    decide,
)
from nereus_cli.destinations.keeper_evidence import Evidence
from nereus_cli.destinations.keeper_facts import Ended, NotStarted, checked_lines
from nereus_cli.destinations.keeper_store import keeper_alive, live_evidence
from nereus_cli.keeper import mounted
from nereus_cli.keeper.evidence import EvidenceFile
from nereus_cli.keeper.lines import line
from tests.keeper.harness import BOOT

NAME = "na~1"
BEFORE, ADMITTED, AFTER = 1_000, 2_000, 3_000
ENDED_WORDS = (0, 0, 0, 10, 20, 30, 1, 2, 3, 4, 5, 6, 7, 0)


class Place:
    """A store in which the evidence says what a test wants."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.locks: list[int] = []
        (root / "keeper").mkdir(parents=True)

    def evidence(
        self, *said: tuple[object, ...], begun: int = BEFORE, boot: bytes = BOOT, own: bool = True, alive: bool = False,
        name: str = "1.ev", mount: int | None = None,
    ) -> Path:  # fmt: skip
        path = self.root / "keeper" / name
        path.touch()
        found = path.stat()
        inode = found.st_ino if own else found.st_ino + 1
        more = () if mount is None else (mount,)
        head = line("HEAD", 1, boot.hex(), found.st_dev, inode, 7, 0, begun, *more)
        path.write_bytes(head + b"".join(line(*words) for words in said))
        if alive:
            self.locks.append(os.open(path, os.O_RDONLY))
            fcntl.flock(self.locks[-1], fcntl.LOCK_EX)
        return path

    def door(self, target: str | None = None) -> Path:
        path = self.path()
        path.parent.mkdir(parents=True)
        if target is None:
            path.touch()
        else:
            path.symlink_to(target)
        return path

    def path(self) -> Path:
        return self.root / "attempts" / "00000042" / NAME

    def decide(self, boot: bytes = BOOT) -> Verdict:
        attempt = OpenAttempt(attempt_id=NAME, directory=42, boot_id=boot, admitted_boot_ns=ADMITTED)
        return decide(os.fspath(self.root), attempt, BOOT)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "store")
    yield made
    for fd in made.locks:
        os.close(fd)


def unknown(verdict: Verdict) -> str:
    assert isinstance(verdict, NoEvidence)
    return verdict.reason


TAKEN = ("TAKEN", NAME)
STARTED = ("STARTED", NAME, 77, 5, 6)


def test_no_door_and_a_keeper_older_than_the_admission(place: Place) -> None:
    place.evidence()
    assert place.decide() == DoorClosed(attempt_id=NAME)
    assert place.path().is_symlink()
    assert place.decide() == DoorClosed(attempt_id=NAME), "the next owner can tell who closed it"


def test_no_door_though_it_was_taken(place: Place) -> None:
    place.evidence(TAKEN)
    assert isinstance(place.decide(), DoorClosed)


def test_no_door_while_the_keeper_lives(place: Place) -> None:
    place.evidence(alive=True)
    assert isinstance(place.decide(), DoorClosed)


@pytest.mark.parametrize("rest", ["nothing", "a keeper begun later", "an empty file", "a broken head"])
def test_no_door_and_no_evidence_from_before(place: Place, rest: str) -> None:
    if rest == "a keeper begun later":
        place.evidence(begun=AFTER)
    elif rest == "an empty file":
        (place.root / "keeper" / "1.ev").touch()
    elif rest == "a broken head":
        path = place.evidence()
        path.write_bytes(b"00000000" + path.read_bytes()[8:])
    assert unknown(place.decide()) == NO_KEEPER_BEFORE
    assert os.readlink(place.path()) == "closed-unproven", "yet it cannot start any more"
    place.evidence()
    assert unknown(place.decide()) == DOUBTED, "and a later owner reads no more into it"


def test_no_door_and_the_machine_was_started_anew(place: Place) -> None:
    place.evidence()
    assert unknown(place.decide(boot=bytes(16))) == OTHER_BOOT


def test_no_door_and_the_newest_evidence_before_is_of_another_boot(place: Place) -> None:
    place.evidence(boot=bytes(16))
    assert unknown(place.decide()) == NO_KEEPER_BEFORE


def test_no_door_and_the_evidence_is_a_copy(place: Place) -> None:
    place.evidence(own=False)
    assert unknown(place.decide()) == COPIED


def test_no_door_and_the_file_system_was_mounted_anew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one boot, as behind a medium that was pulled: device and inode are the same, and what the keeper wrote
    last may be lost."""
    monkeypatch.setattr("nereus_cli.destinations.keeper_evidence.mount_of", lambda _: 12)
    place.evidence(mount=11)
    assert unknown(place.decide()) == COPIED


@pytest.mark.parametrize(("said", "here"), [(None, 12), (0, 12), (12, 12), (12, 0)])
def test_no_door_and_the_same_mount_or_none_that_is_known(
    place: Place, monkeypatch: pytest.MonkeyPatch, said: int | None, here: int
) -> None:
    monkeypatch.setattr("nereus_cli.destinations.keeper_evidence.mount_of", lambda _: here)
    place.evidence(mount=said)
    assert isinstance(place.decide(), DoorClosed)


def test_the_keeper_says_its_mount_and_both_sides_see_the_same(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    EvidenceFile(directory, "1", BOOT.hex())
    with (tmp_path / "1.ev").open("rb") as file:
        (words,) = checked_lines(file.readline().rstrip(b"\n"))
        assert keeper_mounted.mount_of(file.fileno()) == mounted.mount_of(file.fileno()) == int(words[8])
    os.close(directory)


def test_a_keeper_that_began_in_the_copy_before_the_admission_proves_again(place: Place) -> None:
    place.evidence(own=False, begun=BEFORE)
    place.evidence(begun=BEFORE + 1, name="2.ev")
    assert isinstance(place.decide(), DoorClosed)


@pytest.mark.parametrize("said", [(TAKEN,), (TAKEN, STARTED), (STARTED,)])
def test_a_door_and_no_end_while_its_keeper_lives(place: Place, said: tuple[tuple[object, ...], ...]) -> None:
    place.evidence(*said, alive=True)
    place.door()
    pid, at = (77, 5) if STARTED in said else (None, None)
    assert place.decide() == StillOpen(attempt_id=NAME, pid=pid, started_at_ns=at)


def test_a_door_and_no_end_when_its_keeper_is_dead_and_another_lives(place: Place) -> None:
    place.evidence(TAKEN, STARTED, ("TIMEDOUT", NAME))
    place.evidence(name="2.ev", alive=True)
    place.door()
    assert place.decide() == NoEvidence(
        attempt_id=NAME, reason=KEEPER_DIED, pid=77, started_at_ns=5, timed_out=True, stopped=False
    )


def test_a_door_and_no_end_when_the_evidence_went_on_in_another_file(place: Place) -> None:
    place.evidence(TAKEN, STARTED)
    place.evidence(STARTED, name="2.ev", alive=True)
    place.door()
    assert isinstance(place.decide(), StillOpen)


def test_a_door_that_no_evidence_tells_of(place: Place) -> None:
    place.evidence(alive=True)
    place.door()
    assert unknown(place.decide()) == NO_TRACE


def test_a_door_without_an_end_from_another_boot(place: Place) -> None:
    place.evidence(TAKEN, STARTED, boot=bytes(16))
    place.door()
    assert unknown(place.decide(boot=bytes(16))) == OTHER_BOOT


def test_a_keeper_that_erred(place: Place) -> None:
    place.evidence(TAKEN, ("LOST", NAME), alive=True)
    place.door()
    assert unknown(place.decide()) == KEEPER_ERRED


@pytest.mark.parametrize("target", ["closed", "closed-by-keeper"])
def test_a_door_that_was_closed_stays_proof_in_every_boot(place: Place, target: str) -> None:
    place.door(target)
    assert isinstance(place.decide(boot=bytes(16)), DoorClosed)


@pytest.mark.parametrize("door", [None, "closed", "closed-unproven", "file"])
@pytest.mark.parametrize("boot", [BOOT, bytes(16)])
def test_an_end_is_an_end_whatever_else_is_found(place: Place, door: str | None, boot: bytes) -> None:
    place.evidence(TAKEN, STARTED, ("STOPPED", NAME), ("ENDED", NAME, *ENDED_WORDS), own=False, boot=boot)
    if door is not None:
        place.door(None if door == "file" else door)
    verdict = place.decide(boot=boot)
    assert isinstance(verdict, Ended)
    assert verdict.exit_code == 0


def test_a_start_that_failed_and_one_that_was_closed(place: Place) -> None:
    place.evidence(TAKEN, ("NOSTART", NAME, errno.ENOENT, "exec"))
    place.door()
    assert place.decide() == NotStarted(attempt_id=NAME, errno=errno.ENOENT, what="exec")
    place.evidence(TAKEN, ("CLOSED", NAME))
    assert place.decide() == DoorClosed(attempt_id=NAME)


def test_what_is_said_while_the_door_is_looked_at_is_heard(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper lives, opens the door just before it would be closed, and has an end before anybody asks again."""
    path = place.evidence(alive=True)
    shut = keeper_store.shut_door

    def late(store: int, directory: int, attempt_id: str, *, proven: bool) -> str | None:
        place.door()
        with path.open("ab") as file:
            file.write(line(*TAKEN) + line(*STARTED) + line("ENDED", NAME, *ENDED_WORDS))
        return shut(store, directory, attempt_id, proven=proven)

    monkeypatch.setattr(keeper_decide, "shut_door", late)
    assert isinstance(place.decide(), Ended)


def test_a_keeper_that_began_behind_the_look_at_the_locks_is_alive(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a file that nobody asked about, and has just opened the door."""
    place.evidence()
    shut = keeper_store.shut_door

    def late(store: int, directory: int, attempt_id: str, *, proven: bool) -> str | None:
        place.evidence(TAKEN, STARTED, begun=AFTER, name="2.ev", alive=True)
        place.door()
        return shut(store, directory, attempt_id, proven=proven)

    monkeypatch.setattr(keeper_decide, "shut_door", late)
    assert place.decide() == StillOpen(attempt_id=NAME, pid=77, started_at_ns=5)


def test_a_line_that_was_cut_is_no_line(place: Place) -> None:
    path = place.evidence(TAKEN, STARTED, ("ENDED", NAME, *ENDED_WORDS))
    path.write_bytes(path.read_bytes()[:-3])
    place.door()
    assert unknown(place.decide()) == KEEPER_DIED


def test_liveness_is_a_held_lock(place: Place) -> None:
    assert not keeper_alive(os.fspath(place.root))
    assert not keeper_alive(os.fspath(place.root.parent))
    place.evidence()
    (place.root / "keeper" / "lock").touch()
    assert not keeper_alive(os.fspath(place.root))
    place.evidence(name="2.ev", alive=True)
    assert keeper_alive(os.fspath(place.root))


def test_evidence_just_begun_counts_as_live(place: Place) -> None:
    (place.root / "keeper" / "1.ev").touch()
    directory = os.open(place.root / "keeper", os.O_RDONLY)
    assert live_evidence(directory) == {"1.ev": True}
    os.close(directory)


def test_a_snapshot_reads_only_what_was_added(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place.evidence(TAKEN, ("TAKEN", "na~other"))
    evidence = Evidence(os.fspath(place.root), {NAME})
    evidence.refresh()
    assert evidence.trace("na~other") is None
    with path.open("ab") as file:
        file.write(line(*STARTED) + line("ENDED", NAME, *ENDED_WORDS)[:-1])
    read: list[int] = []
    real = os.pread

    def pread(fd: int, size: int, at: int) -> bytes:
        read.append(at)
        return real(fd, size, at)

    monkeypatch.setattr(os, "pread", pread)
    before = path.read_bytes().index(line(*STARTED))
    evidence.refresh()
    assert read[0] == before
    trace = evidence.trace(NAME)
    assert trace is not None
    assert (trace.started is not None, trace.end) == (True, None)
    with path.open("ab") as file:
        file.write(b"\n")
    evidence.refresh()
    trace = evidence.trace(NAME)
    assert trace is not None
    assert isinstance(trace.end, Ended)
    evidence.forget([NAME])
    assert evidence.trace(NAME) is None
    evidence.close()


def test_many_attempts_take_one_pass(place: Place) -> None:
    names = [f"na~{number}" for number in range(5_000)]
    place.evidence(*((word, name, *rest) for name in names for word, *rest in (("TAKEN",), ("ENDED", *ENDED_WORDS))))
    evidence = Evidence(os.fspath(place.root))
    evidence.refresh()
    assert all((trace := evidence.trace(name)) and isinstance(trace.end, Ended) for name in names)
    evidence.close()


@given(st.lists(st.integers(1, 40), max_size=20))
def test_a_file_that_is_full_is_succeeded_by_one_that_repeats_what_still_runs(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    root = tmp_path_factory.mktemp("renewed")
    (root / "keeper").mkdir()
    directory = os.open(root / "keeper", os.O_RDONLY)
    file = EvidenceFile(directory, "k", BOOT.hex(), bytes_max=300)
    running = [line("STARTED", "na~long", 1, 2, 3)]
    file.add(running[0])
    assert file.flush() is None
    for number, size in enumerate(sizes):
        file.renew(running)
        file.add(b"".join(line("CLOSED", f"na~{number}-{some}") for some in range(size)))
        assert file.flush() is None
    file.renew(running)
    live = live_evidence(directory)
    assert sum(live.values()) == 1
    evidence = Evidence(os.fspath(root))
    evidence.refresh()
    trace = evidence.trace("na~long")
    assert trace is not None
    assert {name for name, alive in live.items() if alive} <= trace.files or len(live) == 1
    assert all(evidence.trace(f"na~{number}-0") for number in range(len(sizes)))
    assert all(head.own for head in evidence.heads())
    assert len(evidence.heads()) == len(live)
    evidence.close()
    os.close(file._fd)
    os.close(directory)
