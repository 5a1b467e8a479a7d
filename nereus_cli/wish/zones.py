"""What a zone's clock on the wall shows at an instant, and which instants a reading of that clock can mean.

Named zones come from the zone database that `zoneinfo` finds (`PYTHONTZPATH`, the system's, the `tzdata` package). The
host's own zone is never asked for: `localtime` and the like are no names here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from nereus_cli.wish.civil import civil_at
from nereus_cli.wish.refusal import Refusal, quoted

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

_NAME_MAX: Final = 100
_ALPHA: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._")
_NAME_CHARACTERS: Final = _ALPHA | frozenset("0123456789+-")
_HOST_NAMES: Final = frozenset({"localtime", "posixrules", "Factory"})
_VARIANTS: Final = frozenset({"posix", "right"})
_VERSION_MARK: Final = "# version "
_OFFSET_LENGTH: Final = len("+00:00")
_HOURS: Final = 24
_MINUTES: Final = 60

# Zone rules repeat every 400 years. Readings at the ends of what `datetime` can hold are looked up one cycle inwards.
_CYCLE_S: Final = 146_097 * 86_400
_SECOND_YEAR_S: Final = -62_104_060_800
_LAST_YEAR_S: Final = 253_370_764_800


class Zone(NamedTuple):
    """A clock on a wall: UTC or a fixed offset (`rules` is None), or a named zone with the version of its data."""

    name: str
    fixed_s: int
    rules: ZoneInfo | None
    data_version: str | None


class Reading(NamedTuple):
    """The instants, in seconds since the epoch, that a reading of a wall clock can mean: the same twice when PLAIN.

    In a GAP neither instant shows that reading: they are what it would mean by the offset after and before the change.
    """

    kind: Literal["PLAIN", "GAP", "FOLD"]
    earlier_s: int
    later_s: int


UTC: Final = Zone("UTC", 0, None, None)

_loaded: Final[dict[str, Zone]] = {}


def find_zone(name: str) -> Zone:
    """Return the zone called `name`: `UTC`, `Z`, `+02:00`, or a name of the zone database such as `Europe/Berlin`.

    A named zone and its data version are read once per process, together, so that they always belong to each other.
    Raises Refusal UNKNOWN_ZONE, with similar names.
    """
    if name in {"UTC", "Z"}:
        return UTC
    if name[:1] in {"+", "-"}:
        return Zone(name, offset_seconds(name), None, None)
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = _load(name)
    return found


def offset_seconds(text: str) -> int:
    """Return the seconds that an offset such as `+02:00` or `-03:30` lies ahead of UTC; raises Refusal UNKNOWN_ZONE."""
    hours, minutes = text[1:3], text[4:]
    digits = hours + minutes
    if len(text) == _OFFSET_LENGTH and text[3] == ":" and digits.isascii() and digits.isdecimal() and text != "-00:00":
        seconds = int(hours) * 3600 + int(minutes) * 60
        if int(hours) < _HOURS and int(minutes) < _MINUTES:
            return -seconds if text[0] == "-" else seconds
    raise Refusal("UNKNOWN_ZONE", f"{quoted(text)} is no offset from UTC: write it as +02:00 or -03:30, or say UTC")


def offset_at(zone: Zone, second: int) -> int:
    """Return how many seconds the zone's clock is ahead of UTC at `second` since the epoch."""
    if zone.rules is None:
        return zone.fixed_s
    moment = _moment(second)
    return wall_second_of(zone.rules.fromutc(moment.replace(tzinfo=zone.rules))) - wall_second_of(moment)


def read_wall(zone: Zone, wall_s: int) -> Reading:
    """Return which instants the wall second `wall_s` can mean in `zone`."""
    if zone.rules is None:
        return Reading("PLAIN", wall_s - zone.fixed_s, wall_s - zone.fixed_s)
    moment = _moment(wall_s).replace(tzinfo=zone.rules)
    offsets = [zone.rules.utcoffset(moment.replace(fold=fold)) for fold in (0, 1)]
    instants = sorted(wall_s - int(offset.total_seconds()) for offset in offsets if offset is not None)
    showing = [second for second in instants if second + offset_at(zone, second) == wall_s]
    if not showing:
        return Reading("GAP", instants[0], instants[-1])
    if showing[0] == showing[-1]:
        return Reading("PLAIN", showing[0], showing[0])
    return Reading("FOLD", showing[0], showing[-1])


def wall_second_of(moment: datetime) -> int:
    """Return the wall second of a `datetime`, whatever its zone."""
    days = moment.toordinal() - 719_163
    return days * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second


def _moment(second: int) -> datetime:
    from datetime import datetime

    if second < _SECOND_YEAR_S:
        second = _SECOND_YEAR_S + (second - _SECOND_YEAR_S) % _CYCLE_S
    elif second >= _LAST_YEAR_S:
        second = _LAST_YEAR_S - _CYCLE_S + (second - _LAST_YEAR_S) % _CYCLE_S
    return datetime(*civil_at(second))  # noqa: DTZ001 - the callers say what clock this is a reading of


def _load(name: str) -> Zone:
    from zoneinfo import ZoneInfo

    if not _is_zone_name(name):
        raise _unknown(name)
    try:
        rules = ZoneInfo.no_cache(name)
    # What a damaged zone file raises depends on where its parser stumbles; every kind means that the zone is not known.
    except Exception as error:
        raise _unknown(name) from error
    return Zone(name, 0, rules, _data_version(name))


def _is_zone_name(name: str) -> bool:
    """Say whether `name` could be one: the parts of RFC 9557, none of them a way out of the zone database."""
    parts = name.split("/")
    return (
        len(name) <= _NAME_MAX
        and name not in _HOST_NAMES
        and parts[0] not in _VARIANTS
        and not {".", ".."}.intersection(parts)
        and all(part[:1] in _ALPHA and _NAME_CHARACTERS.issuperset(part) for part in parts)
    )


def _data_version(name: str) -> str:
    """Return the release that the file of this zone belongs to, such as `2025b`, or `unknown`."""
    from zoneinfo import TZPATH

    for root in TZPATH:
        if _first_line(f"{root}/{name}") is not None:
            listed = _first_line(f"{root}/tzdata.zi") or ""
            if listed.startswith(_VERSION_MARK):
                return listed[len(_VERSION_MARK) :].strip()
            return (_first_line(f"{root}/+VERSION") or "unknown").strip()
    from importlib import import_module

    try:
        return str(import_module("tzdata").IANA_VERSION)
    except (ImportError, AttributeError):
        return "unknown"


def _first_line(path: str) -> str | None:
    try:
        with open(path, encoding="latin-1") as file:
            return file.readline(80)
    except OSError:
        return None


def _unknown(name: str) -> Refusal:
    near = _similar(name)
    hint = f"; the nearest are {', '.join(near)}" if near else "; write it as Europe/Berlin, UTC or +02:00"
    return Refusal("UNKNOWN_ZONE", f"{quoted(name)} is not a zone in the zone data of this machine{hint}")


def _similar(name: str) -> list[str]:
    """Return up to three existing names: the same but for case, then the same city, then the same but for a slip."""
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    known = {zone.lower(): zone for zone in sorted(available_timezones()) if zone not in _HOST_NAMES}
    wanted = name[:_NAME_MAX].lower().replace(" ", "_").removeprefix("posix/").removeprefix("right/")
    if wanted in known:
        return [known[wanted]]
    cities = [zone for lower, zone in known.items() if lower.endswith(f"/{wanted}")]
    return cities[:3] or [known[lower] for lower in get_close_matches(wanted, known, n=3, cutoff=0.7)]
