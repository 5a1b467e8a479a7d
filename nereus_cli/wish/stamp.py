"""The grammar of a written time: RFC 3339 and RFC 9557 split into checked fields. No zone is looked up here."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nereus_cli.wish.civil import Civil, days_in_month, wall_second
from nereus_cli.wish.refusal import Refusal, quoted

_STAMP: Final = (
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
    r"([Zz]|[+-]\d\d:\d\d)?((?:\[[^\[\]]*\])*)"
)
_TAG: Final = r"(!?)([a-z_][a-z0-9_-]*)=([A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)"
_CALENDARS: Final = frozenset({"iso8601", "gregory"})
_MONTH_MAX: Final = 12
_HOUR_MAX: Final = 23
_MINUTE_MAX: Final = 59
_LEAP_SECOND: Final = 60


class Stamp(NamedTuple):
    """A date and time as written.

    `wall_s` and `fraction_ns` are the reading; `leap` says that one second is to be added to it, after it was resolved.
    `offset` is as written: None if there was none, `Z` where the text gives UTC and says nothing of a local offset.
    """

    wall_s: int
    fraction_ns: int
    leap: bool
    offset: str | None
    zone: str | None


def read_stamp(text: str) -> Stamp | None:
    """Return the fields of a text that has the shape of a date and time, None for any other text.

    Raises Refusal where the shape is right and a field is not: MALFORMED, or TOO_FAR for the year 0000.
    """
    match = re.fullmatch(_STAMP, text, re.ASCII)
    if match is None:
        return None
    civil = _checked(text, Civil(*(int(field or "0") for field in match.groups()[:6])))
    leap = civil.second == _LEAP_SECOND
    offset = match[8]
    if offset is not None:
        hour, minute = offset[1:3], offset[4:]
        if offset in {"Z", "z", "-00:00"}:
            offset = "Z"
        elif int(hour) > _HOUR_MAX or int(minute) > _MINUTE_MAX:
            raise _wrong(text, f"the offset {offset} is out of range; the last is +23:59")
    zone = _zone_of(text, re.findall(r"\[([^\]]*)\]", match[9]))
    return Stamp(wall_second(civil) - leap, int((match[7] or "0").ljust(9, "0")), leap, offset, zone)


def _checked(text: str, civil: Civil) -> Civil:
    year, month, day, hour, minute, second = civil
    if not year:
        raise Refusal("TOO_FAR", f"{quoted(text)} is out of range: years run from 0001 to 9999")
    if not 1 <= month <= _MONTH_MAX:
        raise _wrong(text, "months run from 01 to 12")
    if not 1 <= day <= days_in_month(year, month):
        raise _wrong(text, f"the days of {year:04d}-{month:02d} run from 01 to {days_in_month(year, month)}")
    if hour > _HOUR_MAX:
        raise _wrong(text, "hours run from 00 to 23; midnight is 00:00 of the day that begins")
    if minute > _MINUTE_MAX or second > _LEAP_SECOND:
        raise _wrong(text, "minutes and seconds run from 00 to 59")
    return civil


def _zone_of(text: str, suffixes: list[str]) -> str | None:
    """Return the zone named in brackets, if any; every other suffix must be one that changes nothing.

    RFC 9557 lets a reader pass over elective suffixes that it does not know. Here they are refused: whoever writes one
    means something by it, and a calendar that is not ours means another day.
    """
    zone: str | None = None
    seen_calendar = False
    for place, suffix in enumerate(suffixes):
        if "=" not in suffix:
            zone = suffix.removeprefix("!")
            if place or not zone:
                raise _wrong(text, "the zone stands once, in the first brackets, as in 2027-03-28T09:00[Europe/Berlin]")
            continue
        tag = re.fullmatch(_TAG, suffix)
        if tag is None or tag[2] != "u-ca" or tag[3] not in _CALENDARS or seen_calendar:
            raise _wrong(text, f"the suffix {quoted(suffix)} is not understood; leave it out, or write [u-ca=gregory]")
        seen_calendar = True
    return zone


def _wrong(text: str, why: str) -> Refusal:
    return Refusal("MALFORMED", f"{quoted(text)} is not a time: {why}")
