from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.wish.civil import FIRST_S, LAST_S
from nereus_cli.wish.show import describe, distance, local_text, offset_text, rfc3339, zoned_text
from tests.wish.asking import NOW_NS, NS, ask, needs_zone_data

HALF_PAST_MIDNIGHT_NS = 1_806_193_800 * NS


@pytest.mark.parametrize(
    ("instant_ns", "precision", "text"),
    [
        (HALF_PAST_MIDNIGHT_NS, "ms", "2027-03-28T00:30:00.000Z"),
        (HALF_PAST_MIDNIGHT_NS, "s", "2027-03-28T00:30:00Z"),
        (HALF_PAST_MIDNIGHT_NS + 123_456_789, "us", "2027-03-28T00:30:00.123456Z"),
        (HALF_PAST_MIDNIGHT_NS + 123_456_789, "ns", "2027-03-28T00:30:00.123456789Z"),
        (HALF_PAST_MIDNIGHT_NS + 999_999_999, "ms", "2027-03-28T00:30:00.999Z"),
        (-1, "ms", "1969-12-31T23:59:59.999Z"),
        (FIRST_S * NS, "ms", "0001-01-01T00:00:00.000Z"),
        ((LAST_S + 1) * NS, "ms", "10000-01-01T00:00:00.000Z"),
    ],
)
def test_rfc3339(instant_ns: int, precision: str, text: str) -> None:
    assert rfc3339(instant_ns, precision) == text


@given(st.integers(FIRST_S * 1000, LAST_S * 1000))
def test_rfc3339_is_what_the_standard_library_reads(milliseconds: int) -> None:
    text = rfc3339(milliseconds * 1_000_000)
    assert len(text) == 24
    since = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    assert (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000 == milliseconds


@given(st.integers(-(2**66), 2**66), st.integers(0, 10**9))
def test_rfc3339_sorts_as_the_instants_do(instant_ns: int, later_ns: int) -> None:
    texts = [rfc3339(abs(instant_ns) % (LAST_S * NS), "ns"), rfc3339(abs(instant_ns) % (LAST_S * NS) + later_ns, "ns")]
    assert texts == sorted(texts)


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "Sun 2027-03-28 00:30:00 +00:00 UTC"),
        ("Z", "Sun 2027-03-28 00:30:00 +00:00 UTC"),
        ("+02:00", "Sun 2027-03-28 02:30:00 +02:00"),
        ("-03:30", "Sat 2027-03-27 21:00:00 -03:30"),
        ("Europe/Gone", 'Sun 2027-03-28 00:30:00 +00:00 UTC (no data for zone "Europe/Gone")'),
        ("\x1b[31m", 'Sun 2027-03-28 00:30:00 +00:00 UTC (no data for zone "\\x1b[31m")'),
    ],
)
def test_the_line_people_read(zone: str, text: str) -> None:
    assert local_text(HALF_PAST_MIDNIGHT_NS, zone) == text


