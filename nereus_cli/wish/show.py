"""How an instant is written: RFC 3339, RFC 9557, the line people read. Arithmetic alone, but for named zones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nereus_cli.wish.civil import NS_PER_S, civil_at, weekday

if TYPE_CHECKING:
    from nereus_cli.wish.instant import Resolved

_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DISTANCE_UNITS: Final = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_RULES: Final = {
    "earlier": "the clock skips this reading: the earlier of its two meanings was chosen",
    "later": "the clock skips this reading: the later of its two meanings was chosen",
    "first": "the clock shows this reading twice: the first time was chosen",
    "second": "the clock shows this reading twice: the second time was chosen",
    "leap-second": "a leap second counts as the second that follows it",
}


def rfc3339(instant_ns: int, precision: str = "ms") -> str:
    """Return `2027-03-28T00:30:00.000Z`; `precision` is s, ms, us or ns, and what is finer is cut off."""
    second, fraction = divmod(instant_ns, NS_PER_S)
    digits = _DIGITS[precision]
    tail = f".{fraction:09d}"[: digits + 1] if digits else ""
    return f"{_stamp(second, 'T')}{tail}Z"


def zoned_text(instant_ns: int, zone: str | None, offset_s: int) -> str:
    """Return the exact text, to be read back as the same instant: `2027-03-28T03:30:00+02:00[Europe/Berlin]`.

    Where the offset is not in whole minutes (local mean times before about 1930), which RFC 3339 cannot write, or where
    the local year has no four digits, the time is given in UTC beside the name of the zone.
    """
    second, fraction = divmod(instant_ns, NS_PER_S)
    tail = _fraction(fraction)
    suffix = f"[{zone}]" if zone and zone != "UTC" and zone[0] not in "+-" else ""
    local = _stamp(second + offset_s, "T")
    if (
        zone == "UTC"
        or not (zone or offset_s)
        or offset_s % 60
        or len(local) > len("2027-03-28T02:30:00")
        or local < "0001"
    ):
        return f"{_stamp(second, 'T')}{tail}Z{suffix}"
    return f"{local}{tail}{offset_text(offset_s)}{suffix}"


def local_text(instant_ns: int, zone: str) -> str:
    """Return `Sun 2027-03-28 02:30:00 +02:00 Europe/Berlin`, with a fraction if there is one.

    A zone that this machine's data does not know (any more) gives the same in UTC, and says so.
    """
    from nereus_cli.wish.refusal import Refusal, quoted
    from nereus_cli.wish.zones import find_zone, offset_at

    try:
        found = find_zone(zone)
    except Refusal:
        return f"{_local(instant_ns, 0, 'UTC')} (no data for zone {quoted(zone)})"
    label = "" if found.name[0] in "+-" else found.name
    return _local(instant_ns, offset_at(found, instant_ns // NS_PER_S), label)


def describe(resolved: Resolved, now_ns: int) -> list[str]:
    """Return lines for people: what was said, how it was read and by which rule, the instant, how far off it is."""
    from nereus_cli.wish.refusal import quoted

    read_as = zoned_text(resolved.instant_ns, resolved.zone, resolved.offset_s)
    lines = [f"said      {quoted(resolved.text)}", f"read as   {read_as}"]
    if resolved.zone_data_version is not None:
        lines.append(f"zone      {resolved.zone}, zone data {resolved.zone_data_version}")
    if resolved.rule is not None:
        lines.append(f"rule      {_RULES.get(resolved.rule, resolved.rule)}")
    lines.append(f"instant   {_exact(resolved.instant_ns)} {weekday(resolved.instant_ns // NS_PER_S)}")
    if resolved.zone is not None:
        lines.append(f"local     {local_text(resolved.instant_ns, resolved.zone)}")
    elif resolved.offset_s:
        lines.append(f"local     {_local(resolved.instant_ns, resolved.offset_s, '')}")
    lines.append(f"distance  {distance(resolved.instant_ns - now_ns)}")
    return lines


def distance(difference_ns: int) -> str:
    """Return how far off something is, for people: `in 116d 11h`, `45s ago`, `now`; the two leading units at most."""
    seconds, fraction = divmod(abs(difference_ns), NS_PER_S)
    parts: list[str] = []
    rest = seconds
    for unit, size in _DISTANCE_UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}")
    if not parts:
        if not fraction // 1_000_000:
            return "now"
        parts.append(f"{fraction // 1_000_000}ms")
    length = " ".join(part for part in parts[:2] if part[0] != "0")
    return f"in {length}" if difference_ns > 0 else f"{length} ago"


def offset_text(offset_s: int) -> str:
    """Return `+02:00`, with seconds only where an offset has some: `+00:53:28`."""
    minutes, seconds = divmod(abs(offset_s), 60)
    tail = f":{seconds:02d}" if seconds else ""
    return f"{'-' if offset_s < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}{tail}"


def _local(instant_ns: int, offset_s: int, label: str) -> str:
    second, fraction = divmod(instant_ns, NS_PER_S)
    wall = second + offset_s
    line = f"{weekday(wall)} {_stamp(wall, ' ')}{_fraction(fraction)} {offset_text(offset_s)}"
    return f"{line} {label}" if label else line


def _exact(instant_ns: int) -> str:
    return rfc3339(instant_ns, "ns" if instant_ns % 1_000_000 else "ms")


def _stamp(wall_s: int, separator: str) -> str:
    year, month, day, hour, minute, second = civil_at(wall_s)
    return f"{year:04d}-{month:02d}-{day:02d}{separator}{hour:02d}:{minute:02d}:{second:02d}"


def _fraction(fraction_ns: int) -> str:
    return f".{fraction_ns:09d}".rstrip("0") if fraction_ns else ""
