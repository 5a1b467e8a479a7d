"""One text, one instant: RFC 3339, RFC 9557, a local time with a zone, or `@` and Unix seconds.

An instant that is given stays what it is: a zone beside it only says where it is to be shown. A reading of a wall clock
becomes an instant through its zone; where the clock is set forward or back, only a rule the person chose decides.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nereus_cli.wish.civil import DAY_S, FIRST_S, LAST_S, NS_PER_S, civil_at
from nereus_cli.wish.refusal import Candidate, Refusal, quoted
from nereus_cli.wish.show import rfc3339, zoned_text
from nereus_cli.wish.stamp import Stamp, read_stamp
from nereus_cli.wish.zones import Reading, Zone, find_zone, offset_at, offset_seconds, read_wall

_LENGTH_MAX: Final = 200
_LEAP_YEAR_FIRST: Final = 1972
_LEAP_DAYS: Final = ((6, 30), (12, 31))
_UNIX: Final = r"@(-?)(\d{1,20})(?:\.(\d{1,9}))?"
_MILLISECOND_DIGITS: Final = 12

GAP_RULES: Final = ("earlier", "later")
FOLD_RULES: Final = ("first", "second")


class Resolved(NamedTuple):
    """What was said and what it means.

    `text` is as typed; `zone` the zone it was read in or is to be shown in, if any; `rule` is `earlier`, `later`,
    `first`, `second`, `leap-second` or, where nothing had to be decided, None; `zone_data_version` is None unless the
    zone is a named one; `offset_s` is how far the clock of that zone (else of the offset in the text) is ahead of UTC.
    """

    instant_ns: int
    text: str
    zone: str | None
    rule: str | None
    zone_data_version: str | None
    offset_s: int


def parse_instant(text: str, *, zone: str | None, gap: str | None, fold: str | None, now_ns: int) -> Resolved:
    """Return the instant that `text` names.

    `zone` applies where the text names none: a local time is read in it, an absolute one is shown in it. `gap`
    (earlier, later) and `fold` (first, second) decide where a clock was set forward or back, and are ignored elsewhere.
    `now_ns` makes the examples in refusals timely; no instant depends on it.

    Raises Refusal: MALFORMED, NO_ZONE, UNKNOWN_ZONE, GAP and FOLD (with both readings), OFFSET_MISMATCH (with the
    readings by offset and by zone), TOO_FAR (outside the years 0001 to 9999).
    """
    _check_rule("gap", gap, GAP_RULES)
    _check_rule("fold", fold, FOLD_RULES)
    shown = None if zone is None else find_zone(zone)
    if text.startswith("@"):
        return _resolved(text, shown, _unix(text), None, 0)
    stamp = _stamp(text)
    if stamp is None:
        raise _malformed(text, now_ns)
    where = shown if stamp.zone is None else find_zone(stamp.zone)
    if stamp.offset is None:
        if where is None:
            raise Refusal("NO_ZONE", _no_zone(text))
        second, rule = _chosen(text, where, read_wall(where, stamp.wall_s), stamp, (gap, fold))
        offset_s = 0
    else:
        offset_s = 0 if stamp.offset == "Z" else offset_seconds(stamp.offset)
        second, rule = stamp.wall_s - offset_s, None
    _check_range(text, second)
    # `Z` gives the instant and says nothing of the local offset (RFC 9557 section 2.2), so it contradicts no zone.
    if stamp.zone and where and stamp.offset not in {None, "Z"} and offset_at(where, second) != offset_s:
        raise _mismatch(text, where, second, stamp)
    if stamp.leap:
        _check_leap_second(text, second)
        rule = rule or "leap-second"
    return _resolved(text, where, _instant_ns(second, stamp), rule, offset_s)


def _stamp(text: str) -> Stamp | None:
    return read_stamp(text) if len(text) <= _LENGTH_MAX else None


def _check_rule(name: str, rule: str | None, rules: tuple[str, str]) -> None:
    if rule is not None and rule not in rules:
        raise Refusal("MALFORMED", f"{quoted(rule)} is no {name} rule: say {rules[0]} or {rules[1]}")


def _resolved(text: str, zone: Zone | None, instant_ns: int, rule: str | None, offset_s: int) -> Resolved:
    second = instant_ns // NS_PER_S
    _check_range(text, second)
    if zone is None:
        return Resolved(instant_ns, text, None, rule, None, offset_s)
    return Resolved(instant_ns, text, zone.name, rule, zone.data_version, offset_at(zone, second))


def _unix(text: str) -> int:
    match = re.fullmatch(_UNIX, text, re.ASCII)
    if match is None:
        why = "write @ and seconds, as @1767225600 or @1767225600.5"
        raise Refusal("MALFORMED", f"{quoted(text)} is not a Unix time: {why}")
    if len(match[2]) > _MILLISECOND_DIGITS:
        raise _too_far(text, "Unix times are in seconds; divide milliseconds by 1000")
    size = int(match[2]) * NS_PER_S + int((match[3] or "0").ljust(9, "0"))
    return -size if match[1] else size


def _chosen(
    text: str, zone: Zone, reading: Reading, stamp: Stamp, rules: tuple[str | None, str | None]
) -> tuple[int, str | None]:
    """Return the one second a wall reading means and the rule that was needed for it, or refuse with both."""
    if reading.kind == "PLAIN":
        return reading.earlier_s, None
    gap, fold = rules
    chosen, names = (gap, GAP_RULES) if reading.kind == "GAP" else (fold, FOLD_RULES)
    if chosen is not None:
        return (reading.earlier_s if chosen == names[0] else reading.later_s), chosen
    candidates = _candidates(zone, names, reading, stamp)
    what = "does not exist" if reading.kind == "GAP" else "happens twice"
    options = " or ".join(f"--{reading.kind.lower()} {option.rule} ({option.text})" for option in candidates)
    message = f"{quoted(text)} {what} in {zone.name}, where the clock is changed: say {options}"
    raise Refusal(reading.kind, message, candidates)


def _candidates(zone: Zone, names: tuple[str, str], reading: Reading, stamp: Stamp) -> tuple[Candidate, ...]:
    return tuple(
        _candidate(name, zone, second, stamp)
        for name, second in zip(names, (reading.earlier_s, reading.later_s), strict=True)
    )


def _candidate(rule: str, zone: Zone, second: int, stamp: Stamp) -> Candidate:
    instant_ns = _instant_ns(second, stamp)
    return Candidate(rule, instant_ns, zoned_text(instant_ns, zone.name, offset_at(zone, instant_ns // NS_PER_S)))


def _instant_ns(second: int, stamp: Stamp) -> int:
    return (second + stamp.leap) * NS_PER_S + stamp.fraction_ns


def _mismatch(text: str, zone: Zone, by_offset_s: int, stamp: Stamp) -> Refusal:
    reading = read_wall(zone, stamp.wall_s)
    candidates = [_candidate("offset", zone, by_offset_s, stamp)]
    if reading.kind == "PLAIN":
        candidates.append(_candidate("zone", zone, reading.earlier_s, stamp))
    else:
        names = GAP_RULES if reading.kind == "GAP" else FOLD_RULES
        by_zone = _candidates(zone, names, reading, stamp)
        candidates += [one for one in by_zone if one.instant_ns != candidates[0].instant_ns]
    options = " or ".join(option.text for option in candidates)
    message = f"{quoted(text)} contradicts itself, {zone.name} is not at {stamp.offset} then: write {options}"
    return Refusal("OFFSET_MISMATCH", message, tuple(candidates))


def _check_leap_second(text: str, second: int) -> None:
    """Accept :60 only where one was or may yet be inserted: after the last second of June or December in UTC."""
    civil = civil_at(second)
    if civil.year < _LEAP_YEAR_FIRST or (civil.month, civil.day) not in _LEAP_DAYS or (second + 1) % DAY_S:
        why = "a leap second comes only after 23:59:59 UTC on 30 June or 31 December, since 1972; write second 59"
        raise Refusal("MALFORMED", f"{quoted(text)} is not a time: {why}")


def _check_range(text: str, second: int) -> None:
    if not FIRST_S <= second <= LAST_S:
        raise _too_far(text, "years run from 0001 to 9999 in UTC")


def _too_far(text: str, why: str) -> Refusal:
    return Refusal("TOO_FAR", f"{quoted(text)} is out of range: {why}")


def _no_zone(text: str) -> str:
    stamp = text.partition("[")[0]
    return f"{quoted(text)} names no zone: say --tz Europe/Berlin, or write {stamp}[Europe/Berlin] or {stamp}Z"


def _malformed(text: str, now_ns: int) -> Refusal:
    nearest = _nearest(text, now_ns)
    if nearest is not None:
        return Refusal("MALFORMED", f"{quoted(text)} is not a time: did you mean {nearest}?")
    day_s = (now_ns // NS_PER_S // DAY_S + 1) * DAY_S
    soon = rfc3339((day_s + 9 * 3600) * NS_PER_S, "s")
    forms = f"write {soon}, {soon[:-4]}[Europe/Berlin] or @{day_s + 9 * 3600}"
    return Refusal("MALFORMED", f"{quoted(text)} is not a time that is read here: {forms}")


def _nearest(text: str, now_ns: int) -> str | None:
    """Return a rewrite of `text` that would be read, or what to say if it is a duration."""
    from nereus_cli.wish.duration import parse_duration
    from nereus_cli.wish.mend import stamp_rewrites

    for rewrite in stamp_rewrites(text[:_LENGTH_MAX]):
        try:
            if rewrite[0] != "@" and _stamp(rewrite) is None:
                # As malformed as the text: reading it would ask for its own nearest, and so on for ever.
                continue
            parse_instant(rewrite, zone="UTC", gap="later", fold="first", now_ns=now_ns)
        except Refusal:
            continue
        return rewrite
    try:
        parse_duration(text)
    except Refusal:
        return None
    return f"--in {text}, which is a duration"
