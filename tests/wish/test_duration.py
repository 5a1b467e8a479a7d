import math
from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nereus_cli.wish.duration import MAX_NS, UNIT_NS, format_duration, parse_duration
from nereus_cli.wish.refusal import Refusal
from tests.wish.asking import check_line

MS = 1_000_000
S = 1000 * MS
M = 60 * S
H = 60 * M
D = 24 * H


def refused(text: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        parse_duration(text)
    check_line(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("text", "length_ns"),
    [
        ("0s", 0),
        ("90s", 90 * S),
        ("90m", 90 * M),
        ("1h30m", 90 * M),
        ("1h05m", 65 * M),
        ("7d", 168 * H),
        ("2w", 14 * D),
        ("250ms", 250 * MS),
        ("5us", 5000),
        ("1ns", 1),
        ("1s1ms1us1ns", S + MS + 1001),
        ("1.5h", 90 * M),
        ("1h1.5m", H + 90 * S),
        ("0.5us", 500),
        ("1.000000001s", S + 1),
        ("1.10s", 1100 * MS),
        ("0001s", S),
        ("24d20h", 24 * D + 20 * H),
        ("49d", 49 * D),
        ("50d", 50 * D),
        ("200d", 200 * D),
        ("2147483648ms", 2**31 * MS),
        ("4294967296ms", 2**32 * MS),
        ("73050d", MAX_NS),
        ("PT1H30M", 90 * M),
        ("PT90M", 90 * M),
        ("P7D", 7 * D),
        ("P1W", 7 * D),
        ("P1DT2H", 26 * H),
        ("PT0.25S", 250 * MS),
        ("P0.5D", 12 * H),
        ("PT0S", 0),
        ("P1DT1M", D + M),
    ],
)
def test_what_is_read(text: str, length_ns: int) -> None:
    assert parse_duration(text) == length_ns


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "90s"),
        (" ", "90s"),
        ("10", "10s"),
        ("1.5", "1.5s"),
        ("h", "1h30m"),
        (".5h", "1h30m"),
        ("1.h", "needs digits"),
        ("1h.5m", "1h30m"),
        ("1h 30m", "did you mean 1h30m?"),
        ("1h30m\n", "did you mean 1h30m?"),
        (" 90s", "did you mean 90s?"),
        ("1_000s", "did you mean 1000s?"),
        ("5 minutes", "did you mean 5m?"),
        ("1 hour and 30 minutes", "did you mean 1h30m?"),
        ("in 2 weeks", "did you mean 2w?"),
        ("2hrs", "did you mean 2h?"),
        ("10sec", "did you mean 10s?"),
        ("100 millis", "did you mean 100ms?"),
        ("1,5h", "did you mean 1.5h?"),
        ("1H30M", "did you mean 1h30m?"),
        ("1\u00b5s", "did you mean 1us?"),
        ("1\u03bcs", "did you mean 1us?"),
        ("pt1h", "did you mean PT1H?"),
        ("P1w", "did you mean P1W?"),
        ("+5s", "did you mean 5s?"),
        ("-5s", "no sign"),
        ("1y", "no fixed length"),
        ("10000y", "no fixed length"),
        ("1M", "no fixed length"),
        ("1month", "no fixed length"),
        ("P1Y", "no fixed length"),
        ("P1M", "no fixed length"),
        ("P1Y2DT3H", "no fixed length"),
        ("PT1Y", "no fixed length"),
        ("1e30s", "units are w, d, h, m, s, ms, us, ns"),
        ("1x", "units are"),
        ("1[s", "units are"),
        ("0x10s", "units are"),
        ("1h1h", "longest first"),
        ("1m1h", "longest first"),
        ("1d1w", "longest first"),
        ("1.5h30m", "only the last"),
        ("0.5ns", "nanosecond"),
        ("1.0000000001s", "nanosecond"),
        ("P", "nothing follows"),
        ("PT", "nothing follows"),
        ("P1DT", "nothing follows"),
        ("PT1D", "no unit D there"),
        ("P1H", "no unit H there"),
        ("PT5ms", "no unit ms there"),
        ("P1D1W", "longest first"),
        ("P1", "needs a unit"),
        ("T1H", "needs a unit"),
        ("\u0661\u0660s", "needs a unit"),
        ("\uff11s", "needs a unit"),
        ("1\u00b2s", "needs a unit"),
        ("90s\x00", "needs a unit"),
        ("90s\udcff", "needs a unit"),
        ("\x1b[31m", "needs a unit"),
        ("infs", "needs a unit"),
        ("nan", "needs a unit"),
        ("9" * 5000, "too long"),
        ("1s" * 100, "too long"),
    ],
)
def test_what_is_not_a_duration_and_what_the_refusal_names(text: str, named: str) -> None:
    refusal = refused(text)
    assert refusal.code == "MALFORMED"
    assert named in refusal.message


