"""The calendar as arithmetic: dates, days and seconds without importing `datetime`, for every year there is.

A *wall second* is a reading of a clock on a wall counted as if that clock showed UTC; it says nothing about an instant.
"""

from typing import Final, NamedTuple

NS_PER_S: Final = 1_000_000_000
DAY_S: Final = 86_400
FIRST_S: Final = -62_135_596_800
LAST_S: Final = 253_402_300_799
"""First and last second of the years 0001 to 9999: what four digits of a year can say."""

WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS_PER_ERA: Final = 146_097
_DAYS_TO_EPOCH: Final = 719_468
_FEBRUARY: Final = 2
_EPOCH_WEEKDAY: Final = 3


class Civil(NamedTuple):
    """A date and a time of day as a wall shows them."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int


def days_in_month(year: int, month: int) -> int:
    """Return 28 to 31; `month` counts from 1."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if leap and month == _FEBRUARY else _MONTH_DAYS[month - 1]


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to this date of the Gregorian calendar.

    Years are counted from March, so that a leap day is the last of its year and month lengths follow one straight line.
    """
    from_march = (month - 3) % 12
    era, year_of_era = divmod(year - (month <= _FEBRUARY), 400)
    day_of_year = (153 * from_march + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _DAYS_PER_ERA + day_of_era - _DAYS_TO_EPOCH


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month, day of a count of days from 1970-01-01: the inverse of `days_from_civil`."""
    era, day_of_era = divmod(days + _DAYS_TO_EPOCH, _DAYS_PER_ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    from_march = (5 * day_of_year + 2) // 153
    month = (from_march + 2) % 12 + 1
    day = day_of_year - (153 * from_march + 2) // 5 + 1
    return era * 400 + year_of_era + (month <= _FEBRUARY), month, day


def wall_second(civil: Civil) -> int:
    """Return the wall second of a date and time whose fields are in range."""
    days = days_from_civil(civil.year, civil.month, civil.day)
    return days * DAY_S + civil.hour * 3600 + civil.minute * 60 + civil.second


def civil_at(second: int) -> Civil:
    """Return the date and time of a wall second: the inverse of `wall_second`."""
    days, rest = divmod(second, DAY_S)
    year, month, day = civil_from_days(days)
    return Civil(year, month, day, rest // 3600, rest // 60 % 60, rest % 60)


def weekday(second: int) -> str:
    """Return the English three-letter name of the day a wall second falls on."""
    return WEEKDAYS[(second // DAY_S + _EPOCH_WEEKDAY) % 7]
