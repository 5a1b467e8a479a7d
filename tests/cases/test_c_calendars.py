"""Section C, the other half: zones, calendars, horizons, loose words."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cases.world import Case
from tests.e2e.calls import Called, nereus

NEEDS_ZIC = pytest.mark.skipif(shutil.which("zic") is None, reason="zic is not installed")
GAPS = [
    ("2027-03-28T02:30", "Europe/Berlin", "2027-03-28T00:30:00.000Z", "2027-03-28T01:30:00.000Z"),
    ("2027-03-14T02:30", "America/New_York", "2027-03-14T06:30:00.000Z", "2027-03-14T07:30:00.000Z"),
    ("2027-10-03T02:15", "Australia/Lord_Howe", "2027-10-02T15:15:00.000Z", "2027-10-02T15:45:00.000Z"),
]
FOLDS = [
    ("2027-10-31T02:30", "Europe/Berlin", "2027-10-31T00:30:00.000Z", "2027-10-31T01:30:00.000Z"),
    ("2027-11-07T01:30", "America/New_York", "2027-11-07T05:30:00.000Z", "2027-11-07T06:30:00.000Z"),
]


def at(case: Case, name: str, text: str, *flags: str) -> Called:
    return case.call("schedule", "--id", name, "--at", text, *flags, *case.tick())


@pytest.mark.parametrize(("text", "zone", "earlier", "later"), GAPS)
def test_b027_an_hour_that_does_not_exist_is_refused_with_its_neighbours(
    case: Case, text: str, zone: str, earlier: str, later: str
) -> None:
    refused = at(case, "x", text, "--tz", zone)
    assert refused.status == 2
    details = refused.document()["details"]
    assert details["code"] == "GAP"
    assert [one["instant"] for one in details["candidates"]] == [earlier, later]
    assert not case.store.exists()
    for rule, instant in (("earlier", earlier), ("later", later)):
        called = at(case, rule, text, "--tz", zone, "--gap", rule)
        assert (called.status, called.document()["deliver_at"]) == (0, instant)
        when = case.show(rule)["when"]
        assert (when["text"], when["zone"], when["rule"]) == (text, zone, rule)


@pytest.mark.parametrize(("text", "zone", "first", "second"), FOLDS)
def test_b027_an_hour_that_happens_twice_is_refused_with_both(
    case: Case, text: str, zone: str, first: str, second: str
) -> None:
    refused = at(case, "x", text, "--tz", zone)
    assert refused.status == 2
    assert [one["instant"] for one in refused.document()["details"]["candidates"]] == [first, second]
    for rule, instant in (("first", first), ("second", second)):
        assert at(case, rule, text, "--tz", zone, "--fold", rule).document()["deliver_at"] == instant


def test_b027_a_day_that_does_not_exist_is_none(case: Case) -> None:
    """Samoa went from the 29th to the 31st."""
    called = case.call("when", "2011-12-30T12:00", "--tz", "Pacific/Apia")
    assert called.status == 2
    assert called.document()["details"]["code"] == "GAP"


def test_b031_a_day_is_24_hours_and_is_shown_to_be(case: Case) -> None:
    """Over the night in which Berlin's clocks change, or any other."""
    for name, delay in (("hours", "168h"), ("days", "7d"), ("week", "1w")):
        called = case.schedule(name, *case.tick(), after=delay)
        assert called.status == 0
        message = case.show(name)
        asked = datetime.fromisoformat(message["history"][0]["persisted_at"])
        assert datetime.fromisoformat(message["deliver_at"]) - asked == timedelta(hours=168)
    zoned = case.call("schedule", "--id", "zoned", "--in", "7d", "--tz", "Europe/Berlin", "--", "true")
    assert zoned.status in {0, 2}
    if zoned.status == 0:
        message = case.show("zoned")
        asked = datetime.fromisoformat(message["history"][0]["persisted_at"])
        assert datetime.fromisoformat(message["deliver_at"]) - asked == timedelta(hours=168)
    told = nereus(case.store, "schedule", "--help").stdout
    assert re.search(r"a day is\s+24 h", told)


KEPT = {"24d20h": 24 * 24 + 20, "25d": 600, "49d": 1_176, "50d": 1_200, "200d": 4_800, "3652d": 87_648}
TOO_FAR = ["100y", "10000y", "3700d", "1e30s", "99999999999999999999s", "9223372036854775807ns", "100000000h"]


def test_b041_a_big_delay_is_exact_and_never_means_now(case: Case) -> None:
    for delay, hours in KEPT.items():
        called = case.schedule(f"d{delay}", *case.tick(), after=delay)
        assert called.status == 0, called
        message = case.show(f"d{delay}")
        asked = datetime.fromisoformat(message["history"][0]["persisted_at"])
        assert datetime.fromisoformat(message["deliver_at"]) - asked == timedelta(hours=hours)
    assert at(case, "y2038", "2030-01-19T03:14:08.123Z").document()["deliver_at"] == "2030-01-19T03:14:08.123Z"
    daemon = case.daemon()
    time.sleep(1.5)
    assert case.seen() == []
    assert {one["state"] for one in case.listed().values()} == {"SCHEDULED"}
    case.stop(daemon)


def test_b043_beyond_the_horizon_is_refused_at_schedule_and_leaves_nothing(case: Case) -> None:
    case.call("init")
    for number, delay in enumerate(TOO_FAR):
        refused = case.schedule(f"m{number}", *case.tick(), after=delay)
        assert refused.status in {1, 2}, (delay, refused)
        assert refused.document().get("deliver_at") is None or refused.status == 1
    for number, text in enumerate(("9999-12-31T23:59:59Z", "2038-01-19T03:14:08Z")):
        refused = at(case, f"far{number}", text)
        assert refused.status == 1, refused
        assert "TOO_FAR" in refused.out
    fresh = case.call("schedule", "--in", "200000d", *case.tick())
    assert fresh.status in {1, 2}
    assert "3653 days" in nereus(case.store, "schedule", "--help").stdout
    said = nereus(case.store, "schedule", "--id", "told", "--in", "3700d", "--", "true")
    assert "10 years" in said.stdout + said.stderr or "3653" in said.stdout + said.stderr
    assert case.listed() == {}
    assert case.run("--once") == 0
    assert case.seen() == []


