"""How a keeper begins, is found, is replaced, and ends."""

import errno
import os
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nereus_cli.destinations.keeper_client import KeeperAwayError, KeeperClient
from nereus_cli.destinations.keeper_decide import DoorClosed, NoEvidence, StillOpen
from nereus_cli.destinations.keeper_facts import Closed, Ended, KeeperDraining, KeeperGone, NotStarted, Started
from nereus_cli.destinations.keeper_store import evidence_names, keeper_alive, live_evidence, near, prune
from tests.keeper.harness import (
    BOOT,
    Owner,
    command,
    decided,
    limit,
    linux_only,
    opened,
    process_state,
    shell,
    until,
    with_our_path,
)

Make = Callable[..., Owner]
pytestmark = pytest.mark.skipif(linux_only, reason="reads /proc")


def test_it_stands_on_its_own(owner: Owner) -> None:
    assert os.getsid(owner.pid) == owner.pid
    assert os.readlink(f"/proc/{owner.pid}/cwd") == "/"
    links = [os.readlink(f"/proc/{owner.pid}/fd/{fd}") for fd in range(3)]
    assert links == ["/dev/null", "/dev/null", f"{owner.store}/keeper/keeper.log"]
    variables = Path(f"/proc/{owner.pid}/environ").read_text().split("\0")
    assert {text.partition("=")[0] for text in variables} <= {"", "LC_CTYPE", "LD_LIBRARY_PATH"}
    for name in os.listdir(owner.store / "keeper"):
        assert stat.S_IMODE((owner.store / "keeper" / name).lstat().st_mode) & 0o077 == 0, name
    assert stat.S_IMODE((owner.store / "keeper").stat().st_mode) == 0o700


def test_it_ends_after_its_last_child_and_leaves_only_evidence(owner: Owner) -> None:
    owner.started(command("na~0", b"/bin/sleep", b"0.6"))
    owner.close()
    assert keeper_alive(os.fspath(owner.store))
    assert until(lambda: process_state(owner.pid) is None, 10)
    assert not keeper_alive(os.fspath(owner.store))
    left = sorted(os.listdir(owner.store / "keeper"))
    assert [name.rpartition(".")[2] for name in left] == ["ev", "log", "lock"]
    assert isinstance(decided(owner.store, opened(["na~0"]))["na~0"], Ended)


def test_it_stays_while_a_daemon_is_connected(make_owner: Make) -> None:
    owner = make_owner(idle_s=0.1)
    time.sleep(0.5)
    assert owner.run(command("na~0", b"/bin/true")).exit_code == 0


def test_one_keeper_a_store_whoever_asks_at_once(make_owner: Make) -> None:
    owners = [make_owner() for _ in range(3)]
    assert len({owner.pid for owner in owners}) == 1
    owners[0].start(command("na~0", b"/bin/true"))
    assert [owner.wait(Ended, "na~0").exit_code for owner in owners] == [0, 0, 0]


def test_keepers_started_at_the_same_moment_leave_one(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    racers = []
    for _ in range(4):
        pid = os.fork()
        if pid:
            racers.append(pid)
            continue
        try:
            client = KeeperClient(os.fspath(store), BOOT, idle_s=0.1)
            client.connect(20)
            (tmp_path / f"pid-{os.getpid()}").write_text(str(client.pid))
            until(lambda: len(list(tmp_path.glob("pid-*"))) == 4)
        finally:
            os._exit(0)
    for pid in racers:
        assert os.waitpid(pid, 0)[1] == 0
    found = {path.read_text() for path in tmp_path.glob("pid-*")}
    assert len(list(tmp_path.glob("pid-*"))) == 4
    assert len(found) == 1
    (keeper,) = map(int, found)
    assert until(lambda: process_state(keeper) is None)


def test_a_successor_finds_it_and_hears_what_it_runs(owner: Owner, make_owner: Make) -> None:
    owner.started(shell("na~0", "sleep 0.5; exit 5"))
    owner.close()
    successor = make_owner()
    assert successor.pid == owner.pid
    assert successor.wait(Ended, "na~0").exit_code == 5


def test_drain_frees_the_place_at_once_and_reports_to_the_end(owner: Owner, make_owner: Make) -> None:
    old = owner.started(command("na~0", b"/bin/sleep", b"1.5"))
    owner.client.drain()
    owner.wait(KeeperDraining)
    assert not owner.client.accepting
    with pytest.raises(KeeperAwayError):
        owner.start(command("na~1", b"/bin/true"))
    owner.connect()
    assert owner.keepers[0] != owner.keepers[1]
    assert owner.run(command("na~1", b"/bin/true")).exit_code == 0
    assert process_state(old) is not None
    third = make_owner()
    assert owner.wait(Ended, "na~0").exit_code == 0
    assert third.wait(Ended, "na~0").exit_code == 0, "a daemon that came later hears of it too"
    assert owner.wait(KeeperGone).accepting is False
    assert until(lambda: process_state(owner.keepers[0]) is None)
    assert len(list((owner.store / "keeper").glob("*.ev"))) == 2
    assert all(isinstance(verdict, Ended) for verdict in decided(owner.store, opened(["na~0", "na~1"])).values())


def test_a_draining_keeper_still_stops_its_attempts(owner: Owner, make_owner: Make) -> None:
    owner.started(command("na~0", b"/bin/sleep", b"60"))
    owner.client.drain()
    owner.wait(KeeperDraining)
    successor = make_owner()
    successor.client.stop("na~0")
    assert successor.wait(Ended, "na~0").stopped


def test_a_start_that_reaches_a_draining_keeper_is_closed(owner: Owner) -> None:
    owner.started(command("na~0", b"/bin/sleep", b"1"))
    owner.client.drain()
    owner.start(command("na~1", b"/bin/true"))
    owner.wait(Closed, "na~1")
    assert isinstance(decided(owner.store, opened(["na~1"]))["na~1"], DoorClosed)
    owner.wait(Ended, "na~0")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT])
