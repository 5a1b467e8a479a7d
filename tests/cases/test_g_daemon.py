"""Section G: the daemon as a process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cases.world import PACKAGE_ROOT, Case, Moved

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), "PYTHONUNBUFFERED": "1"}


@pytest.mark.parametrize("left", ["pid", "beat", "socket", "killed"])
def test_b075_what_a_dead_owner_left_is_in_nobodys_way(case: Case, left: str) -> None:
    """The number in a pid file may be anybody's by now."""
    case.schedule("x", *case.tick())
    place = case.store / "owner"
    with subprocess.Popen(["sleep", "60"]) as somebody:
        if left == "killed":
            case.kill(case.daemon())
        (place / "lock").touch(mode=0o600)
        (place / "lock.pid").write_text(f"{somebody.pid}\n", encoding="ascii")
        if left == "beat":
            first = case.daemon()
            beat = (place / "beat").read_bytes()
            case.kill(first)
            (place / "beat").write_bytes(beat.replace(first.pid.to_bytes(2, "big"), somebody.pid.to_bytes(2, "big")))
        elif left == "socket":
            (place / "sock").write_bytes(b"")
        assert case.owner() is None
        daemon = case.daemon()
        assert case.owner() == daemon.pid
        case.until(lambda: case.state("x") == "PUBLISHED")
        somebody.kill()
    assert case.seen() == ["x"]


def test_b075_a_second_daemon_is_refused_at_once_and_both_verbs_agree(case: Case) -> None:
    case.call("init")
    first = case.daemon()
    for _ in range(3):
        begun = time.monotonic()
        second = case.call("run")
        assert time.monotonic() - begun < 5
        document = second.document()
        assert (second.status, document["error"], document["details"]["holder"]) == (75, "BUSY", first.pid)
        assert case.owner() == first.pid
    case.stop(first)
    assert case.owner() is None
    assert case.run("--once") == 0


def test_b077_a_frozen_owner_is_the_owner_and_goes_on_when_it_thaws(case: Case, moved: Moved) -> None:
    names = [f"m{n}" for n in range(20)]
    tick = f"echo $NEREUS_MESSAGE_ID >> {case.effects}"
    case.batch({"id": name, "in": "1s", "shell": tick} for name in names)
    first = case.daemon("--concurrency", "2")
    case.until(lambda: len(case.seen()) >= 2)
    first.send_signal(signal.SIGSTOP)
    # A minute later, as far as everybody else can tell.
    moved.sleep_through(60)
    status = moved.call("--json", "status")
    assert '"daemon":"stale"' in status.stdout
    assert "OWNER_STALE" in status.stdout
    second = moved.call("--json", "run", "--once")
    assert second.returncode == 75
    assert str(first.pid) in second.stdout
    # It may have been stopped with a lock in its hand: then nobody knows, until the same line is sent again.
    assert case.schedule("after", *case.tick()).status in {0, 3, 75}
    first.send_signal(signal.SIGCONT)
    assert case.schedule("after", *case.tick()).status == 0
    assert case.call("wait", *names, "after", "--timeout", "30s").status == 0
    case.attest([*names, "after"])
    assert sorted(case.seen()) == sorted([*names, "after"])
    assert case.owner() == first.pid


def can_unshare() -> bool:
    unshare = shutil.which("unshare")
    words = [str(unshare), "-Urpf", "--mount-proc", "true"]
    return unshare is not None and subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(sys.platform != "linux" or not can_unshare(), reason="no namespaces for this user")
def test_b079_as_process_one_it_leaves_no_zombies(case: Case) -> None:
    """The namespace has no other init: whatever loses its parent becomes a child of the daemon."""
    orphans, normal = 60, 10
    leave = "(sh -c 'sleep 0.3' &) ; (sh -c 'exit 3' &)"
    lines = [{"id": f"o{n}", "in": "0s", "shell": leave} for n in range(orphans)]
    case.batch([*lines, {"id": "k", "in": "0s", "shell": f"(setsid sh -c 'kill -9 $$' &) ; {leave}"}])
    command = ["unshare", "-Urpf", "--mount-proc", "--kill-child", sys.executable, "-m", "nereus_cli"]
    with case.log.open("ab") as sink:
        outer = subprocess.Popen(
            [*command, "--store", str(case.store), "run"], env=ENVIRONMENT, stdout=sink, stderr=sink, cwd="/"
        )
    try:
        case.until(lambda: len([m for m in case.listed().values() if m["state"] == "PUBLISHED"]) == orphans + 1)
        case.batch({"id": f"n{n}", "in": "0s", "argv": ["true"]} for n in range(normal))
        assert case.call("wait", *(f"n{n}" for n in range(normal)), "--timeout", "30s").status == 0
        (init,) = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text("ascii").split()
        namespace = os.stat(f"/proc/{init}/ns/pid").st_ino
        case.until(lambda: zombies(namespace) == [])
        assert outer.poll() is None
    finally:
        outer.kill()
        outer.wait()


def zombies(namespace: int) -> list[int]:
    """Pids of those in a pid namespace that ended and were not buried."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}/ns/pid").st_ino == namespace:
                with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                    if file.read().rpartition(")")[2].split()[0] == "Z":
                        found.append(int(name))
        except OSError:
            continue
    return found


def test_b081_the_daemons_own_directory_may_go(case: Case) -> None:
    gone = case.place / "gone"
    gone.mkdir()
    case.call("init")
    with case.log.open("ab") as sink:
        words = [sys.executable, "-m", "nereus_cli", "--store", str(case.store), "run"]
        daemon = subprocess.Popen(words, cwd=gone, env=ENVIRONMENT, stdout=sink, stderr=sink)
    try:
        case.until(lambda: case.owner() == daemon.pid)
        gone.rmdir()
        assert case.schedule("x", "--cwd", "/", *case.tick()).status == 0
        assert case.call("wait", "x", "--timeout", "30s").status == 0
        assert case.seen() == ["x"]
    finally:
        case.stop(daemon)
