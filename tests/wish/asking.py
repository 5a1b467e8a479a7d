"""Short ways to ask `wish` and to look at what it answered, for the tests beside this file."""

from zoneinfo import available_timezones

import pytest

from nereus_cli.wish.instant import Resolved, parse_instant
from nereus_cli.wish.refusal import Refusal

NS = 1_000_000_000
NOW_NS = 1_796_133_600 * NS
"""2026-12-01T14:00:00Z: the present of these tests."""

needs_zone_data = pytest.mark.skipif(not available_timezones(), reason="this machine has no zone data")


def ask(text: str, zone: str | None = None, gap: str | None = None, fold: str | None = None) -> Resolved:
    return parse_instant(text, zone=zone, gap=gap, fold=fold, now_ns=NOW_NS)


def refused(text: str, zone: str | None = None, gap: str | None = None, fold: str | None = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        ask(text, zone, gap, fold)
    check_line(caught.value)
    return caught.value


def check_line(refusal: Refusal) -> None:
    """One line that any terminal can show."""
    assert refusal.message.isascii()
    assert refusal.message.isprintable()
    assert 0 < len(refusal.message) < 400
    assert str(refusal) == refusal.message
