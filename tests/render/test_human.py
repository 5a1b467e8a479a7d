"""Lines for people."""

from __future__ import annotations

import time

import pytest

from nereus_cli.render.human import both_clocks, here
from nereus_cli.render.table import _aligned

NOON = 1_796_126_400_000_000_000


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_an_instant_is_shown_in_utc_and_on_the_readers_clock() -> None:
    assert both_clocks(NOON) == "2026-12-01T12:00:00.000Z (Tue 2026-12-01 13:00:00 +01:00 CET)"
    assert both_clocks(NOON, "Asia/Tokyo") == ("2026-12-01T12:00:00.000Z (Tue 2026-12-01 21:00:00 +09:00 Asia/Tokyo)")
    assert here(253_402_300_799 * 1_000_000_000).startswith("Sat 10000-01-01")


def test_no_cell_of_a_table_is_cut() -> None:
    rows: list[tuple[str, ...]] = [(letter * 128, "SCHEDULED", "due", "local", "x" * 3_000) for letter in "abc"]
    shown = _aligned(rows, heading=True)
    for row in rows:
        for cell in row:
            assert cell in shown
    assert len(shown.splitlines()) == 4
