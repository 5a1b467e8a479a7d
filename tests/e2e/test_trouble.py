"""Disks that are full or read-only, locks that nobody gives back: each call says truly what is known, nothing that was
acknowledged is lost, nothing comes early, and when the trouble is over work goes on."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nereus_cli.store import open_store
from tests.e2e.calls import Caller, nereus
from tests.e2e.conftest import Shop

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="mounting takes root on Linux")

HOLD = """
import fcntl, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(120)
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    place = tmp_path / "small"
    place.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(shop: Shop, made: Path) -> list[str]:
    """Schedules until one is refused; the ids that were acknowledged."""
    made.write_bytes(b"x" * 20_000)
    acknowledged: list[str] = []
    for number in range(100):
        called = shop.call("schedule", "--id", f"m{number}", "--in", "1h", "--stdin", str(made), "--", "cat")
        if called.status != 0:
            assert called.status == 75, called
            assert "No space left" in called.document()["message"]
            return acknowledged
        acknowledged.append(f"m{number}")
    pytest.fail("the disk never became full")


@pytest.fixture
def small_shop(small: Path, tmp_path: Path) -> Iterator[Shop]:
    """A place to do business on it; its daemon's log is elsewhere."""
    with Caller(small / "store", tmp_path) as caller:
        shop = Shop(small, caller)
        shop.log = tmp_path / "daemon.log"
        yield shop
        shop.close()


@NEEDS_ROOT
def test_a_full_disk_refuses_cleanly_and_takes_up_work_again(small: Path, small_shop: Shop, tmp_path: Path) -> None:
    shop = small_shop
    shop.call("init")
    shop.daemon()
    ballast = small / "ballast"
    ballast.write_bytes(b"-" * 100_000)
    acknowledged = fill(shop, tmp_path / "made")
    assert acknowledged
    listed = [json.loads(line).get("message_id") for line in shop.call("list").out.splitlines()]
    assert sorted(filter(None, listed)) == sorted(acknowledged)
    ballast.unlink()
    assert shop.call("schedule", "--id", "after", "--in", "0s", "--", "true").status == 0
    assert shop.call("wait", "after", "--timeout", "30s").status == 0
    assert shop.call("cancel", "m0").status == 0
    assert shop.call("verify").status == 0


@NEEDS_ROOT
def test_a_daemon_on_a_full_disk_waits_and_goes_on_by_itself(small: Path, small_shop: Shop, tmp_path: Path) -> None:
    shop = small_shop
    effects = tmp_path / "effects"
    due = shop.call("schedule", "--id", "due", "--in", "2s", "--", "sh", "-c", f"echo x >> {effects}")
    assert due.status == 0
    shop.daemon()
    ballast = small / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"-" * 4096)
    shop.until(lambda: ".refused" in shop.log.read_text("utf-8"))
    assert not effects.exists()
    codes = [item["code"] for item in shop.call("status").document()["attention"]]
    assert codes, "status says why nothing is dispatched"
    ballast.unlink()
    assert shop.call("wait", "due", "--timeout", "30s").status == 0
    assert effects.read_text("ascii") == "x\n"
    assert ".resumed" in shop.log.read_text("utf-8")


def test_without_a_keeper_nothing_is_admitted_and_status_says_why(shop: Shop) -> None:
    """A keeper that cannot start costs no attempt: a message with one attempt is not dead because of it."""
    shop.call("init")
    keeper = shop.store / "keeper"
    keeper.rename(shop.store / "aside")
    keeper.write_text("in the way")
    shop.schedule("x", "--", "true", after="0s")
    shop.daemon()
    shop.until(lambda: "destination.refused" in shop.log.read_text("utf-8"))
    time.sleep(1.2)
    shown = shop.call("show", "x").document()
    assert (shown["state"], shown["attempts"]) == ("SCHEDULED", [])
    assert "DAEMON_TROUBLE" in [item["code"] for item in shop.call("status").document()["attention"]]
    keeper.unlink()
    (shop.store / "aside").rename(keeper)
    assert shop.call("wait", "x", "--timeout", "30s").status == 0
    assert len(shop.call("show", "x").document()["attempts"]) == 1
    assert "destination.resumed" in shop.log.read_text("utf-8")


