"""What a reading of the clock proves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.domain.instant import Reading

near = st.integers(-5, 5)


@given(near, st.integers(0, 3), near)
def test_what_is_sure_holds_at_every_instant_the_reading_allows(earliest: int, width: int, instant: int) -> None:
    reading = Reading(earliest, earliest + width, 0, b"")
    possible = range(earliest, earliest + width + 1)
    assert reading.surely_reached(instant) is all(now >= instant for now in possible)
    assert reading.surely_before(instant) is all(now < instant for now in possible)
