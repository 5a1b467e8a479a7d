"""Lengths of time: `90s`, `1h30m`, `7d`, `1.5h`, `PT1H30M` to nanoseconds, and back.

Only units of fixed length exist here: a day is 24 hours and a week is seven of them, whatever any zone's clock does.
"""

from typing import Final

from nereus_cli.wish.refusal import Refusal, quoted

UNIT_NS: Final = {
    "w": 604_800_000_000_000,
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
"""Every unit, longest first, which is the order they are written in."""

MAX_NS: Final = 200 * 365_250 * 86_400_000_000
"""200 years of 365.25 days: from any present date the result still fits a signed 64-bit count of nanoseconds."""

_RANK: Final = {unit: rank for rank, unit in enumerate(UNIT_NS)}
_ISO_DATE: Final = {"W": "w", "D": "d"}
_ISO_TIME: Final = {"H": "h", "M": "m", "S": "s"}
_UNFIXED: Final = frozenset({"y", "Y", "yr", "yrs", "year", "years", "M", "mo", "mon", "month", "months"})
_LENGTH_MAX: Final = 100

_Part = tuple[str, str, str]


def parse_duration(text: str) -> int:
    """Return the nanoseconds that `text` says, from 0 to `MAX_NS`.

    Raises Refusal: MALFORMED when it is no duration (with the nearest valid form, if one is recognisable), TOO_FAR when
    it is one of more than 200 years.
    """
    try:
        return _read(text)
    except Refusal as refusal:
        if refusal.code == "TOO_FAR":
            raise
        nearest = _nearest(text)
        if nearest is None:
            raise
        raise Refusal("MALFORMED", f"{refusal.message}; did you mean {nearest}?") from None


def format_duration(duration_ns: int) -> str:
    """Return the shortest text that parses back to `duration_ns`; of equally short ones, that with the longest unit.

    Raises ValueError when no text says it: below 0 or above `MAX_NS`.
    """
    if not 0 <= duration_ns <= MAX_NS:
        message = f"not a duration that can be written: {duration_ns} ns"
        raise ValueError(message)
    return _shortest(duration_ns, tuple(UNIT_NS)) if duration_ns else "0s"


def _read(text: str) -> int:
    if len(text) > _LENGTH_MAX:
        raise _malformed(text, "it is too long for one")
    if not text:
        raise _malformed(text, "it is empty; write 90s, 1h30m, 7d or PT1H30M")
    if text[0] in "+-":
        raise _malformed(text, "a duration has no sign")
    return _total(text, _iso_parts(text) if text[0] == "P" else _parts(text, text))


def _parts(text: str, part_of: str) -> list[_Part]:
    """Split `1h1.5m` into (whole, fraction, unit); a unit is any run of letters here, known or not."""
    parts: list[_Part] = []
    at = 0
    while at < len(text):
        whole, at = _run(text, at, "0", "9")
        fraction = ""
        if whole and text[at : at + 1] == ".":
            fraction, at = _run(text, at + 1, "0", "9")
            if not fraction:
                raise _malformed(part_of, "a fraction needs digits")
        unit, at = _run(text, at, "A", "z")
        if not whole or not unit:
            raise _malformed(part_of, "each number needs a unit and each unit a number, as in 90s or 1h30m")
        parts.append((whole, fraction, unit))
    return parts


def _run(text: str, start: int, low: str, high: str) -> tuple[str, int]:
    """Return the run of characters between `low` and `high` from `start`, and where it ends."""
    end = start
    while end < len(text) and low <= text[end] <= high:
        end += 1
    return text[start:end], end


def _iso_parts(text: str) -> list[_Part]:
    """Read ISO 8601 into the parts of the short form; years and months keep their letters and are refused with them."""
    date, mark, time = text[1:].partition("T")
    if (mark or not date) and not time:
        raise _malformed(text, "nothing follows its last letter; write P7D or PT1H30M")
    parts: list[_Part] = []
    for section, names in ((date, _ISO_DATE), (time, _ISO_TIME)):
        for whole, fraction, unit in _parts(section, text):
            name = names.get(unit, unit)
            if name == unit and unit not in _UNFIXED:
                raise _malformed(text, f"ISO 8601 has no unit {unit} there; write P7D or PT1H30M")
            parts.append((whole, fraction, name))
    return parts


def _total(text: str, parts: list[_Part]) -> int:
    total, last = 0, -1
    for place, (whole, fraction, unit) in enumerate(parts, 1):
        if unit in _UNFIXED:
            raise _malformed(text, "years and months have no fixed length; count days or weeks, as 30d or 52w")
        rank = _RANK.get(unit)
        if rank is None:
            raise _malformed(text, f"its units are {', '.join(UNIT_NS)}")
        if rank <= last:
            raise _malformed(text, "each unit stands once, the longest first, as in 1h30m")
        if fraction and place < len(parts):
            raise _malformed(text, "only the last number may have a fraction, as in 1h1.5m")
        last = rank
        below, rest = divmod(int(fraction or "0") * UNIT_NS[unit], 10 ** len(fraction))
        if rest:
            raise _malformed(text, "nothing finer than a nanosecond can be said")
        total += int(whole) * UNIT_NS[unit] + below
    if total > MAX_NS:
        raise Refusal("TOO_FAR", f"{quoted(text)} is too long: a duration may last 200 years (73050d)")
    return total


def _malformed(text: str, why: str) -> Refusal:
    return Refusal("MALFORMED", f"{quoted(text)} is not a duration: {why}")


def _nearest(text: str) -> str | None:
    from nereus_cli.wish.mend import duration_rewrites

    for rewrite in duration_rewrites(text[: 2 * _LENGTH_MAX]):
        try:
            _read(rewrite)
        except Refusal:
            continue
        return rewrite
    return None


def _shortest(rest_ns: int, units: tuple[str, ...]) -> str:
    """Say it in the first unit alone; else with a fraction, with smaller units behind it, or without that unit."""
    unit, others = units[0], units[1:]
    count, below = divmod(rest_ns, UNIT_NS[unit])
    if not below:
        return f"{count}{unit}"
    forms: list[str] = []
    fraction = _decimals(below, UNIT_NS[unit])
    if fraction:
        forms.append(f"{count}.{fraction}{unit}")
    if count:
        forms.append(f"{count}{unit}{_shortest(below, others)}")
    forms.append(_shortest(rest_ns, others))
    return min(forms, key=len)


def _decimals(below: int, size: int) -> str:
    """Return the digits of `below / size`, or nothing if they never end."""
    scale = 10**18
    digits, rest = divmod(below * scale, size)
    return "" if rest else f"{digits:018d}".rstrip("0")
