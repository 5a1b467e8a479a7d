"""What is read as an instant, and what is refused: tables, then properties."""

import copy
import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.wish.civil import FIRST_S, LAST_S
from nereus_cli.wish.instant import Resolved, parse_instant
from nereus_cli.wish.refusal import Candidate, Refusal
from nereus_cli.wish.show import rfc3339
from tests.wish.asking import NOW_NS, NS, ask, check_line, needs_zone_data, refused


def utc(text: str) -> int:
    """The oracle for whole seconds: the standard library."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * NS


@pytest.mark.parametrize(
    ("text", "instant_ns", "offset_s"),
    [
        ("2027-03-28T00:30:00Z", utc("2027-03-28 00:30:00"), 0),
        ("2027-03-28t00:30:00z", utc("2027-03-28 00:30:00"), 0),
        ("2027-03-28 00:30:00Z", utc("2027-03-28 00:30:00"), 0),
        ("2027-03-28T00:30Z", utc("2027-03-28 00:30:00"), 0),
        ("2027-03-28T02:30:00+02:00", utc("2027-03-28 00:30:00"), 7200),
        ("2027-03-27T21:00:00-03:30", utc("2027-03-28 00:30:00"), -12600),
        ("2027-03-28T00:30:00-00:00", utc("2027-03-28 00:30:00"), 0),
        ("2027-03-28T00:30:00+00:00", utc("2027-03-28 00:30:00"), 0),
        ("2027-03-28T23:29:00+23:59", utc("2027-03-27 23:30:00"), 86340),
        ("2027-03-28T00:30:00.5Z", utc("2027-03-28 00:30:00") + NS // 2, 0),
        ("2027-03-28T00:30:00.000000001Z", utc("2027-03-28 00:30:00") + 1, 0),
        ("2028-02-29T00:00:00Z", utc("2028-02-29 00:00:00"), 0),
        ("2000-02-29T00:00:00Z", utc("2000-02-29 00:00:00"), 0),
        ("2038-01-19T03:14:08Z", 2**31 * NS, 0),
        ("9999-12-31T23:59:59Z", utc("9999-12-31 23:59:59"), 0),
        ("0001-01-01T00:00:00Z", utc("0001-01-01 00:00:00"), 0),
        ("0001-01-01T12:00:00+12:00", utc("0001-01-01 00:00:00"), 43200),
        ("@0", 0, 0),
        ("@1767225600", 1_767_225_600 * NS, 0),
        ("@1767225600.5", 1_767_225_600 * NS + NS // 2, 0),
        ("@1767225600.000000001", 1_767_225_600 * NS + 1, 0),
        ("@-1", -NS, 0),
        ("@-0.5", -NS // 2, 0),
        ("@-0", 0, 0),
        ("@253402300799", utc("9999-12-31 23:59:59"), 0),
        ("@253402300799.999999999", utc("9999-12-31 23:59:59") + NS - 1, 0),
        ("@-62135596800", utc("0001-01-01 00:00:00"), 0),
        ("2027-03-28T00:30:00Z[u-ca=iso8601]", utc("2027-03-28 00:30:00"), 0),
        ("2027-03-28T00:30:00Z[!u-ca=gregory]", utc("2027-03-28 00:30:00"), 0),
    ],
)
def test_an_absolute_instant_needs_no_zone(text: str, instant_ns: int, offset_s: int) -> None:
    assert ask(text) == Resolved(instant_ns, text, None, None, None, offset_s)


@pytest.mark.parametrize(
    ("text", "zone", "instant_ns", "offset_s", "name"),
    [
        ("2027-03-28T02:30", "UTC", utc("2027-03-28 02:30:00"), 0, "UTC"),
        ("2027-03-28T02:30", "Z", utc("2027-03-28 02:30:00"), 0, "UTC"),
        ("2027-03-28 02:30:15.25", "+02:00", utc("2027-03-28 00:30:15") + NS // 4, 7200, "+02:00"),
        ("2027-03-28T02:30", "-03:30", utc("2027-03-28 06:00:00"), -12600, "-03:30"),
        ("2027-03-28T02:30[+02:00]", None, utc("2027-03-28 00:30:00"), 7200, "+02:00"),
        ("2027-03-28T02:30[!UTC]", None, utc("2027-03-28 02:30:00"), 0, "UTC"),
        ("2027-03-28T02:30+02:00[+02:00]", None, utc("2027-03-28 00:30:00"), 7200, "+02:00"),
        ("2027-03-28T02:30Z[+02:00]", None, utc("2027-03-28 02:30:00"), 7200, "+02:00"),
        ("2027-03-28T02:30-00:00[+02:00]", None, utc("2027-03-28 02:30:00"), 7200, "+02:00"),
        ("2027-03-28T02:30+05:00", "+02:00", utc("2027-03-27 21:30:00"), 7200, "+02:00"),
        ("2027-03-28T02:30[+05:00]", "+02:00", utc("2027-03-27 21:30:00"), 18000, "+05:00"),
        ("@0", "+02:00", 0, 7200, "+02:00"),
    ],
)
def test_zones_without_rules(text: str, zone: str | None, instant_ns: int, offset_s: int, name: str) -> None:
    for gap, fold in ((None, None), ("earlier", "second")):
        assert ask(text, zone, gap, fold) == Resolved(instant_ns, text, name, None, None, offset_s)


@pytest.mark.parametrize(
    ("text", "instant_ns"),
    [
        ("2016-12-31T23:59:60Z", utc("2017-01-01 00:00:00")),
        ("2015-06-30T23:59:60.5Z", utc("2015-07-01 00:00:00") + NS // 2),
        ("1990-12-31T15:59:60-08:00", utc("1991-01-01 00:00:00")),
        ("2035-07-01T01:59:60+02:00", utc("2035-07-01 00:00:00")),
        ("2035-07-01T01:59:60[+02:00]", utc("2035-07-01 00:00:00")),
    ],
)
def test_a_leap_second_is_the_second_after_it_and_says_so(text: str, instant_ns: int) -> None:
    resolved = ask(text)
    assert (resolved.instant_ns, resolved.rule) == (instant_ns, "leap-second")


@pytest.mark.parametrize(
    "text",
    [
        "2027-03-31T23:59:60Z",
        "2027-06-30T22:59:60Z",
        "2027-06-30T23:58:60Z",
        "2027-06-30T23:59:60+01:00",
        "2027-06-29T23:59:60Z",
        "1971-12-31T23:59:60Z",
    ],
)
def test_a_leap_second_where_none_can_be_is_refused(text: str) -> None:
    refusal = refused(text)
    assert refusal.code == "MALFORMED"
    assert "23:59:59 UTC" in refusal.message


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("2027-13-01T00:00Z", "months"),
        ("2027-00-01T00:00Z", "months"),
        ("2027-02-29T00:00Z", "the days of 2027-02 run from 01 to 28"),
        ("1900-02-29T00:00Z", "28"),
        ("2027-04-31T00:00Z", "30"),
        ("2027-04-00T00:00Z", "30"),
        ("2027-03-28T24:00Z", "midnight is 00:00"),
        ("2027-03-28T23:60Z", "minutes"),
        ("2027-03-28T23:59:61Z", "minutes"),
        ("2027-03-28T12:00+24:00", "+23:59"),
        ("2027-03-28T12:00+01:60", "+23:59"),
        ("2027-03-28T12:00Z[u-ca=hebrew]", "u-ca=gregory"),
        ("2027-03-28T12:00Z[!x-foo=bar]", "x-foo"),
        ("2027-03-28T12:00Z[x-foo=bar]", "x-foo"),
        ("2027-03-28T12:00Z[=bar]", "not understood"),
        ("2027-03-28T12:00Z[u-ca=]", "not understood"),
        ("2027-03-28T12:00Z[u-ca=iso8601][u-ca=gregory]", "not understood"),
        ("2027-03-28T12:00Z[UTC][UTC]", "the zone stands once"),
        ("2027-03-28T12:00Z[u-ca=iso8601][UTC]", "the zone stands once"),
        ("2027-03-28T12:00Z[]", "the zone stands once"),
        ("2027-03-28T12:00Z[!]", "the zone stands once"),
        ("2027-03-28", "did you mean 2027-03-28T09:00:00?"),
        ("20270328T023000Z", "did you mean 2027-03-28T02:30:00Z?"),
        ("2027-3-28 2:30 +0100", "did you mean 2027-03-28T02:30+01:00?"),
        ("2027-03-28T02:30:00+01", "did you mean 2027-03-28T02:30:00+01:00?"),
        ("2027-03-28T02:30:00+0100", "did you mean 2027-03-28T02:30:00+01:00?"),
        ("2027/03/28 02:30:15,5 UTC", "did you mean 2027-03-28T02:30:15.5Z?"),
        ("2027-03-28T02:30:00.1234567890Z", "did you mean 2027-03-28T02:30:00.123456789Z?"),
        ("2027-03-28_02:30Z", "did you mean 2027-03-28T02:30Z?"),
        ("2027-03-28  02:30Z", "did you mean 2027-03-28T02:30Z?"),
        (" 2027-03-28T02:30Z", "did you mean 2027-03-28T02:30Z?"),
        ("2027-03-28T02:30Z\n", "did you mean 2027-03-28T02:30Z?"),
        ("1767225600", "did you mean @1767225600?"),
        ("1767225600123", "did you mean @1767225600.123?"),
        ("10m", "--in 10m"),
        ("PT1H", "--in PT1H"),
        ("", "2026-12-02T09:00:00Z"),
        ("+002027-03-28T12:00Z", "2026-12-02T09:00[Europe/Berlin]"),
        ("2027-13-45", "2026-12-02T09:00:00Z"),
        ("2027/02/30 12:00 UTC", "2026-12-02T09:00:00Z"),
        ("2027-W13-7T12:00Z", "2026-12-02T09:00:00Z"),
        ("2027-087T12:00Z", "2026-12-02T09:00:00Z"),
        ("2027-03-28T12:00\u221201:00", "2026-12-02T09:00:00Z"),
        ("2027-03-28T12:00Z\x00", "2026-12-02T09:00:00Z"),
        ("2027-03-28T02:30[[]", "2026-12-02T09:00:00Z"),
        ("2027-3-8T030[[]", "2026-12-02T09:00:00Z"),
        ("2027-03-28T2:30" + "[" + "x" * 185, "2026-12-02T09:00:00Z"),
        ("2027-03-28T2:30" + "[" + "x" * 183 + "]", "2026-12-02T09:00:00Z"),
        ("2027-03-28T12:00Z" + "[u-ca=iso8601]" * 1000, "2026-12-02T09:00:00Z"),
        ("@", "@1767225600"),
        ("@1.", "@1767225600"),
        ("@.5", "@1767225600"),
        ("@+5", "@1767225600"),
        ("@1e9", "@1767225600"),
        ("@1.0000000001", "@1767225600"),
        ("@\u0661", "@1767225600"),
        ("@0\n", "@1767225600"),
        ("@" + "9" * 5000, "@1767225600"),
    ],
)
def test_what_is_malformed_and_what_the_refusal_names(text: str, named: str) -> None:
    refusal = refused(text, "UTC")
    assert refusal.code == "MALFORMED"
    assert named in refusal.message


@pytest.mark.parametrize(
    "text",
    [
        "0000-12-31T23:59:59Z",
        "0001-01-01T00:00:00+00:01",
        "0001-01-01T00:00:00+00:01[UTC]",
        "9999-12-31T23:59:59-00:01",
        "9999-12-31T23:59:59[-00:01]",
        "9999-12-31T23:59:60Z",
        "@253402300800",
        "@-62135596801",
        "@-62135596800.000000001",
        "@1767225600000",
    ],
)
def test_outside_the_years_of_four_digits_is_too_far(text: str) -> None:
    assert refused(text).code == "TOO_FAR"


def test_a_local_time_without_a_zone_is_refused_with_both_ways_out() -> None:
    refusal = refused("2027-03-28T02:30[u-ca=iso8601]")
    assert refusal.code == "NO_ZONE"
    assert "--tz Europe/Berlin, or write 2027-03-28T02:30[Europe/Berlin] or 2027-03-28T02:30Z" in refusal.message


def test_an_offset_that_contradicts_a_fixed_zone_is_refused_with_both_readings() -> None:
    refusal = refused("2027-03-28T02:30+01:00[!+02:00]")
    assert refusal.code == "OFFSET_MISMATCH"
    assert refusal.candidates == (
        Candidate("offset", utc("2027-03-28 01:30:00"), "2027-03-28T03:30:00+02:00"),
        Candidate("zone", utc("2027-03-28 00:30:00"), "2027-03-28T02:30:00+02:00"),
    )


@pytest.mark.parametrize(("gap", "fold"), [("first", None), (None, "earlier"), ("", None)])
def test_a_rule_that_does_not_exist_is_refused(gap: str | None, fold: str | None) -> None:
    assert refused("@0", None, gap, fold).code == "MALFORMED"


def test_a_refusal_keeps_all_it_says_when_copied() -> None:
    refusal = refused("2027-03-28T02:30+01:00[+02:00]")
    for other in (pickle.loads(pickle.dumps(refusal)), copy.copy(refusal)):  # noqa: S301 - our own bytes
        assert isinstance(other, Refusal)
        assert (other.code, other.message, other.candidates) == (refusal.code, refusal.message, refusal.candidates)


@given(st.integers(FIRST_S * NS, (LAST_S + 1) * NS - 1))
def test_an_instant_written_and_read_is_the_same(instant_ns: int) -> None:
    assert ask(rfc3339(instant_ns, "ns")).instant_ns == instant_ns
    sign, size = ("-" if instant_ns < 0 else ""), abs(instant_ns)
    assert ask(f"@{sign}{size // NS}.{size % NS:09d}").instant_ns == instant_ns


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)),  # noqa: DTZ001 - wall readings
    st.integers(-1439, 1439).filter(bool),
)
def test_an_offset_means_what_it_means_to_the_standard_library(wall: datetime, minutes: int) -> None:
    sign = "-" if minutes < 0 else "+"
    offset = f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    text = f"{wall:%H:%M:%S}.{wall.microsecond:06d}{offset}"
    text = f"{wall.year:04d}-{wall.month:02d}-{wall.day:02d}T{text}"
    expected = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    whole = (expected.days * 86_400 + expected.seconds) * NS + expected.microseconds * 1000
    assert ask(text).instant_ns == whole == ask(text[:-6], offset).instant_ns


_pieces = st.sampled_from(
    [
        "2027",
        "-",
        "03",
        "28",
        "T",
        " ",
        "02:30",
        ":00",
        ".5",
        "Z",
        "+01:00",
        "[",
        "]",
        "UTC",
        "Europe/Berlin",
        "!",
        "u-ca=iso8601",
        "@",
        "60",
        "00",
        "24",
        "\u0663",
        "\n",
        "\udcff",
        "P",
        "1h",
    ]
)


@given(st.text(max_size=40) | st.lists(_pieces, max_size=14).map("".join), st.sampled_from([None, "UTC", "+01:00"]))
def test_any_text_is_read_or_refused_in_one_line(text: str, zone: str | None) -> None:
    try:
        resolved = ask(text, zone)
    except Refusal as refusal:
        check_line(refusal)
    else:
        assert FIRST_S * NS <= resolved.instant_ns < (LAST_S + 1) * NS
        assert resolved.text == text


PHRASES = """
    Friday 15:53|1 month|03/07/27|in 1 month|noon|24:00|12am|tomorrow|\u0661\u0662:\u0663\u0660|tomorrow noon
    now|now + 2 hours|4pm + 3 days|midnight|next week|teatime|12:30|1530|9|2027|2027-03|03-28|28.3.2027|28 Mar 2027
    Sun, 28 Mar 2027 02:30:00 GMT|March 28|last friday|in 10 minutes|10 minutes ago|yesterday|Monday|today at 5
    2027-03-28T02:30 CET|2027-03-28T02:30Z please|2027-03-28T2:30|2027-03-28T02.30|2027-02-30T12:00Z|never|0|-1
    2027-03-28T02:30+1|2027-03-28T02:30 PM|1/2/3 4:5:6|1767225600|1e9|\u0662\u0660\u0662\u0667-03-28T02:30Z
