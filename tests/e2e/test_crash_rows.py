"""The rows O1 to O12 of docs/crash-safety.md: what may be on disk around the log after a crash, one test each."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from nereus_cli.codec import encode_mutation
from nereus_cli.domain.records import Admission, OwnerAcquired
from nereus_cli.ports import OwnerHead, OwnerWriter
from nereus_cli.store import Store, message_of, open_store
from tests.e2e.conftest import Shop
from tests.tidy.source import ROOT


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []


def echo(path: Path, more: str = "") -> tuple[str, ...]:
    return "--", "sh", "-c", f'echo "$NEREUS_ATTEMPT" >> {path}{more}'


def acquire(store: Store) -> OwnerWriter:
    """An owner that will die before it does anything."""
    head = store.view().head()
    body = encode_mutation(OwnerAcquired("here", os.getpid(), os.stat(store.path).st_ino, "0"))
    return store.log.claim(OwnerHead(head.owner_position, head.epoch), body)


def admit(store: Store, writer: OwnerWriter, message_id: str) -> None:
    message = message_of(store.view(), message_id)
    assert message is not None
    now = time.time_ns()
    writer.append(
        [
            encode_mutation(
                Admission(message_id, message.generation, "na~" + "0" * 12 + "7" + "0" * 3 + "8" + "0" * 15,
                          message.descriptor_hash, now, now)
            )
        ]
    )  # fmt: skip


def projection(shop: Shop) -> Path:
    return shop.store / "projection" / "state.db"


def without_projection(shop: Shop) -> None:
    for file in projection(shop).parent.iterdir():
        file.unlink()


def keepers(shop: Shop) -> list[int]:
    """The keepers of this store, found by the store they have open."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            command = (entry / "cmdline").read_bytes() if (entry / "cmdline").exists() else b""
            if b"keeper/__main__.py" in command and os.readlink(entry / "cwd") == "/":
                targets = [os.readlink(fd) for fd in (entry / "fd").iterdir() if fd.is_symlink()]
                if str(shop.store) in targets:
                    found.append(int(entry.name))
    return found


def test_o1_a_store_half_founded(shop: Shop) -> None:
    shop.store.mkdir(mode=0o700)
    (shop.store / "log").mkdir(mode=0o700)
    assert shop.call("list").status == 66
    assert shop.schedule("x", "--", "true").status == 0
    assert shop.run("--until-idle") == 0