@needs_zone_data
@pytest.mark.parametrize(
    ("instant_ns", "zone", "text"),
    [
        (HALF_PAST_MIDNIGHT_NS, "Europe/Berlin", "Sun 2027-03-28 01:30:00 +01:00 Europe/Berlin"),
        (HALF_PAST_MIDNIGHT_NS + 3600 * NS, "Europe/Berlin", "Sun 2027-03-28 03:30:00 +02:00 Europe/Berlin"),
        (HALF_PAST_MIDNIGHT_NS + NS // 4, "Asia/Kathmandu", "Sun 2027-03-28 06:15:00.25 +05:45 Asia/Kathmandu"),
        (-2_524_525_200 * NS, "Europe/Berlin", "Tue 1889-12-31 23:53:28 +00:53:28 Europe/Berlin"),
        (LAST_S * NS, "Asia/Tokyo", "Sat 10000-01-01 08:59:59 +09:00 Asia/Tokyo"),
        (10 * LAST_S * NS, "Asia/Tokyo", "Wed 82269-12-29 08:59:50 +09:00 Asia/Tokyo"),
        (10 * FIRST_S * NS, "UTC", "Tue -17720-01-06 00:00:00 +00:00 UTC"),
    ],
)
def test_the_line_people_read_in_a_named_zone(instant_ns: int, zone: str, text: str) -> None:
    assert local_text(instant_ns, zone) == text


@pytest.mark.parametrize(
    ("zone", "offset_s", "text"),
    [
        (None, 0, "2027-03-28T00:30:00Z"),
        (None, 7200, "2027-03-28T02:30:00+02:00"),
        ("UTC", 0, "2027-03-28T00:30:00Z"),
        ("-03:30", -12600, "2027-03-27T21:00:00-03:30"),
        ("Europe/Berlin", 3600, "2027-03-28T01:30:00+01:00[Europe/Berlin]"),
        ("Europe/Berlin", 3208, "2027-03-28T00:30:00Z[Europe/Berlin]"),
    ],
)
def test_the_exact_text(zone: str | None, offset_s: int, text: str) -> None:
    assert zoned_text(HALF_PAST_MIDNIGHT_NS, zone, offset_s) == text


@pytest.mark.parametrize(
    ("instant_ns", "offset_s", "text"),
    [
        (FIRST_S * NS, -18000, "0001-01-01T00:00:00Z[Etc/Far]"),
        (FIRST_S * NS, 18000, "0001-01-01T05:00:00+05:00[Etc/Far]"),
        (LAST_S * NS, 18000, "9999-12-31T23:59:59Z[Etc/Far]"),
        (LAST_S * NS, -18000, "9999-12-31T18:59:59-05:00[Etc/Far]"),
    ],
)
def test_the_exact_text_where_a_local_year_would_not_have_four_digits(
    instant_ns: int, offset_s: int, text: str
) -> None:
    assert zoned_text(instant_ns, "Etc/Far", offset_s) == text


@pytest.mark.parametrize(
    ("difference_ns", "text"),
    [
        (0, "now"),
        (999_999, "now"),
        (-999_999, "now"),
        (1_000_000, "in 1ms"),
        (-250_000_000, "250ms ago"),
        (NS, "in 1s"),
        (-45 * NS, "45s ago"),
        (90 * NS, "in 1m 30s"),
        (3600 * NS, "in 1h"),
        (3659 * NS, "in 1h"),
        (86_400 * NS + 59 * NS, "in 1d"),
        ((116 * 86_400 + 11 * 3600 + 1799) * NS, "in 116d 11h"),
    ],
)
def test_how_far_off(difference_ns: int, text: str) -> None:
    assert distance(difference_ns) == text


@pytest.mark.parametrize(
    ("offset_s", "text"), [(0, "+00:00"), (-12600, "-03:30"), (3208, "+00:53:28"), (-1, "-00:00:01")]
)
def test_offsets(offset_s: int, text: str) -> None:
    assert offset_text(offset_s) == text


TRANSCRIPTS = [
    (
        ("@0", None),
        [
            'said      "@0"',
            "read as   1970-01-01T00:00:00Z",
            "instant   1970-01-01T00:00:00.000Z Thu",
            "distance  20788d 14h ago",
        ],
    ),
    (
        ("2026-12-01T16:00:01.000000001+02:00", None),
        [
            'said      "2026-12-01T16:00:01.000000001+02:00"',
            "read as   2026-12-01T16:00:01.000000001+02:00",
            "instant   2026-12-01T14:00:01.000000001Z Tue",
            "local     Tue 2026-12-01 16:00:01.000000001 +02:00",
            "distance  in 1s",
        ],
    ),
    (
        ("2035-06-30T23:59:60Z", "UTC"),
        [
            'said      "2035-06-30T23:59:60Z"',
            "read as   2035-07-01T00:00:00Z",
            "rule      a leap second counts as the second that follows it",
            "instant   2035-07-01T00:00:00.000Z Sun",
            "local     Sun 2035-07-01 00:00:00 +00:00 UTC",
            "distance  in 3133d 10h",
        ],
    ),
]


@pytest.mark.parametrize(("asked", "lines"), TRANSCRIPTS)
def test_what_when_shows(asked: tuple[str, str | None], lines: list[str]) -> None:
    assert describe(ask(*asked), NOW_NS) == lines


@needs_zone_data
def test_what_when_shows_of_a_named_zone_and_a_rule() -> None:
    resolved = ask("2027-03-28T02:30", "Europe/Berlin", "later")
    assert describe(resolved, NOW_NS) == [
        'said      "2027-03-28T02:30"',
        "read as   2027-03-28T03:30:00+02:00[Europe/Berlin]",
        f"zone      Europe/Berlin, zone data {resolved.zone_data_version}",
        "rule      the clock skips this reading: the later of its two meanings was chosen",
        "instant   2027-03-28T01:30:00.000Z Sun",
        "local     Sun 2027-03-28 03:30:00 +02:00 Europe/Berlin",
        "distance  in 116d 11h",
    ]