def test_signals_do_not_take_it_from_its_children(owner: Owner, number: signal.Signals) -> None:
    owner.started(shell("na~0", "sleep 0.5; exit 6"))
    os.kill(owner.pid, number)
    if number is signal.SIGTERM:
        owner.wait(KeeperDraining)
    assert owner.wait(Ended, "na~0").exit_code == 6


@pytest.mark.parametrize("protocol", [0, 2])
def test_a_keeper_of_another_version_is_drained_and_heard_out(make_owner: Make, tmp_path: Path, protocol: int) -> None:
    store = _made(tmp_path / "store")
    other = KeeperClient(os.fspath(store), BOOT, entry=_entry(tmp_path, protocol), idle_s=1.0)
    with pytest.raises(KeeperAwayError):
        other.connect(0.6)
    other.close()
    owner = make_owner()
    assert owner.run(command("na~0", b"/bin/true")).exit_code == 0


def _made(store: Path) -> Path:
    store.mkdir()
    return store


def _entry(tmp_path: Path, protocol: int) -> str:
    bare = Owner.__new__(Owner)
    bare.store = tmp_path / "store"
    return bare.entry_with(("protocol", protocol, ""))


def test_an_older_keeper_with_children_is_replaced_while_they_run(make_owner: Make, tmp_path: Path) -> None:
    store = _made(tmp_path / "store")
    older = KeeperClient(os.fspath(store), BOOT, entry=_entry(tmp_path, 0), idle_s=1.0)
    older._launcher.launch(older._store, 20)
    with socket.socket(socket.AF_UNIX) as peer:
        near(older._directory, "sock", peer.connect)
        name, argv = "na~0", [b"/bin/sh", b"-c", b"sleep 1; exit 8"]
        fields = [b"start", name.encode(), b"00000001", b"/", b"18", b"", b"0", b"0", b"0", b"", b"3", *argv]
        body = b"".join(struct.pack(">I", len(field)) + field for field in fields)
        peer.sendall(struct.pack(">I", len(body)) + body)
        assert until((store / "attempts" / "00000001" / name).exists)
        owner = make_owner()
        assert owner.run(command("na~1", b"/bin/true")).exit_code == 0
        assert owner.wait(Ended, name).exit_code == 8
    older.close()


def test_a_path_of_more_than_two_hundred_bytes(make_owner: Make, tmp_path: Path) -> None:
    owner = make_owner(store=tmp_path / ("p" * 120) / ("q" * 120))
    assert len(os.fspath(owner.store)) > 250
    assert owner.run(command("na~0", b"/bin/true")).exit_code == 0
    assert make_owner(store=owner.store).pid == owner.pid


def test_a_store_that_is_renamed_is_still_the_same_store(owner: Owner) -> None:
    moved = owner.store.rename(owner.store.with_name("moved"))
    owner.store = moved
    assert owner.run(shell("na~0", "echo here")).exit_code == 0
    assert owner.output("na~0") == b"here\n"


def test_a_daemon_may_hold_the_store_by_descriptor_only(tmp_path: Path) -> None:
    store = os.open(_made(tmp_path / "store"), os.O_RDONLY)
    client = KeeperClient(store, BOOT, idle_s=0.1)
    os.close(store)
    client.connect()
    assert client.accepting
    client.close()