def test_o2_and_o3_a_projection_that_is_missing_or_behind(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("a", *echo(effects))
    assert shop.run("--until-idle") == 0
    behind = shop.place / "behind.db"
    shutil.copy(projection(shop), behind)
    shop.schedule("b", *echo(effects))
    assert shop.run("--until-idle") == 0
    for state in ("behind", "missing"):
        without_projection(shop)
        if state == "behind":
            shutil.copy(behind, projection(shop))
        assert [shop.show(name)["state"] for name in "ab"] == ["PUBLISHED", "PUBLISHED"]
        assert shop.run("--until-idle") == 0
        assert shop.call("verify").status == 0
    assert lines(effects) == ["1", "1"]


def test_o4_a_projection_ahead_of_the_log(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("a", "--", "true", after="1h")
    log = shop.place / "log"
    shutil.copytree(shop.store / "log", log)
    shop.schedule("b", *echo(effects))
    assert shop.run("--once") == 0
    shutil.rmtree(shop.store / "log")
    shutil.copytree(log, shop.store / "log")
    schedule = ("schedule", "--id", "c", "--in", "0s", "--", "true")
    for verb in (("list",), ("run", "--once"), ("verify",), ("status",), schedule, ("cancel", "a"), schedule):
        called = shop.call(*verb)
        assert called.status == 65, (verb, called)
        assert "projection" in called.out + called.err
    without_projection(shop)
    assert shop.call("list").status == 0
    assert lines(effects) == ["1"]


def test_o4_a_log_that_lost_its_segments_does_not_begin_anew(shop: Shop) -> None:
    shop.schedule("a", "--", "true")
    assert shop.run("--once") == 0
    for file in (shop.store / "log").iterdir():
        if file.is_file():
            file.unlink()
    for kept in (True, False):
        if not kept:
            shutil.rmtree(shop.store / "log" / "mark")
        for verb in (("schedule", "--id", "b", "--in", "0s", "--", "true"), ("list",), ("init",), ("run", "--once")):
            assert shop.call(*verb).status == 65, verb
    assert not list((shop.store / "log").glob("*.seg"))


def test_o5_a_projection_that_cannot_be_read(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("a", *echo(effects))
    assert shop.run("--until-idle") == 0
    for damage in (b"", b"\0" * 5_000, b"SQLite format 3\0" + b"\xff" * 5_000):
        without_projection(shop)
        projection(shop).write_bytes(damage)
        projection(shop).chmod(0o600)
        assert shop.show("a")["state"] == "PUBLISHED"
        assert shop.run("--until-idle") == 0
        assert shop.call("verify").status == 0
    assert lines(effects) == ["1"]


def test_o6_the_remains_of_a_dead_owner(shop: Shop) -> None:
    shop.call("init")
    first = shop.daemon()
    shop.until((shop.store / "owner" / "beat").exists)
    first.kill()
    first.wait()
    assert {"sock", "beat", "lock"} <= {path.name for path in (shop.store / "owner").iterdir()}
    assert shop.call("status").document()["owner"] is None
    shop.daemon()
    assert shop.call("status").document()["owner"]["epoch"] == 2


def test_o7_an_admission_that_was_never_begun(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("x", *echo(effects))
    keeper = shop.daemon("--grace", "0s")
    shop.until(lambda: lines(effects) == ["1"])
    shop.schedule("y", "--", "sleep", "2")
    shop.until(lambda: shop.show("y")["state"] == "PUBLISHING")
    keeper.kill()
    keeper.wait()
    # Evidence goes on, an owner admits and dies: no door was ever made.
    shop.schedule("z", *echo(effects))
    with open_store(str(shop.store)) as store:
        admit(store, acquire(store), "z")
    assert shop.run("--until-idle") == 0
    message = shop.show("z")
    assert [a["code"] for a in message["attempts"]] == ["DOOR_CLOSED", "EXIT_0"]
    assert [a["evidence"]["counted"] for a in message["attempts"]] == [False, True]
    assert lines(effects) == ["1", "2"]


def test_o8_an_end_that_nobody_recorded(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("x", *echo(effects, "; sleep 0.3; exit 3"))
    owner = shop.daemon()
    shop.until(lambda: lines(effects) == ["1"])
    owner.kill()
    owner.wait()
    time.sleep(0.6)
    assert shop.run("--until-idle") == 30
    assert [a["exit_code"] for a in shop.show("x")["attempts"]] == [3]
    assert lines(effects) == ["1"]


def test_o9_a_child_that_still_runs(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("x", *echo(effects, f"; sleep 1; echo end >> {effects}"))
    owner = shop.daemon()
    shop.until(lambda: lines(effects) == ["1"])
    owner.kill()
    owner.wait()
    assert shop.run("--until-idle") == 0
    assert lines(effects) == ["1", "end"]
    assert shop.show("x")["attempts"][0]["code"] == "EXIT_0"


def test_o10_a_dead_keeper(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("x", *echo(effects, f"; sleep 1.5; echo end >> {effects}"))
    owner = shop.daemon()
    shop.until(lambda: lines(effects) == ["1"])
    found = keepers(shop)
    assert len(found) == 1
    os.kill(found[0], signal.SIGKILL)
    shop.until(lambda: shop.show("x")["state"] == "UNCERTAIN")
    attempt = shop.show("x")["attempts"][0]
    assert (attempt["side_effect"], attempt["code"]) == ("UNKNOWN", "NO_EVIDENCE")
    assert "pid" in attempt["evidence"]["detail"]
    shop.schedule("y", *echo(effects))
    assert shop.call("wait", "y", "--timeout", "20s").status == 0
    assert owner.poll() is None
    # What lost its keeper went on by itself, and was not tried again.
    shop.until(lambda: lines(effects).count("end") == 1)
    assert sorted(lines(effects)) == ["1", "1", "end"], [
        (a["code"], a["evidence"]["detail"]) for a in shop.show("y")["attempts"]
    ]
    assert shop.call("uncertain").status == 30


def test_o11_an_admission_in_a_copied_store(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("x", *echo(effects, "; sleep 2"))
    owner = shop.daemon()
    shop.until(lambda: lines(effects) == ["1"])
    original = shop.store
    subprocess.run(["cp", "-a", original, shop.place / "copy"], check=True)
    owner.kill()
    owner.wait()
    shop.store = shop.place / "copy"
    assert shop.run("--until-idle") == 30
    with open_store(str(shop.store)) as store:
        attempts = store.view().attempts_of("x")
    assert [(a.side_effect, a.code) for a in attempts] == [("UNKNOWN", "NO_EVIDENCE")]
    assert lines(effects) == ["1"]


def test_o12_a_race_that_was_lost(shop: Shop) -> None:
    effects = shop.place / "effects"
    for name in ("cancelled", "rescheduled"):
        shop.schedule(name, *echo(effects))
    with open_store(str(shop.store)) as store:
        writer = acquire(store)
        view = store.view()
        stale = [message_of(view, name) for name in ("cancelled", "rescheduled")]
        assert shop.call("cancel", "cancelled").status == 0
        assert shop.call("reschedule", "rescheduled", "--in", "1h").status == 0
        now = time.time_ns()
        for number, before in enumerate(stale):
            assert before is not None
            identity = f"na~{number:012x}70008{'0' * 15}"
            record = Admission(before.message_id, 0, identity, before.descriptor_hash, now, now)
            writer.append([encode_mutation(record)])
    assert shop.run("--once") == 0
    for name, state in (("cancelled", "CANCELED"), ("rescheduled", "SCHEDULED")):
        message = shop.show(name)
        assert (message["state"], message["attempts"]) == (state, [])
    assert lines(effects) == []


def test_every_row_of_the_page_has_its_test() -> None:
    page = (ROOT / "docs" / "crash-safety.md").read_text("utf-8")
    rows = re.findall(r"^\| (O\d+) \|", page, re.MULTILINE)
    tests = {name for test in globals() if test.startswith("test_") for name in re.findall(r"o\d+", test)}
    assert sorted(rows) == sorted(name.upper() for name in tests)
