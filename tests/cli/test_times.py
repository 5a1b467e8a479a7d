"""How times are said on the command line, and what is stored of them."""

from __future__ import annotations

import pytest

from tests.cli.running import Nereus

GAPS = [
    ("2027-03-28T02:30", "Europe/Berlin", "2027-03-28T00:30:00.000Z", "2027-03-28T01:30:00.000Z"),
    ("2027-03-14T02:30", "America/New_York", "2027-03-14T06:30:00.000Z", "2027-03-14T07:30:00.000Z"),
    ("2027-10-03T02:15", "Australia/Lord_Howe", "2027-10-02T15:15:00.000Z", "2027-10-02T15:45:00.000Z"),
]


@pytest.mark.parametrize(("text", "zone", "earlier", "later"), GAPS)
def test_b027_an_hour_that_does_not_exist(nereus: Nereus, text: str, zone: str, earlier: str, later: str) -> None:
    line = ("--at", text, "--tz", zone, "--id", "x")
    status, error = nereus.json("schedule", *line, "--", "true")
    assert (status, error["details"]["code"]) == (2, "GAP")
    assert [one["instant"] for one in error["details"]["candidates"]] == [earlier, later]
    human = nereus("schedule", *line, "--", "true")
    assert (human.status, all(rule in human.notes[0] for rule in ("--gap earlier", "--gap later"))) == (2, True)
    assert not nereus.store.exists()
    status, receipt = nereus.json("schedule", *line, "--gap", "later", "--", "true")
    assert (status, receipt["deliver_at"]) == (0, later)
    wish = nereus.json("show", "x")[1]["when"]
    assert (wish["text"], wish["zone"], wish["rule"], wish["instant"]) == (text, zone, "later", later)
    assert wish["zone_data"]


def test_an_hour_that_happens_twice(nereus: Nereus) -> None:
    line = ("when", "2027-10-31T02:30", "--tz", "Europe/Berlin")
    status, error = nereus.json(*line)
    assert (status, [one["rule"] for one in error["details"]["candidates"]]) == (2, ["first", "second"])
    assert nereus.json(*line, "--fold", "second")[1]["instant"] == "2027-10-31T01:30:00.000Z"


STORED = ["24d20h", "25d", "49d", "50d", "200d", "2147483648ms", "4294967296ms", "3652d"]
TOO_FAR = ["100y", "36524d", "3654d", "3652500d", "1e30s", "10000y"]


@pytest.mark.parametrize("delay", STORED)
def test_b041_a_big_delay_is_kept_to_the_millisecond(nereus: Nereus, delay: str) -> None:
    from datetime import datetime

    from nereus_cli.wish.duration import parse_duration

    status, receipt = nereus.json("schedule", "--in", delay, "--id", "x", "--", "true")
    assert status == 0
    begin, due = (datetime.fromisoformat(receipt[name]) for name in ("persisted_at", "deliver_at"))
    assert round((due - begin).total_seconds() * 1_000) == parse_duration(delay) // 1_000_000


@pytest.mark.parametrize("delay", TOO_FAR)
def test_b041_beyond_the_horizon_is_refused_with_the_limit(nereus: Nereus, delay: str) -> None:
    for flags in ((), ("--id", "x")):
        ran = nereus("schedule", "--in", delay, *flags, "--", "true")
        assert ran.status in (1, 2)
        assert len(ran.notes) == 1
    if nereus.store.exists():
        assert [one["schema"] for one in nereus("list", "--json").documents] == ["nereus.end/1"]


@pytest.mark.parametrize(
    ("text", "status"), [("2036-01-01T00:00:00Z", 0), ("2038-01-19T03:14:08Z", 1), ("9999-12-31T23:59:59Z", 1)]
)
def test_b041_far_instants(nereus: Nereus, text: str, status: int) -> None:
    got, told = nereus.json("schedule", "--at", text, "--id", "x", "--", "true")
    assert got == status
    if status:
        assert (told.get("reason") or told["error"]) == "TOO_FAR"
        assert "10 years" in " ".join(nereus("schedule", "--at", text, "--id", "x", "--", "true").notes)
    else:
        assert told["deliver_at"] == "2036-01-01T00:00:00.000Z"


