"""What is fuzzed: a decoder, the valid inputs it starts from, and what must be true of whatever it answers."""

from __future__ import annotations

import contextlib
import os
import zoneinfo
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from nereus_cli.wish.refusal import Refusal
from nereus_cli.wish.zones import find_zone
from tests.fuzz.mutator import Seal

_ZONES: Final = tuple(os.path.normpath(root) + "/" for root in zoneinfo.TZPATH)
May = Callable[[str, tuple[object, ...]], bool]


def zone_data(event: str, args: tuple[object, ...]) -> bool:
    """Zone data is read, from nowhere else than where zone data is."""
    if event == "import":
        return str(args[0]).startswith("tzdata")
    return event == "open" and os.path.normpath(str(args[0])).startswith(_ZONES)


def warm_zones() -> None:
    """Loads what reads zone data, and what looks for a zone that there is not."""
    for name in ("Europe/Berlin", "Nowhere/AtAll"):
        with contextlib.suppress(Refusal):
            find_zone(name)


def _nothing(_event: str, _args: tuple[object, ...]) -> bool:
    return False


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """``run`` decodes an input and returns what is not as promised, or the empty string; what it raises is a
    violation, except ``allowed``. ``share`` weighs it against the others of its group; ``may`` tells of
    an audit event (of those that decoders have no business with) whether this one is meant."""

    name: str
    samples: Sequence[bytes]
    tokens: Sequence[bytes]
    run: Callable[[bytes], str]
    allowed: tuple[type[BaseException], ...] = ()
    seal: Seal | None = None
    share: int = 1
    may: May = _nothing


class Seen(msgspec.Struct, kw_only=True):
    """What one child saw. ``taken`` counts inputs that were decoded to a value, ``peak`` is the most memory that one
    input took (bytes, of those that were traced), ``growth`` how far the process grew."""

    executions: int = 0
    taken: int = 0
    violations: int = 0
    findings: list[str] = []
    peak: int = 0
    growth: int = 0
    events: dict[str, int] = {}