def test_a_copied_store_proves_nothing_of_what_was_open(owner: Owner, make_owner: Make) -> None:
    attempts = opened(["na~0", "na~never"])
    owner.started(command("na~0", b"/bin/sleep", b"1"))
    copy = owner.store.with_name("copy")
    subprocess.run(["cp", "-a", owner.store, copy], check=False, stderr=subprocess.DEVNULL)
    assert not keeper_alive(os.fspath(copy))
    first = decided(copy, attempts)
    assert all(isinstance(verdict, NoEvidence) for verdict in first.values())
    assert not any(live_evidence(os.open(copy / "keeper", os.O_RDONLY)).values())
    other = make_owner(store=copy)
    assert decided(copy, attempts) == first, "neither a second look nor a keeper of the copy makes it known"
    (fresh,) = opened(["na~fresh"])
    assert isinstance(decided(copy, [fresh])["na~fresh"], DoorClosed)
    assert isinstance(decided(owner.store, attempts)["na~0"], StillOpen)
    other.close()


def test_evidence_that_is_removed_is_begun_again(owner: Owner) -> None:
    pid = owner.started(command("na~0", b"/bin/sleep", b"20"))
    (evidence,) = (owner.store / "keeper").glob("*.ev")
    evidence.unlink()
    attempts = opened(["na~0", "na~1"])
    assert isinstance(decided(owner.store, attempts[:1])["na~0"], NoEvidence)
    owner.run(command("na~1", b"/bin/true"))
    verdicts = decided(owner.store, attempts)
    assert isinstance(verdicts["na~1"], Ended)
    assert verdicts["na~0"] == StillOpen(
        attempt_id="na~0", pid=pid, started_at_ns=owner.wait(Started, "na~0").at_ns
    )  # fmt: skip
    owner.client.stop("na~0", kill=True)
    owner.wait(Ended, "na~0")


@pytest.mark.parametrize("what", ["keeper", "attempts"])
def test_a_store_taken_apart_ends_no_keeper(owner: Owner, what: str) -> None:
    owner.run(command("na~0", b"/bin/true"))
    shutil.rmtree(owner.store / what)
    owner.start(command("na~1", b"/bin/true"))
    assert owner.heard(lambda: bool(owner.about("na~1")))
    last = owner.about("na~1")[-1]
    assert isinstance(last, Started | Ended) or (isinstance(last, NotStarted) and last.for_want_of_resources)
    assert process_state(owner.pid) is not None


