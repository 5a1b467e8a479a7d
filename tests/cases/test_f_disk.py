"""Section F, the other half: full disks, many writers, the order of system calls, locks that lie."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cases.world import NEEDS_ROOT, NEEDS_STRACE, PACKAGE_ROOT, Case, small_disk
from tests.e2e.calls import Called, Caller

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}


@pytest.fixture
def tight(case: Case) -> Iterator[Case]:
    """A shop on a file system of 12 MiB, of which the projection's journal may take four; its effects are elsewhere."""
    with small_disk(case.place / "small", "12m") as place:
        case.aim(place / "store")
        yield case
        case.close()


@NEEDS_ROOT
def test_b063_a_disk_that_fills_up_overnight_is_said_and_waited_out(tight: Case) -> None:
    case = tight
    assert case.schedule("first", *case.tick(), after="0s").status == 0
    daemon = case.daemon()
    case.until(lambda: case.seen() == ["first"])
    case.stop(daemon)
    ballast = case.store.parent / "ballast"
    ballast.write_bytes(b"-" * (11 << 20))
    acknowledged = ["first"]
    refused: Called | None = None
    for number in range(200):
        called = case.schedule(f"m{number:03d}", *case.tick(), "x" * 20_000, after="3s")
        if called.status != 0:
            refused = called
            break
        acknowledged.append(f"m{number:03d}")
    assert refused is not None
    assert refused.status == 75
    assert "No space left" in refused.document()["message"]
    assert sorted(case.listed()) == sorted(acknowledged)
    daemon = case.start()
    time.sleep(3.5)
    if daemon.poll() is None:
        canceled = case.call("cancel", acknowledged[-1])
        assert canceled.status in {0, 3, 11, 12, 15, 75}
        ballast.unlink()
    else:
        # A start on a disk without any room is refused as a thing that passes, which is for a supervisor to repeat.
        assert daemon.returncode == 75, case.log_said()
        ballast.unlink()
        daemon = case.daemon()
    assert case.call("wait", *acknowledged, "--timeout", "60s").status in {0, 20}
    messages = case.attest(acknowledged)
    assert {one["state"] for one in messages.values()} <= {"PUBLISHED", "CANCELED"}
    assert case.schedule(f"m{len(acknowledged) - 1:03d}", *case.tick(), "x" * 20_000, after="3s").status == 0
    assert case.call("verify").status == 0


@NEEDS_ROOT
def test_b063_a_daemon_says_why_it_stands_still_and_goes_on_by_itself(tight: Case) -> None:
    case = tight
    assert case.schedule("due", *case.tick(), after="2s").status == 0
    daemon = case.daemon()
    ballast = case.store.parent / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"-" * 4_096)
    case.until(lambda: "DAEMON_TROUBLE" in case.codes())
    assert case.call("status", "--check").status == 30
    assert (case.seen(), daemon.poll()) == ([], None)
    ballast.unlink()
    assert case.call("wait", "due", "--timeout", "30s").status == 0
    assert case.seen() == ["due"]
    case.until(lambda: "DAEMON_TROUBLE" not in case.codes())