def zone_tree(place: Path, hours: int) -> Path:
    """A directory of zones in which Testland is that many hours ahead of UTC."""
    place.mkdir()
    source = place / "source"
    source.write_text(f"Zone Europe/Testland {hours}:00 - TST\nZone Etc/UTC 0 - UTC\n", encoding="ascii")
    subprocess.run([str(shutil.which("zic")), "-d", str(place), str(source)], check=True, capture_output=True)
    return place


@NEEDS_ZIC
def test_b044_the_instant_is_kept_when_the_rules_change(case: Case, tmp_path: Path) -> None:
    before, after = zone_tree(tmp_path / "a", 2), zone_tree(tmp_path / "b", 3)

    def call(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONTZPATH": str(tree)}
        return nereus(case.store, "--json", *words, env=environment)

    wish = ("--at", "2027-06-01T09:00", "--tz", "Europe/Testland", "--", "true")
    assert call(before, "schedule", "--id", "x", *wish).returncode == 0
    shown = case.show("x")
    assert shown["deliver_at"] == "2027-06-01T07:00:00.000Z"
    assert (shown["when"]["text"], shown["when"]["zone"]) == ("2027-06-01T09:00", "Europe/Testland")
    assert "zone_data" in shown["when"]
    # The same line under other rules is the same command: what was said is the same.
    again = call(after, "schedule", "--id", "x", *wish)
    assert again.returncode == 0, again.stdout
    assert '"duplicate":true' in again.stdout
    assert call(after, "schedule", "--id", "y", *wish).returncode == 0
    for tree in (after, tmp_path / "empty"):
        tree.mkdir(exist_ok=True)
        assert call(tree, "schedule", "--id", f"now-{tree.name}", "--in", "0s", "--", "true").returncode == 0
        assert call(tree, "run", "--once").returncode == 0
        found = {one: case.listed()[one] for one in ("x", "y")}
        assert [one["deliver_at"] for one in found.values()] == ["2027-06-01T07:00:00.000Z", "2027-06-01T06:00:00.000Z"]
        assert call(tree, "show", "x").returncode == 0
        assert case.state(f"now-{tree.name}") == "PUBLISHED"


ARABIC = "".join(chr(0x660 + int(c)) if c.isdigit() else c for c in "2027-01-01T00:00:00Z")
FULL_WIDTH = "".join(chr(0xFF10 + int(c)) if c.isdigit() else c for c in "2027-01-01T00:00Z")
LOOSE = [
    "Friday 15:53", "1 month", "in 1 month", "03/07/27", "07.03.27", "noon", "teatime", "midnight", "24:00", "12am",
    "15:53", "tomorrow", "yesterday", "now", "next week", "2027-02-30T12:00", "2027-13-01T00:00", "2027-03-28",
    "2027-1-1T1:1", "2027-01-01T25:00:00Z", "2027-01-01T00:60:00Z", "2026-12-31T23:59:60Z", "2027-01-01 00:00 junk",
    "2027-01-01T00:00:00Zjunk", "@12a", "@", "@1e9", "@-1", "-1d", "+1d", "1h 2", "h", "",
    " ", "1h1h", "0x10s", "1,5h", "2027-W01-1", "20270101T000000Z", "2027-001", "1M", "P1M", "P1Y", "inf", "NaN",
    "2027-06-01T09:00+25:00", "2027-06-01T09:00[Nowhere/Land]", "2027-06-01T09:00Z[Europe/Berlin]",
    ARABIC, FULL_WIDTH,
]  # fmt: skip
INSTANT = re.compile(r"\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.parametrize("zone", [(), ("--tz", "Europe/Berlin")])
def test_b045_loose_words_are_refused_or_echoed_as_one_instant_with_its_weekday(
    case: Case, zone: tuple[str, ...]
) -> None:
    accepted: dict[str, dict[str, Any]] = {}
    for text in LOOSE:
        looked = case.call("when", *zone, "--", text)
        planned = case.call("schedule", "--dry-run", *zone, f"--at={text}", "--", "true")
        for called in (looked, planned):
            assert called.status in {0, 1, 2}, (text, called)
            assert "Traceback" not in called.err
        if planned.status == 0:
            accepted[text] = planned.document()
            shown = looked.document()
            assert INSTANT.fullmatch(shown["instant"])
            assert INSTANT.fullmatch(accepted[text]["deliver_at"])
            assert shown["instant"] == accepted[text]["deliver_at"]
            assert not shown["past"]
            weekday = datetime.fromisoformat(shown["instant"]).strftime("%a")
            for_people = nereus(case.store, "when", *zone, "--", text)
            assert f"{shown['instant']} {weekday}" in for_people.stdout
        else:
            assert planned.out.count("\n") == 1
    assert set(accepted) <= {"20270101T000000Z", "2027-06-01T09:00Z[Europe/Berlin]", "2026-12-31T23:59:60Z"}
    assert not case.store.exists()


def test_b045_the_last_second_of_a_day_is_in_that_day(case: Case) -> None:
    called = case.call("when", "2027-12-31T23:59:59.999", "--tz", "UTC")
    assert called.document()["instant"] == "2027-12-31T23:59:59.999Z"
    assert called.document()["local"].startswith("Fri 2027-12-31 23:59:59")