def test_on_a_full_disk_nothing_starts_and_what_ended_is_remembered(owner: Owner) -> None:
    attempts = opened(["na~0", "na~1", "na~2"])
    owner.started(shell("na~0", "sleep 0.4; exit 7"))
    (evidence,) = (owner.store / "keeper").glob("*.ev")
    size = evidence.stat().st_size
    limit(owner.pid, resource.RLIMIT_FSIZE, (size + 12, resource.RLIM_INFINITY))
    refused = owner.refused(command("na~1", b"/bin/true"))
    assert (refused.errno, refused.what, refused.for_want_of_resources) == (errno.EFBIG, "evidence", True)
    assert owner.wait(Ended, "na~0").exit_code == 7
    assert owner.refused(command("na~2", b"/bin/true")).what == "evidence"
    assert isinstance(decided(owner.store, attempts[:1])["na~0"], StillOpen)
    owner.close()
    time.sleep(1.5)
    assert process_state(owner.pid) is not None, "it has yet to write what it knows"
    limit(owner.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert until(lambda: isinstance(decided(owner.store, attempts[:1])["na~0"], Ended), 10)
    assert isinstance(decided(owner.store, attempts[1:2])["na~1"], DoorClosed)
    assert b"na~2" not in evidence.read_bytes(), "what is refused for want of space takes none later"


def test_old_evidence_goes_only_when_somebody_says_so_and_never_under_a_living_keeper(make_owner: Make) -> None:
    first = make_owner()
    first.end()
    second = make_owner()
    directory = os.open(second.store / "keeper", os.O_RDONLY)
    names = evidence_names(directory)
    assert prune(os.fspath(second.store), [*names, "missing.ev"]) == names[:1]
    assert evidence_names(directory) == names[1:]
    os.close(directory)


@pytest.mark.parametrize("left", ["sock", "lock", "old.sock"])
def test_what_the_dead_left_is_in_nobodys_way(make_owner: Make, left: str) -> None:
    first = make_owner()
    os.kill(first.pid, signal.SIGKILL)
    first.wait(KeeperGone)
    (first.store / "keeper" / left).touch()
    first.connect()
    assert first.run(command("na~0", b"/bin/true")).exit_code == 0
    assert first.keepers[0] != first.keepers[1]


def test_a_keeper_that_does_not_answer_is_away(owner: Owner) -> None:
    os.kill(owner.pid, signal.SIGSTOP)
    waiting = KeeperClient(os.fspath(owner.store), BOOT)
    began = time.monotonic()
    with pytest.raises(KeeperAwayError, match="does not answer"):
        waiting.connect(0.3)
    assert time.monotonic() - began < 5
    with pytest.raises(KeeperAwayError):
        waiting.start([command("na~0", b"/bin/true")])
    waiting.close()
    os.kill(owner.pid, signal.SIGCONT)
    assert owner.run(command("na~1", b"/bin/true")).exit_code == 0


def test_why_none_can_be_started_is_said(tmp_path: Path) -> None:
    store = _made(tmp_path / "store")
    client = KeeperClient(os.fspath(store), BOOT, python="/nowhere/python")
    with pytest.raises(KeeperAwayError, match="No such file"):
        client.connect(5)
    client.close()
    (store / "keeper" / "lock").mkdir()
    client = KeeperClient(os.fspath(store), BOOT)
    with pytest.raises(KeeperAwayError, match="Is a directory"):
        client.connect(5)
    client.close()


def test_a_daemon_that_reads_nothing_blocks_neither_side(owner: Owner, make_owner: Make) -> None:
    deaf = make_owner()
    names = [f"na~{number}" for number in range(300)]
    owner.start(*(command(name, b"/bin/true") for name in names))
    for name in names:
        owner.wait(Ended, name)
    deaf.start(*(command(f"na~big{number}", b"/bin/true", b"x" * 100_000) for number in range(60)))
    assert deaf.heard(lambda: not deaf.client.wants_write())
    assert deaf.wait(Ended, "na~big59").exit_code == 0
    assert deaf.wait(Ended, names[-1]).exit_code == 0


def test_noise_on_the_socket_harms_nobody(owner: Owner) -> None:
    directory = os.open(owner.store / "keeper", os.O_RDONLY)
    for noise in (
        b"\xff" * 100,
        b"GET / HTTP/1.0\r\n\r\n",
        struct.pack(">I", 7) + b"\0\0\0\x03abc",
        b"\0\0\0\x00",
        b"",
    ):
        with socket.socket(socket.AF_UNIX) as peer:
            near(directory, "sock", peer.connect)
            peer.sendall(noise)
    os.close(directory)
    assert owner.run(command("na~0", b"/bin/true")).exit_code == 0


def test_two_hundred_children_cost_little(owner: Owner) -> None:
    names = [f"na~{number}" for number in range(200)]
    owner.start(*(command(name, b"/bin/sleep", b"60") for name in names))
    for name in names:
        owner.wait(Started, name)
    status = Path(f"/proc/{owner.pid}/status").read_text()
    resident_kib = int(status.partition("VmRSS:")[2].split()[0])
    assert resident_kib < 40_000
    assert len(os.listdir(f"/proc/{owner.pid}/fd")) < 450
    for name in names:
        owner.client.stop(name, kill=True)
    for name in names:
        assert owner.wait(Ended, name).signal == signal.SIGKILL


def test_a_keeper_that_dies_is_no_zombie_of_a_daemon_that_is_the_first_process(tmp_path: Path) -> None:
    code = """
import os, sys, time
from pathlib import Path
from nereus_cli.destinations.keeper_facts import KeeperGone
from tests.keeper.harness import Owner, command
assert os.getpid() == 1
owner = Owner(Path(sys.argv[1]))
assert owner.run(command("na~0", b"/bin/true")).exit_code == 0
os.kill(owner.pid, 9)
owner.wait(KeeperGone)
owner.connect()
assert owner.run(command("na~1", b"/bin/true")).exit_code == 0
numbers = [name for name in os.listdir("/proc") if name.isdigit()]
dead = [name for name in numbers if "(zombie)" in Path(f"/proc/{name}/status").read_text()]
print(dead)
"""
    if subprocess.run(["unshare", "-fUrp", "--mount-proc", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no namespaces here")
    first = ["unshare", "-fUrp", "--mount-proc", sys.executable, "-c", code, str(tmp_path / "store")]
    assert subprocess.run(first, check=True, capture_output=True, env=with_our_path()).stdout == b"[]\n"