_LOOSE = """
Friday 15:53
1 month
03/07/27
in 1 month
noon
24:00
12am
tomorrow
next week
1h junk
2027-06-01
2027-06-01 09:00
2027-13-01T00:00:00Z
2027-02-29T00:00:00Z
2027-06-01T25:00:00Z
2027-06-01T09:00:00+25:00
2027-06-01T09:00:00Z trailing
20270601T090000Z
@
@1e9
@1767225600000000
1
1.5
90
h
1h1h
1m1h
-1h
+1h
0x10s
1H
1 h
now
now + 2 hours
4pm + 3 days
teatime
2027-06-01T09:00:00[Mars/Olympus]
2027-06-01T09:00:00+05:00[Europe/Berlin]
2027-W22-2T09:00Z
NaN
"""
LOOSE = [*_LOOSE.strip().splitlines(), "\u0662\u0660\u0662\u0667-\u0660\u0666-\u0660\u0661T09:00Z", "\u0661h"]


@pytest.mark.parametrize("text", LOOSE)
def test_b045_a_loose_phrase_is_refused_or_echoed_as_one_instant(nereus: Nereus, text: str) -> None:
    for line in (("when", "--", text), ("schedule", "--dry-run", f"--at={text}", "--", "true")):
        ran = nereus(*line)
        if ran.status == 0:
            assert any(day in ran.text for day in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))
        else:
            assert (ran.status in (1, 2), ran.out, len(ran.notes)) == (True, b"", 1)
    assert not nereus.store.exists()


def test_when_understands_what_schedule_understands(nereus: Nereus) -> None:
    table = [
        ("2027-06-01T09:00:00Z", (), "instant", "2027-06-01T09:00:00.000Z"),
        ("2027-06-01T09:00:00+02:00[Europe/Berlin]", (), "instant", "2027-06-01T07:00:00.000Z"),
        ("2027-06-01T09:00", ("--tz", "Europe/Berlin"), "instant", "2027-06-01T07:00:00.000Z"),
        ("@1767225600", (), "instant", "2026-01-01T00:00:00.000Z"),
    ]
    for text, flags, kind, instant in table:
        status, document = nereus.json("when", text, *flags)
        assert (status, document["kind"], document["instant"]) == (0, kind, instant)
    status, document = nereus.json("when", "90m", "--tz", "Europe/Berlin")
    assert (status, document["kind"], document["past"]) == (0, "duration", False)
    assert abs(document["distance_ms"] - 5_400_000) < 1_000
    assert "Europe/Berlin" in document["local"]
    assert "distance" in nereus("when", "90m").text


def test_b031_a_day_is_24_hours_and_a_zone_does_not_change_a_duration(nereus: Nereus) -> None:
    assert nereus("schedule", "--in", "7d", "--tz", "Europe/Berlin", "--", "true").status == 2
    assert "24 h" in nereus("schedule", "--help").text


def test_what_would_be_refused_later_is_refused_now_where_the_id_is_new(nereus: Nereus) -> None:
    table = [
        (("--in", "3654d"), "TOO_FAR"),
        (("--at", "2038-01-19T03:14:08Z"), "TOO_FAR"),
        (("--at", "2020-01-01T00:00:00Z"), "PAST"),
        (("--at", "2027-06-01T00:00:00Z", "--expires-at", "2027-06-01T00:00:00Z"), "EXPIRES_BEFORE_DELIVERY"),
    ]
    for flags, code in table:
        status, error = nereus.json("schedule", *flags, "--", "true")
        assert (status, error["error"]) == (1, code)
    assert not nereus.store.exists()