@pytest.mark.parametrize("text", ["73050d1ns", "73051d", "10436w", "9" * 90 + "s", "P73051D", "PT99999999999S"])
def test_more_than_two_hundred_years_is_too_far(text: str) -> None:
    refusal = refused(text)
    assert refusal.code == "TOO_FAR"
    assert "73050d" in refusal.message


def test_the_longest_duration_from_any_present_date_fits_64_bits() -> None:
    year_2060_ns = 90 * 366 * D
    assert year_2060_ns + MAX_NS < 2**63


@given(st.integers(0, MAX_NS))
@example(MAX_NS)
def test_a_length_written_and_read_is_the_same(length_ns: int) -> None:
    assert parse_duration(format_duration(length_ns)) == length_ns


_parts = st.fixed_dictionaries({}, optional={unit: st.integers(0, 3000) for unit in UNIT_NS})


@given(_parts.filter(bool), st.none() | st.integers(0, 99_999))
def test_no_text_of_the_same_length_of_time_is_shorter(parts: dict[str, int], fraction: int | None) -> None:
    ordered = {unit: parts[unit] for unit in UNIT_NS if unit in parts}
    last = list(ordered)[-1]
    expected = sum(count * UNIT_NS[unit] for unit, count in ordered.items())
    text = "".join(f"{count}{unit}" for unit, count in ordered.items())
    if fraction is not None and UNIT_NS[last] % 10**5 == 0:
        text = f"{text[: -len(last)]}.{fraction:05d}{last}"
        expected += fraction * UNIT_NS[last] // 10**5
    assert parse_duration(text) == expected
    assert len(format_duration(expected)) <= len(text)


@given(st.integers(0, 10**6), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_iso_8601_means_what_the_short_form_means(days: int, hours: int, minutes: int, seconds: int) -> None:
    days %= 73_000
    short = parse_duration(f"{days}d{hours}h{minutes}m{seconds}s")
    assert parse_duration(f"P{days}DT{hours}H{minutes}M{seconds}S") == short


@given(st.text(max_size=30) | st.text("0123456789.wdhmsunPTYMDHS ", max_size=12))
def test_any_other_text_is_refused_in_one_line(text: str) -> None:
    try:
        length_ns = parse_duration(text)
    except Refusal as refusal:
        check_line(refusal)
    else:
        assert parse_duration(format_duration(length_ns)) == length_ns


def test_every_short_text_is_read_or_refused() -> None:
    for letters in product("PT1.sM", repeat=5):
        try:
            assert 0 <= parse_duration("".join(letters)) <= MAX_NS
        except Refusal as refusal:
            check_line(refusal)


@pytest.mark.parametrize(
    ("length_ns", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (90 * S, "90s"),
        (90 * M, "90m"),
        (60 * S, "1m"),
        (7 * D, "1w"),
        (D, "1d"),
        (D + M, "1d1m"),
        (1500 * MS, "1.5s"),
        (D + 1, "1d1ns"),
        (MAX_NS, "73050d"),
    ],
)
def test_how_lengths_are_written(length_ns: int, text: str) -> None:
    assert format_duration(length_ns) == text


@pytest.mark.parametrize("length_ns", [-1, MAX_NS + 1])
def test_what_cannot_be_written_is_an_error_of_the_caller(length_ns: int) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        format_duration(length_ns)


def test_units_are_exact_multiples_of_those_below() -> None:
    sizes = list(UNIT_NS.values())
    assert all(math.gcd(larger, smaller) == smaller for larger, smaller in pairwise(sizes))
