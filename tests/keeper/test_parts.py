"""Parts alone, for what the whole can hardly meet: mounts that hang, processes that outlive KILL, other systems."""

import errno
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from nereus_cli.destinations import keeper_store
from nereus_cli.keeper import daemons, folders, ladder, spawn, strays
from nereus_cli.keeper.attempt import Attempt, Exit, Rung
from nereus_cli.keeper.clock import SECOND
from nereus_cli.keeper.folders import Folders
from nereus_cli.keeper.ladder import KILL_PATIENCE_NS, Ladder
from nereus_cli.keeper.output import Stream
from nereus_cli.keeper.place import Place
from nereus_cli.keeper.spawn import NotStartedError
from nereus_cli.keeper.wire import Start
from tests.keeper.harness import linux_only, until


def test_a_directory_that_does_not_answer_is_refused_and_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "ANSWER_WITHIN_S", 0.05)
    mounted = threading.Event()
    asked: list[object] = []
    real = os.stat

    def stat(path: str | bytes) -> os.stat_result:
        if path == b"/mnt/dead":
            asked.append(path)
            mounted.wait()
            return real("/")
        return real(path)

    monkeypatch.setattr(os, "stat", stat)
    places = Folders()
    for _ in range(3):
        with pytest.raises(NotStartedError) as refused:
            places.require(b"/mnt/dead")
        assert (refused.value.number, refused.value.what) == (errno.ETIMEDOUT, "cwd")
        places.require(b"/")
    assert len(asked) == 1
    mounted.set()
    assert until(lambda: _answers(places, b"/mnt/dead"))


def _answers(places: Folders, path: bytes) -> bool:
    try:
        places.require(path)
    except NotStartedError:
        return False
    return True


def test_no_thread_to_ask_with_is_our_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(NotStartedError) as refused:
        Folders().require(b"/")
    assert refused.value.number == errno.EAGAIN


def an_attempt(grace_ms: int = 100) -> Attempt:
    start = Start("na~0", "1", b"/", 0, None, grace_ms, 0, None, [b"x"], {})
    nothing = Stream.__new__(Stream)
    return Attempt(start, 2**22 + 1, (nothing, nothing))


def an_exit() -> Exit:
    import resource

    return Exit(15, resource.getrusage(resource.RUSAGE_SELF))


def test_what_kill_does_not_end_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(ladder, "strays", lambda *_: [71, 72])
    monkeypatch.setattr(ladder, "_send", lambda pid, number: sent.append((pid, number)))
    settled: list[tuple[Attempt, int]] = []
    climbing = Ladder((), lambda *given: settled.append(given), adopts_orphans=True)
    attempt, now = an_attempt(), 0
    climbing.begin(attempt, now, kill=False)
    attempt.exit = an_exit()
    climbing.leader_ended(attempt, now)
    while climbing:
        due = climbing.next_ns()
        assert due is not None
        now = max(due, now + 1)
        climbing.climb(now)
        assert now < 10 * SECOND
    assert settled == [(attempt, 2)]
    assert now >= attempt.grace_ns + KILL_PATIENCE_NS
    assert [number for pid, number in sent if pid == 71][:3] == [15, 18, 9]
    assert [number for pid, number in sent if pid == 71].count(15) == 1


@pytest.mark.parametrize("kill", [True, False])
def test_the_group_of_a_leader_that_was_reaped_is_signalled_no_more(
    monkeypatch: pytest.MonkeyPatch, kill: bool
) -> None:
    """Its number may be somebody else's by then."""
    groups: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _number: groups.append(pid))
    monkeypatch.setattr(ladder, "strays", lambda *_: [])
    settled: list[Attempt] = []
    climbing = Ladder((), lambda attempt, _: settled.append(attempt), adopts_orphans=True)
    attempt = an_attempt()
    attempt.exit = an_exit()
    climbing.begin(attempt, 0, kill=kill)
    for now in range(0, 20 * SECOND, SECOND):
        climbing.climb(now)
    assert (groups, settled) == ([], [attempt])


def test_where_orphans_go_elsewhere_survivors_are_not_known() -> None:
    settled: list[int] = []
    climbing = Ladder((), lambda _, survivors: settled.append(survivors), adopts_orphans=False)
    attempt = an_attempt()
    climbing.begin(attempt, 0, kill=True)
    assert attempt.rung is Rung.KILL
    attempt.exit = an_exit()
    climbing.leader_ended(attempt, 1)
    climbing.climb(1)
    assert settled == [-1]


@pytest.mark.skipif(linux_only, reason="reads /proc")
@pytest.mark.parametrize("listed", [True, False])
def test_strays_are_told_by_group_session_or_environment(monkeypatch: pytest.MonkeyPatch, listed: bool) -> None:
    """With and without the kernel's list of children."""
    if not listed:
        monkeypatch.setattr(strays, "_children", lambda _: None)
    sleep = ["/bin/sleep", "60"]
    marked = subprocess.Popen(sleep, env={"NEREUS_ATTEMPT_ID": "na~1"}, start_new_session=True)
    similar = subprocess.Popen(sleep, env={"NEREUS_ATTEMPT_ID": "na~11"}, start_new_session=True)
    try:
        for child in (marked, similar):
            # An exec has succeeded a moment before the environment can be read.
            while b"NEREUS" not in Path(f"/proc/{child.pid}/environ").read_bytes():
                time.sleep(0.001)
        assert strays.strays("na~1", 2**22 + 1, ()) == [marked.pid]
        assert strays.strays("na~1", 2**22 + 1, {marked.pid}) == []
        assert strays.strays("na~2", similar.pid, ()) == [similar.pid]
        assert strays.strays("na~2", similar.pid, {similar.pid}) == [], "its number is another leader's by now"
    finally:
        for child in (marked, similar):
            child.kill()
            child.wait()


@pytest.mark.parametrize("near", [daemons.near, keeper_store.near])
@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_sockets_are_reached_however_long_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, near: Callable[..., None], system: str
) -> None:
    if system == "linux" and linux_only:
        pytest.skip("descriptors have a path on Linux")
    place = tmp_path / ("p" * 120)
    place.mkdir()
    directory = os.open(place, os.O_RDONLY)
    here = Path.cwd()
    monkeypatch.setattr(sys, "platform", system)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as peer:
        near(directory, "sock", listener.bind)
        listener.listen()
        near(directory, "sock", peer.connect)
    os.close(directory)
    assert (place / "sock").is_socket()
    assert Path.cwd() == here


def test_a_standard_input_without_memory_files_leaves_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    place = os.open(tmp_path, os.O_RDONLY)
    before = os.listdir(tmp_path)
    opened: list[int] = []
    fd = spawn._stdin(b"some", place, opened)
    assert os.read(fd, 10) == b"some"
    assert os.listdir(tmp_path) == before
    for number in (*opened, place):
        os.close(number)


def test_a_second_keeper_finds_the_place_taken(tmp_path: Path) -> None:
    before = set(os.listdir("/dev/fd"))

    def taken() -> Place:
        return Place(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY))

    try:
        first = taken()
        with pytest.raises(BlockingIOError):
            taken()
        first.unlock()
        taken()
    finally:
        for name in set(os.listdir("/dev/fd")) - before:
            with suppress(OSError):
                os.close(int(name))
