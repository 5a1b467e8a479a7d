"""Named zones: the readings a clock change skips or repeats, and names that are none."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.wish.civil import FIRST_S, LAST_S
from nereus_cli.wish.show import rfc3339, zoned_text
from nereus_cli.wish.zones import find_zone, offset_at, read_wall
from tests.wish.asking import NS, ask, needs_zone_data, refused

pytestmark = needs_zone_data

ZONES = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "America/Anchorage",
    "America/Asuncion",
    "America/Chicago",
    "America/Denver",
    "America/Nuuk",
    "America/Halifax",
    "America/Havana",
    "America/Los_Angeles",
    "America/Mexico_City",
    "America/Miquelon",
    "America/New_York",
    "America/Phoenix",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/Scoresbysund",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Jerusalem",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Asia/Tokyo",
    "Atlantic/Azores",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Chisinau",
    "Europe/Dublin",
    "Europe/Istanbul",
    "Europe/Lisbon",
    "Europe/London",
    "Pacific/Apia",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Easter",
    "Pacific/Kiritimati",
    "Pacific/Norfolk",
]

GAPS = [
    ("2027-03-28T02:30", "Europe/Berlin", "2027-03-28T00:30:00Z", "2027-03-28T01:30:00Z"),
    ("2027-03-14T02:30", "America/New_York", "2027-03-14T06:30:00Z", "2027-03-14T07:30:00Z"),
    ("2027-10-03T02:15", "Australia/Lord_Howe", "2027-10-02T15:15:00Z", "2027-10-02T15:45:00Z"),
    ("2011-12-30T00:00", "Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"),
    ("2011-12-30T12:00", "Pacific/Apia", "2011-12-29T22:00:00Z", "2011-12-30T22:00:00Z"),
    ("2011-12-30T23:59:59", "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-31T09:59:59Z"),
]
FOLDS = [
    ("2027-10-31T02:30", "Europe/Berlin", "2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z"),
    ("2027-11-07T01:30", "America/New_York", "2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z"),
    ("2026-10-25T01:30", "Europe/London", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"),
    ("2027-04-04T01:45", "Australia/Lord_Howe", "2027-04-03T14:45:00Z", "2027-04-03T15:15:00Z"),
]


@pytest.mark.parametrize("written", ["{wall}", "{wall}[{zone}]", "{wall}[!{zone}]"])
@pytest.mark.parametrize(
    ("case", "code", "rules"),
    [(case, "GAP", ("earlier", "later")) for case in GAPS] + [(case, "FOLD", ("first", "second")) for case in FOLDS],
)
def test_a_reading_with_two_meanings_is_refused_with_both_unless_a_rule_chooses(
    case: tuple[str, str, str, str], code: str, rules: tuple[str, str], written: str
) -> None:
    wall, zone, *instants = case
    text, tz = written.format(wall=wall, zone=zone), (zone if written == "{wall}" else None)
    other = {"gap": None, "fold": "first"} if code == "GAP" else {"gap": "later", "fold": None}
    refusal = refused(text, tz, **other)
    assert refusal.code == code
    assert [candidate.rule for candidate in refusal.candidates] == list(rules)
    assert zone in refusal.message
    for candidate, rule, instant in zip(refusal.candidates, rules, instants, strict=True):
        assert rfc3339(candidate.instant_ns, "s") == instant
        assert ask(candidate.text).instant_ns == candidate.instant_ns
        assert f"--{code.lower()} {rule} ({candidate.text})" in refusal.message
        chosen = ask(text, tz, **{**other, code.lower(): rule})
        assert (chosen.instant_ns, chosen.rule, chosen.zone) == (candidate.instant_ns, rule, zone)


def test_what_the_candidates_look_like() -> None:
    refusal = refused("2011-12-30T12:00:00.25", "Pacific/Apia")
    assert [candidate.text for candidate in refusal.candidates] == [
        "2011-12-29T12:00:00.25-10:00[Pacific/Apia]",
        "2011-12-31T12:00:00.25+14:00[Pacific/Apia]",
    ]


@pytest.mark.parametrize("host", ["Europe/London", "Australia/Lord_Howe", "", None])
def test_the_zone_of_the_host_changes_nothing(host: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if host is None:
        monkeypatch.delenv("TZ", raising=False)
    else:
        monkeypatch.setenv("TZ", host)
    assert rfc3339(ask("2026-10-25T01:30:00Z").instant_ns) == "2026-10-25T01:30:00.000Z"
    assert rfc3339(ask("2026-07-01T12:00", "Europe/Berlin").instant_ns) == "2026-07-01T10:00:00.000Z"
    assert refused("2026-10-25T01:30").code == "NO_ZONE"


def test_a_week_of_fixed_days_is_not_a_week_of_the_calendar() -> None:
    noon = ask("2027-03-25T12:00", "Europe/Berlin").instant_ns
    assert ask("2027-04-01T12:00", "Europe/Berlin").instant_ns - noon == (7 * 24 - 1) * 3600 * NS


@pytest.mark.parametrize(
    ("text", "instant", "offset_s"),
    [
        ("2027-03-28T02:30Z[Europe/Berlin]", "2027-03-28T02:30:00Z", 7200),
        ("2027-03-28T02:30-00:00[Europe/Berlin]", "2027-03-28T02:30:00Z", 7200),
        ("2027-10-31T02:30+02:00[Europe/Berlin]", "2027-10-31T00:30:00Z", 7200),
        ("2027-10-31T02:30+01:00[!Europe/Berlin]", "2027-10-31T01:30:00Z", 3600),
        ("1890-01-01T00:00[Europe/Berlin]", "1889-12-31T23:06:32Z", 3208),
        ("0002-01-01T00:00[Europe/Berlin]", "0001-12-31T23:06:32Z", 3208),
        ("9999-07-01T00:00[Europe/Berlin]", "9999-06-30T22:00:00Z", 7200),
        ("9999-12-31T23:59:59Z[Europe/Berlin]", "9999-12-31T23:59:59Z", 3600),
        ("0001-01-01T00:00:00Z[America/New_York]", "0001-01-01T00:00:00Z", -17762),
        ("2016-12-31T18:59:60[America/New_York]", "2017-01-01T00:00:00Z", -18000),
    ],
)
def test_zones_beside_instants_and_at_the_ends_of_time(text: str, instant: str, offset_s: int) -> None:
    resolved = ask(text)
    assert rfc3339(resolved.instant_ns, "s") == instant
    assert resolved.offset_s == offset_s
    assert resolved.zone_data_version
    assert ask(zoned_text(resolved.instant_ns, resolved.zone, offset_s)).instant_ns == resolved.instant_ns


def test_a_zone_given_beside_an_instant_only_shows_it() -> None:
    resolved = ask("2027-06-01T09:00:00-05:00", "Europe/Berlin")
    assert (rfc3339(resolved.instant_ns, "s"), resolved.offset_s) == ("2027-06-01T14:00:00Z", 7200)
    assert (resolved.zone, resolved.rule) == ("Europe/Berlin", None)
    assert refused("2027-06-01T09:00:00Z", "Europe/Berln").code == "UNKNOWN_ZONE"


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        (
            "2027-06-01T09:00+01:00[Europe/Berlin]",
            [("offset", "2027-06-01T10:00:00+02:00"), ("zone", "2027-06-01T09:00:00+02:00")],
        ),
        (
            "2027-03-28T02:30+01:00[!Europe/Berlin]",
            [("offset", "2027-03-28T03:30:00+02:00"), ("earlier", "2027-03-28T01:30:00+01:00")],
        ),
        (
            "2027-10-31T02:30+05:00[Europe/Berlin]",
            [
                ("offset", "2027-10-30T23:30:00+02:00"),
                ("first", "2027-10-31T02:30:00+02:00"),
                ("second", "2027-10-31T02:30:00+01:00"),
            ],
        ),
    ],
)
def test_an_offset_that_is_not_the_zones_is_refused_with_every_reading(
    text: str, candidates: list[tuple[str, str]]
) -> None:
    refusal = refused(text, None, "later", "first")
    assert refusal.code == "OFFSET_MISMATCH"
    assert [(one.rule, one.text) for one in refusal.candidates] == [(r, f"{t}[Europe/Berlin]") for r, t in candidates]


@cache
def transitions(name: str) -> tuple[tuple[int, int, int], ...]:
    """Find (second, offset before, offset after) of 2024 to 2040 from UTC instants alone: these have one answer."""
    return tuple(_transitions(name))


def _transitions(name: str) -> Iterator[tuple[int, int, int]]:
    zone = ZoneInfo(name)

    def offset(second: int) -> int:
        moved = datetime.fromtimestamp(second, UTC).astimezone(zone).utcoffset()
        assert moved is not None
        return int(moved.total_seconds())

    start, end, step = 1_704_067_200, 2_240_524_800, 12 * 3600
    before = offset(start)
    for second in range(start + step, end, step):
        after = offset(second)
        if after != before:
            low, high = second - step, second
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            yield high, before, after
        before = after


@pytest.mark.parametrize("name", ZONES)
def test_every_clock_change_of_the_coming_years(name: str) -> None:
    zone = find_zone(name)
    for second, before, after in transitions(name):
        assert (offset_at(zone, second - 1), offset_at(zone, second)) == (before, after)
        low, high = second + min(before, after), second + max(before, after)
        kind = "GAP" if after > before else "FOLD"
        assert read_wall(zone, low - 1) == ("PLAIN", low - 1 - before, low - 1 - before)
        assert read_wall(zone, high) == ("PLAIN", high - after, high - after)
        for wall in (low, (low + high) // 2, high - 1):
            assert read_wall(zone, wall) == (kind, *sorted((wall - before, wall - after)))


def test_the_zones_under_test_change_their_clocks() -> None:
    assert sum(1 for name in ZONES for _ in transitions(name)) > 500


@given(st.integers(FIRST_S * NS, (LAST_S + 1) * NS - 1), st.sampled_from(ZONES))
def test_an_instant_written_with_its_zone_and_read_is_the_same(instant_ns: int, name: str) -> None:
    text = zoned_text(instant_ns, name, offset_at(find_zone(name), instant_ns // NS))
    again = ask(text)
    assert (again.instant_ns, again.zone, again.rule) == (instant_ns, name, None)


@given(st.datetimes(datetime(1850, 1, 1), datetime(2100, 1, 1)), st.sampled_from(ZONES))  # noqa: DTZ001 - wall readings
def test_a_reading_means_every_instant_that_shows_it_and_no_other(wall: datetime, name: str) -> None:
    wall_s = int((wall.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1))
    zone = find_zone(name)
    nearby = {offset_at(zone, wall_s + hours * 3600) for hours in range(-36, 37, 4)}
    showing = sorted({wall_s - offset for offset in nearby if offset_at(zone, wall_s - offset) == offset})
    reading = read_wall(zone, wall_s)
    if showing:
        assert (reading.earlier_s, reading.later_s) == (showing[0], showing[-1])
    assert reading.kind == ("GAP", "PLAIN", "FOLD")[len(showing)]
    assert reading.earlier_s <= reading.later_s


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "../Europe/Berlin",
        "Europe/../Europe/Berlin",
        "./Europe/Berlin",
        "Europe//Berlin",
        "Europe",
        "Europe/Berlin/",
        "/usr/share/zoneinfo/Europe/Berlin",
        "Europe\\Berlin",
        "Europe/Berlin\x00",
        "Europe/Berlin\n",
        "localtime",
        "posixrules",
        "Factory",
        "right/UTC",
        "posix/Europe/Berlin",
        "tzdata.zi",
        "zone.tab",
        "leapseconds",
        "Mars/Olympus",
        "CEST5",
        "\u0395urope/Berlin",
        "A" * 5000,
        "Europe/Ber lin",
        "utc+2",
        "1234",
        "\udcff",
        "+2",
        "+0200",
        "+02",
        "+24:00",
        "+02:60",
        "-00:00",
        "+02:00:00",
        "+ab:cd",
        "+1 :00",
        "\u221202:00",
        "+",
        "+\u0661\u0661:00",
    ],
)
def test_what_is_no_zone(name: str) -> None:
    assert refused("2027-06-01T09:00", name).code == "UNKNOWN_ZONE"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Europe/Berln", "Europe/Berlin"),
        ("posix/Europe/Berlin", "Europe/Berlin"),
        ("utc", "UTC"),
        ("Qqqqq/Zzzzz", "write it as Europe/Berlin, UTC or +02:00"),
        ("+0200", "+02:00"),
    ],
)
def test_a_refused_zone_names_the_nearest(name: str, near: str) -> None:
    assert near in refused("2027-06-01T09:00", name).message