"""


@pytest.mark.parametrize(
    "phrase", [phrase.strip() for phrase in PHRASES.replace("\n", "|").split("|") if phrase.strip()]
)
@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("now", ["2026-12-01 23:59:59", "2027-01-31 12:00:00"])
def test_loose_phrases_are_refused_with_a_form_that_is_read(phrase: str, zone: str | None, now: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_instant(phrase, zone=zone, gap=None, fold=None, now_ns=utc(now))
    check_line(caught.value)
    assert caught.value.code == "MALFORMED"


@pytest.mark.parametrize("now_ns", [NOW_NS, 0, utc("2030-12-31 23:59:59")])
def test_the_forms_that_a_refusal_offers_are_read_and_lie_ahead(now_ns: int) -> None:
    with pytest.raises(Refusal) as caught:
        parse_instant("noon", zone=None, gap=None, fold=None, now_ns=now_ns)
    first, second, third = caught.value.message.partition(": write ")[2].replace(" or ", ", ").split(", ")
    assert ask(first).instant_ns == ask(third).instant_ns > now_ns
    assert ask(second.partition("[")[0], "UTC").instant_ns == ask(first).instant_ns


@needs_zone_data
def test_the_text_stays_as_it_was_typed() -> None:
    text = "2027-06-01 09:00[Europe/Berlin][u-ca=gregory]"
    assert ask(text).text == text