@pytest.mark.parametrize("blocks", range(12))
def test_a_file_size_limit_never_leaves_half_a_truth(tmp_path: Path, blocks: int) -> None:
    tmp_path.chmod(0o700)
    store = tmp_path / "store"
    command = (
        f'ulimit -f {blocks}; exec "$0" -m nereus_cli --store "$1" --json schedule --id x --in 1h -- echo {"y" * 900}'
    )
    ran = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(store)], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in ran.stderr
    if ran.returncode == 0:
        assert nereus(store, "show", "x").returncode == 0
    else:
        assert ran.returncode in {73, 74, 75}, ran
        assert nereus(store, "show", "x").returncode in {13, 65, 66}
    # Whatever was left there, the next call with room works.
    assert nereus(store, "schedule", "--id", "x", "--in", "1h", "--", "echo", "y" * 900).returncode == 0
    assert nereus(store, "verify").returncode == 0


@NEEDS_ROOT
def test_a_store_that_became_read_only_is_read_and_refuses_the_rest(shop: Shop) -> None:
    shop.schedule("x", "--", "true", after="1h")
    path = str(shop.store)
    subprocess.run(["mount", "--bind", path, path], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True)
        refused = shop.schedule("y", "--", "true")
        assert refused.status in {73, 74, 75, 77}, refused
        assert shop.show("x")["state"] == "SCHEDULED"
        assert shop.call("run", "--once").status in {73, 74, 75, 77}
    finally:
        subprocess.run(["umount", path], check=True)
    assert shop.call("show", "y").status == 13
    assert shop.run("--once") == 0


@pytest.mark.parametrize(("lock", "status", "queued"), [("append", 75, False), ("sync", 3, True)])
def test_a_frozen_holder_of_a_lock_is_named_and_the_answer_is_true(
    shop: Shop, lock: str, status: int, *, queued: bool
) -> None:
    shop.schedule("first", "--", "true", after="1h")
    path = str(shop.store / "log" / "locks" / lock)
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        called = shop.schedule("x", "--", "true", after="1h")
        assert called.status == status, called
        assert str(holder.pid) in called.out + called.err
        assert shop.show("first")["state"] == "SCHEDULED"
        holder.kill()
    if queued:
        receipt = called.document()
        assert (receipt["outcome"], receipt["position"]) == ("UNCERTAIN", None)
    again = shop.schedule("x", "--", "true", after="1h")
    assert again.status == 0
    assert again.document()["duplicate"] is queued
    with open_store(str(shop.store)) as store:
        assert store.log.bounds().last == (3 if queued else 2)


def test_an_owner_in_doubt_about_its_own_records_begins_a_new_epoch(shop: Shop) -> None:
    """Nobody may know whether an admission is in the log: the next epoch reads what is, and closes what never began."""
    effects, lock = shop.place / "effects", shop.store / "log" / "locks" / "sync"
    shop.call("init")
    owner = shop.daemon()
    assert shop.schedule("x", "--", "sh", "-c", f"echo x >> {effects}", after="1500ms").status == 0
    with subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        shop.until(lambda: "owner.uncertain" in log_of(shop), seconds=30)
        assert not effects.exists()
        holder.kill()
    shop.until(effects.exists, seconds=30)
    assert shop.call("wait", "x", "--timeout", "20s").status == 0
    assert effects.read_text("ascii") == "x\n"
    assert owner.poll() is None


def log_of(shop: Shop) -> str:
    return shop.log.read_text("utf-8")


def test_what_could_not_be_written_is_never_delivered_early(tmp_path: Path) -> None:
    """A failing save must not turn "later" into "now"."""
    tmp_path.chmod(0o700)
    store, effects = tmp_path / "store", tmp_path / "effects"
    assert nereus(store, "init").returncode == 0
    command = 'ulimit -f 0; exec "$0" -m nereus_cli --store "$1" schedule --id x --in 1h -- sh -c "echo x >> $2"'
    words = ["/bin/sh", "-c", command, sys.executable, str(store), str(effects)]
    assert subprocess.run(words, capture_output=True, check=False).returncode in {73, 74, 75}
    assert nereus(store, "run", "--until-idle").returncode == 0
    assert not effects.exists()
    assert nereus(store, "show", "x").returncode == 13
