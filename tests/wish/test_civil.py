from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.wish.civil import (
    DAY_S,
    FIRST_S,
    LAST_S,
    Civil,
    civil_at,
    civil_from_days,
    days_from_civil,
    days_in_month,
    wall_second,
    weekday,
)


@given(st.dates())
def test_dates_are_those_of_the_standard_library(day: date) -> None:
    days = days_from_civil(day.year, day.month, day.day)
    assert days == day.toordinal() - date(1970, 1, 1).toordinal()
    assert civil_from_days(days) == (day.year, day.month, day.day)
    assert weekday(days * DAY_S) == day.strftime("%a")


@given(st.integers(-(10**12), 10**12))
def test_every_second_has_one_date_and_time(second: int) -> None:
    civil = civil_at(second)
    assert wall_second(civil) == second
    assert 1 <= civil.day <= days_in_month(civil.year, civil.month)


def test_every_day_of_four_centuries_follows_the_one_before() -> None:
    year, month, day = 1999, 12, 31
    for days in range(days_from_civil(2000, 1, 1), days_from_civil(2400, 1, 1)):
        day += 1
        if day > days_in_month(year, month):
            day, month = 1, month + 1
        if month > 12:
            month, year = 1, year + 1
        assert civil_from_days(days) == (year, month, day)


@pytest.mark.parametrize(
    ("second", "civil"),
    [
        (0, Civil(1970, 1, 1, 0, 0, 0)),
        (-1, Civil(1969, 12, 31, 23, 59, 59)),
        (FIRST_S, Civil(1, 1, 1, 0, 0, 0)),
        (LAST_S, Civil(9999, 12, 31, 23, 59, 59)),
        (2**31, Civil(2038, 1, 19, 3, 14, 8)),
        (FIRST_S - 1, Civil(0, 12, 31, 23, 59, 59)),
        (LAST_S + 1, Civil(10000, 1, 1, 0, 0, 0)),
    ],
)
def test_the_edges(second: int, civil: Civil) -> None:
    assert civil_at(second) == civil
    assert wall_second(civil) == second


@given(st.integers(FIRST_S, LAST_S))
def test_times_are_those_of_the_standard_library(second: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC).fromtimestamp(second, UTC)
    assert civil_at(second) == tuple(moment.timetuple())[:6]
