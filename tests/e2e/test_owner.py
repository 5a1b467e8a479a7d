"""The owner as a process: one at a time, stopped, killed, frozen, and followed by the next."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from nereus_cli.codec import encode_mutation
from nereus_cli.domain.records import OwnerAcquired
from nereus_cli.ports import OwnerHead
from nereus_cli.store import open_store
from tests.cli.dying import die_before_the_sync
from tests.e2e.conftest import Shop

SLEEPER = 'echo "begin $NEREUS_ATTEMPT" >> {0}; sleep {1}; echo "end $NEREUS_ATTEMPT" >> {0}'


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []


def sleeper(path: Path, seconds: float) -> tuple[str, ...]:
    return "--", "sh", "-c", SLEEPER.format(path, seconds)


def test_a_second_owner_is_refused_and_told_by_whom(shop: Shop) -> None:
    shop.call("init")
    first = shop.daemon()
    begun = time.monotonic()
    second = shop.call("run")
    assert second.status == 75
    assert str(first.pid) in second.err + second.out
    assert time.monotonic() - begun < 5
    owner = shop.call("status").document()["owner"]
    assert (owner["pid"], owner["epoch"]) == (first.pid, 1)


def test_a_frozen_owner_is_still_the_owner(shop: Shop) -> None:
    shop.call("init")
    first = shop.daemon()
    first.send_signal(signal.SIGSTOP)
    assert shop.call("run").status == 75
    first.send_signal(signal.SIGCONT)
    shop.schedule("after", "--", "true")
    assert shop.call("wait", "after", "--timeout", "20s").status == 0


def test_a_pid_file_of_somebody_else_proves_nothing(shop: Shop) -> None:
    shop.schedule("x", "--", "true")
    (shop.store / "owner" / "lock").touch()
    (shop.store / "owner" / "lock.pid").write_text(f"{os.getpid()}\n", encoding="ascii")
    (shop.store / "owner" / "beat").write_bytes(b"\x80")
    assert shop.call("status").document()["owner"] is None
    assert shop.run("--until-idle") == 0


def test_what_runs_survives_the_death_of_its_daemon_and_is_adopted(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("long", *sleeper(effects, 1.5))
    first = shop.daemon()
    shop.until(lambda: lines(effects) == ["begin 1"])
    first.kill()
    first.wait()
    assert shop.show("long")["state"] == "PUBLISHING"
    assert shop.run("--until-idle") == 0
    assert lines(effects) == ["begin 1", "end 1"]
    message = shop.show("long")
    assert (message["state"], len(message["attempts"])) == ("PUBLISHED", 1)
    assert [line["event"] for line in message["history"]] == ["Schedule", "Admission", "Outcome"]


def test_what_ended_while_nobody_owned_the_store_is_read_from_the_evidence(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("short", *sleeper(effects, 0.5))
    shop.schedule("fails", "--", "sh", "-c", f"sleep 0.5; echo over >> {effects}; exit 64")
    first = shop.daemon()
    shop.until(lambda: lines(effects) == ["begin 1"])
    first.kill()
    first.wait()
    shop.until(lambda: sorted(lines(effects)) == ["begin 1", "end 1", "over"])
    time.sleep(3)  # the keeper ends two seconds after its last child
    assert shop.run("--until-idle") == 30
    assert shop.show("short")["state"] == "PUBLISHED"
    assert shop.show("fails")["attempts"][0]["exit_code"] == 64
    assert sorted(lines(effects)) == ["begin 1", "end 1", "over"]


def test_stopping_starts_nothing_more_and_keeps_to_the_grace(shop: Shop) -> None:
    effects = shop.place / "effects"
    for number in range(20):
        shop.schedule(f"m{number}", *sleeper(effects, 4))
    process = shop.daemon("--concurrency", "2", "--grace", "1s")
    shop.until(lambda: len(lines(effects)) == 2)
    os.killpg(process.pid, signal.SIGTERM)
    begun = time.monotonic()
    assert process.wait(timeout=10) == 0
    assert time.monotonic() - begun < 3
    assert lines(effects) == ["begin 1", "begin 1"]
    assert "2" in shop.log.read_text("utf-8")
    shop.until(lambda: len(lines(effects)) == 4)
    assert lines(effects).count("end 1") == 2
    counts = shop.call("status").document()["counts"]
    assert {name: count for name, count in counts.items() if count} == {"SCHEDULED": 18, "PUBLISHING": 2}


def test_a_second_signal_leaves_at_once(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("m", *sleeper(effects, 2))
    process = shop.daemon("--grace", "60s")
    shop.until(lambda: len(lines(effects)) == 1)
    process.terminate()
    time.sleep(0.3)
    assert process.poll() is None
    process.terminate()
    assert process.wait(timeout=5) == 0
    assert lines(effects) == ["begin 1"]


def test_once_does_what_is_due_and_leaves_the_rest(shop: Shop) -> None:
    shop.schedule("now", "--", "true")
    shop.schedule("later", "--", "true", after="1h")
    assert shop.run("--once") == 0
    assert (shop.show("now")["state"], shop.show("later")["state"]) == ("PUBLISHED", "SCHEDULED")


def test_until_idle_waits_for_what_is_due_later(shop: Shop) -> None:
    shop.schedule("soon", "--", "true", after="1200ms")
    assert shop.run("--until-idle") == 0
    message = shop.show("soon")
    assert message["state"] == "PUBLISHED"
    assert message["attempts"][0]["lateness_ms"] >= 0
    assert message["attempts"][0]["started_at"] >= message["deliver_at"]


@pytest.mark.parametrize("state", ["HELD", "DEAD_LETTER"])
def test_until_idle_says_when_only_a_person_can_go_on(shop: Shop, state: str) -> None:
    shop.schedule("stuck", "--", "false", after="0s" if state == "DEAD_LETTER" else "1h")
    if state == "HELD":
        assert shop.call("hold", "stuck").status == 0
    assert shop.run("--until-idle") == 30
    assert shop.show("stuck")["state"] == state


def test_what_a_cancel_releases_is_seen_at_once_by_a_running_daemon(shop: Shop) -> None:
    shop.schedule("x", "--", "true", after="1h")
    shop.daemon()
    assert shop.call("cancel", "x").status == 0
    listed = shop.call("list", "--state", "CANCELED").out.splitlines()
    assert '"x"' in listed[0]
    again = shop.call("cancel", "x")
    assert (again.status, again.document()["already"]) == (0, True)


def test_what_a_writer_left_unsynced_when_it_died_is_delivered_by_a_running_daemon(shop: Shop) -> None:
    effects = shop.place / "effects"
    words = ("--id", "x", "--in", "0s", "--", "sh", "-c", f"echo x >> {effects}")
    prepared = json.loads(shop.call("prepare", "schedule", *words).out)
    shop.call("init")
    shop.daemon()
    die_before_the_sync(shop.store, [base64.b64decode(prepared["payload_b64"])])
    shop.until(lambda: lines(effects) == ["x"])
    shop.until(lambda: shop.show("x")["state"] == "PUBLISHED")


def test_an_expired_message_is_never_attempted(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("gone", "--expires-after", "50ms", "--", "sh", "-c", f"echo x >> {effects}")
    time.sleep(0.2)
    shop.run("--until-idle")
    message = shop.show("gone")
    assert (message["state"], message["attempts"], lines(effects)) == ("EXPIRED", [], [])


def test_late_work_is_held_for_a_person_and_goes_on_when_released(shop: Shop) -> None:
    shop.schedule("late", "--if-late", "hold", "--late-after", "50ms", "--", "true")
    time.sleep(0.2)
    assert shop.run("--until-idle") == 30
    assert shop.show("late")["state"] == "HELD"
    assert shop.call("release", "late").status == 0
    assert shop.run("--until-idle") == 0
    assert shop.show("late")["state"] == "PUBLISHED"


def test_the_projection_may_be_deleted_at_any_time(shop: Shop) -> None:
    effects = shop.place / "effects"
    for number in range(20):
        shop.schedule(f"m{number}", "--", "sh", "-c", f"echo x >> {effects}")
    assert shop.run("--until-idle") == 0
    before = shop.call("list", "--state", "PUBLISHED").out
    for file in (shop.store / "projection").iterdir():
        file.unlink()
    assert shop.call("list", "--state", "PUBLISHED").out == before
    assert shop.run("--until-idle") == 0
    assert len(lines(effects)) == 20
    assert shop.call("verify").status == 0


def test_a_copy_runs_on_its_own_and_repeats_nothing(shop: Shop) -> None:
    effects = shop.place / "effects"
    shop.schedule("done", "--", "sh", "-c", f"echo x >> {effects}")
    assert shop.run("--until-idle") == 0
    subprocess.run(["cp", "-a", shop.store, shop.place / "copy"], check=True)
    shop.store = shop.place / "copy"
    assert shop.run("--until-idle") == 0
    assert lines(effects) == ["x"]
    assert "owner.elsewhere" in shop.log.read_text("utf-8")


def succeeded(shop: Shop) -> None:
    """Another owner's record stands in the log, as if every lock had succeeded twice."""
    with open_store(str(shop.store)) as store:
        head = store.view().head()
        rival = OwnerAcquired("elsewhere", 1, 1, "0")
        store.log.claim(OwnerHead(head.owner_position, head.epoch), encode_mutation(rival))


def test_an_owner_with_nothing_to_write_ends_too_when_it_meets_another(shop: Shop) -> None:
    shop.call("init")
    first = shop.daemon()
    succeeded(shop)
    assert first.wait(timeout=10) == 75


def test_an_owner_that_meets_another_in_the_log_ends_and_does_nothing(shop: Shop) -> None:
    """The chain in the log is the second line of defence."""
    effects = shop.place / "effects"
    shop.call("init")
    first = shop.daemon()
    succeeded(shop)
    shop.schedule("x", "--", "sh", "-c", f"echo x >> {effects}")
    assert first.wait(timeout=10) == 75
    assert lines(effects) == []
    assert shop.run("--until-idle") == 0
    assert lines(effects) == ["x"]