def test_b065_many_writers_of_all_sizes_some_of_them_killed(case: Case) -> None:
    case.call("init")
    case.daemon()
    chance = random.Random(65)
    sizes = [10, 1_000, 3_900, 4_200, 60_000, 250_000]
    plans = [[(f"w{w}-{n}", sizes[(w + n) % len(sizes)]) for n in range(12)] for w in range(4)]
    doomed = [(f"k{n}", sizes[n % len(sizes)], chance.uniform(0.05, 0.5)) for n in range(12)]
    for size in sizes:
        (case.place / f"payload{size}").write_bytes(b"\n" * (size // 2) + b"\xff" * (size - size // 2))

    def words(name: str, size: int) -> tuple[str, ...]:
        payload = case.place / f"payload{size}"
        work = f'[ "$(wc -c)" -eq {size} ] && echo $NEREUS_MESSAGE_ID >> {case.effects}'
        return ("schedule", "--id", name, "--in", "0s", "--stdin", str(payload), "--cwd", "/", "--shell", work)

    def write(plan: list[tuple[str, int]]) -> list[str]:
        place = case.place / f"caller-{threading.get_ident()}"
        place.mkdir(exist_ok=True)
        with Caller(case.store, place) as call:
            return [name for name, size in plan if call(*words(name, size)).status == 0]

    def write_and_die() -> list[str]:
        survived = []
        for name, size, moment in doomed:
            command = [sys.executable, "-m", "nereus_cli", "--store", str(case.store), *words(name, size)]
            with subprocess.Popen(
                command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as one:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    one.wait(moment)
                one.kill()
            survived += [name] if one.returncode == 0 else []
        return survived

    with ThreadPoolExecutor(5) as pool:
        dying = pool.submit(write_and_die)
        acknowledged = [name for names in pool.map(write, plans) for name in names] + dying.result()
    assert set(acknowledged) >= {name for plan in plans for name, _ in plan}
    names = sorted(case.listed())
    assert case.call("wait", *names, "--timeout", "60s").status == 0
    messages = case.attest(acknowledged)
    assert {one["state"] for one in messages.values()} == {"PUBLISHED"}
    # Each is there whole, those of the killed too: every child counted the bytes it was given.
    assert sorted(case.seen()) == names
    assert set(names) <= set(acknowledged) | {name for name, _, _ in doomed}
    assert case.call("verify").status == 0


@NEEDS_STRACE
def test_b067_file_then_name_then_directory_then_the_answer(case: Case) -> None:
    """The first schedule of all, which makes the store, its description and its first segment."""
    trace = case.place / "trace"
    calls = "trace=write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,link,linkat,mkdir,mkdirat"
    command = ["strace", "-f", "-y", "-e", calls, "-o", str(trace), sys.executable, "-m", "nereus_cli"]
    words = [*command, "--store", str(case.store), "schedule", "--in", "1h", "--", "true"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=ENVIRONMENT, cwd="/")
    if "ptrace" in ran.stderr:
        pytest.skip("strace may not trace here")
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in trace.read_text("utf-8").splitlines() if line.endswith("= 0") or " write(1<" in line]
    told = next(n for n, line in enumerate(lines) if " write(1<" in line)
    for name, directory in (("store.json", case.store), ("0000000001.seg", case.store / "log")):
        named = next(n for n, line in enumerate(lines) if re.search(rf'(link|rename)\w*\(.*"{re.escape(name)}"', line))
        aside = re.search(r'(?:link|rename)\w*\([^"]*"([^"]+)"', lines[named])
        assert aside is not None
        synced = [n for n, line in enumerate(lines) if f"/{aside[1]}>" in line and "sync(" in line]
        listed = [n for n, line in enumerate(lines) if f"<{directory}>" in line and "fsync(" in line]
        assert synced, name
        assert min(synced) < named < max(listed) < told, name
    parents = [n for n, line in enumerate(lines) if f"<{case.store.parent}>" in line and "fsync(" in line]
    assert parents, "the name of the store itself"
    assert max(parents) < told


@NEEDS_STRACE
def test_b073_where_locks_lie_one_of_two_owners_stops_and_nothing_happens_twice(case: Case) -> None:
    """As on a network file system that grants every lock to everybody."""
    tick = f"echo $NEREUS_MESSAGE_ID >> {case.effects}"
    first = case.daemon()
    lie = ["strace", "-e", "trace=flock", "-e", "inject=flock:retval=0:when=1..2", "-o", str(case.place / "lies")]
    command = [*lie, sys.executable, "-m", "nereus_cli", "--store", str(case.store), "run"]
    with (case.place / "second.log").open("ab") as sink:
        second = subprocess.Popen(command, env=ENVIRONMENT, stdout=sink, stderr=sink, cwd="/")
    try:
        said = case.place / "second.log"
        case.until(lambda: second.poll() is not None or "owner.acquired" in said.read_text("utf-8"))
        if second.poll() is not None:
            pytest.skip(f"strace cannot inject here: {said.read_text('utf-8')[-300:]}")
        names = [f"m{n:02d}" for n in range(40)]
        case.batch({"id": name, "in": f"{n * 50}ms", "shell": tick} for n, name in enumerate(names))
        case.until(lambda: first.poll() is not None or second.poll() is not None)
        assert (first.poll(), second.poll()) in {(75, None), (None, 75)}, case.log_said() + said.read_text("utf-8")
        assert case.call("wait", *names, "--timeout", "30s").status == 0
        # Whoever is left can still be seen: the one that went took only its own socket along.
        assert case.call("status").document()["daemon"] == "alive"
    finally:
        traced = Path(f"/proc/{second.pid}/task/{second.pid}/children").read_text("ascii").split()
        for pid in traced:
            os.kill(int(pid), 15)
        second.wait(timeout=30)
    case.attest(names)
    assert sorted(case.seen()) == names
    epochs = [one["epoch"] for one in case.events() if one["event"] == "owner"]
    assert epochs == sorted(set(epochs))
    assert json.loads(case.call("verify").out)["sound"]
