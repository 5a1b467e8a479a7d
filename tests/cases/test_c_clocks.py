"""Section C: clocks that move under a waiting message."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from tests.cases.world import Case, Moved, lateness_ms, stamp


def test_b033_what_expired_is_on_record_and_asks_for_attention(case: Case, moved: Moved) -> None:
    assert moved.call("schedule", "--id", "x", "--in", "30s", "--expires-after", "1m", *case.tick()).returncode == 0
    assert moved.call("status", "--check").returncode == 0
    moved.step(300)
    moved.start()
    case.until(lambda: case.state("x") == "EXPIRED")
    message = case.show("x")
    assert message["attempts"] == []
    assert message["expire_at"] > message["deliver_at"]
    (expiry,) = [line for line in message["history"] if line["event"] == "Expire"]
    assert expiry["persisted_at"] >= message["expire_at"]
    assert [one["event"] for one in case.events()].count("expire") == 1
    assert case.listed()["x"]["state"] == "EXPIRED"
    assert "EXPIRED" in case.codes()
    assert case.call("status", "--check").status == 30
    assert case.seen() == []


def test_b035_what_became_due_in_a_sleep_starts_on_waking(case: Case, moved: Moved) -> None:
    assert moved.call("schedule", "--id", "x", "--in", "3h", *case.tick()).returncode == 0
    moved.start()
    time.sleep(0.5)
    moved.sleep_through(9 * 3_600)
    woken = time.monotonic()
    case.until(lambda: case.state("x") == "PUBLISHED")
    # The poll interval is a second; the rest is for a busy machine.
    assert time.monotonic() - woken < 8
    assert 6 * 3_600_000 <= lateness_ms(case.show("x")) < 6 * 3_600_000 + 8_000
    assert "clock.step" not in case.log_said()


def test_b035_a_sleep_that_the_other_clock_did_not_count_is_a_step_and_no_obstacle(case: Case, moved: Moved) -> None:
    assert moved.call("schedule", "--id", "x", "--in", "3h", *case.tick()).returncode == 0
    moved.start()
    moved.step(9 * 3_600)
    case.until(lambda: case.state("x") == "PUBLISHED")
    assert "clock.step" in case.log_said()
    assert case.seen() == ["x"]


def test_b039_a_clock_set_right_during_start_up_is_followed(case: Case, moved: Moved) -> None:
    moved.step(-1_800)
    moved.start()
    due = time.time() + 4
    assert case.call("schedule", "--id", "x", "--at", stamp(due), *case.tick()).status == 0
    time.sleep(1)
    assert case.state("x") == "SCHEDULED"
    moved.step(1_800)
    case.until(lambda: case.state("x") == "PUBLISHED", seconds=30)
    message = case.show("x")
    started = datetime.fromisoformat(message["attempts"][0]["started_at"]).timestamp()
    # Two seconds by the case; four more are for a busy machine, far from the half hour of the fault.
    assert due <= started < due + 6


@pytest.mark.parametrize("zone", ["Europe/London", "Australia/Lord_Howe", None])
def test_b029_the_zone_of_the_host_never_moves_an_absolute_instant(
    case: Case, moved: Moved, monkeypatch: pytest.MonkeyPatch, zone: str | None
) -> None:
    """The night London's clocks go back, lived through with the host's own zone set."""
    if zone is None:
        monkeypatch.delenv("TZ", raising=False)
    else:
        monkeypatch.setenv("TZ", zone)
    due = datetime(2027, 10, 31, 1, 30, tzinfo=UTC).timestamp()
    moved.step(due - 5_400 - time.time())
    scheduled = moved.call("--json", "schedule", "--id", "x", "--at", "2027-10-31T01:30:00Z", *case.tick())
    assert scheduled.returncode == 0, scheduled
    assert case.show("x")["deliver_at"] == "2027-10-31T01:30:00.000Z"
    moved.start()
    for _ in range(2):
        moved.sleep_through(2_400)
        time.sleep(0.4)
        assert case.state("x") == "SCHEDULED"
    moved.sleep_through(due - moved.now() + 0.01)
    case.until(lambda: case.state("x") == "PUBLISHED")
    message = case.show("x")
    assert case.seen() == ["x"]
    assert 0 <= lateness_ms(message) < 8_000
    assert message["attempts"][0]["admitted_at"] >= "2027-10-31T01:30:00.000Z"
    moved.sleep_through(7_200)
    time.sleep(0.3)
    assert case.seen() == ["x"]
