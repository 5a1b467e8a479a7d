"""The clock: what counts as a step, how long it gates, and what a slew may do."""

from __future__ import annotations

import pytest

from nereus_cli.clock import STEADY_NS, STEP_NS, HostClock, Moment, StepWatch, read_boot_id
from nereus_cli.domain.instant import SECOND, Reading

BOOT, OTHER = b"b" * 16, b"o" * 16
START = 1_000_000 * SECOND


def reading(wall: int, monotonic: int, boot: bytes = BOOT) -> Reading:
    return Reading(wall, wall, monotonic, boot)


@pytest.mark.parametrize(
    ("moved", "stepped"),
    [
        (0, False),
        (STEP_NS - 1, False),
        (-STEP_NS + 1, False),
        (STEP_NS + SECOND // 100, True),
        (-STEP_NS - SECOND // 100, True),
        (-3_600 * SECOND, True),
        (10 * 365 * 86_400 * SECOND, True),
    ],
)
def test_a_step_is_more_than_half_a_second_either_way(moved: int, *, stepped: bool) -> None:
    watch = StepWatch(Moment(START, 0, BOOT))
    step = watch.look(reading(START + SECOND + moved, SECOND))
    assert (step is not None) is stepped
    if step is not None:
        assert step.after - step.before == moved


def test_suspend_is_no_step_because_both_clocks_count_it() -> None:
    watch = StepWatch(Moment(START, 0, BOOT))
    nine_hours = 9 * 3_600 * SECOND
    assert watch.look(reading(START + nine_hours, nine_hours)) is None


def test_a_slew_over_weeks_is_no_step() -> None:
    watch = StepWatch(Moment(START, 0, BOOT))
    month = 30 * 86_400 * SECOND
    assert watch.look(reading(START + month + 100 * SECOND, month)) is None


def test_another_boot_cannot_be_compared() -> None:
    watch = StepWatch(Moment(START, 50 * SECOND, OTHER))
    assert watch.look(reading(START - 3_600 * SECOND, SECOND)) is None
    assert watch.look(reading(START, 2 * SECOND)) is not None


def test_without_a_past_nothing_is_a_step() -> None:
    assert StepWatch(None).look(reading(START, 0)) is None


def test_a_step_gates_until_a_second_of_steadiness() -> None:
    watch = StepWatch(Moment(START, 0, BOOT))
    assert watch.gated_for(reading(START, 0)) == 0
    watch.look(reading(START - 60 * SECOND, SECOND))
    assert watch.gated_for(reading(START - 60 * SECOND, SECOND)) == STEADY_NS
    assert watch.gated_for(reading(START - 59 * SECOND, SECOND + STEADY_NS // 2)) == STEADY_NS // 2
    # A second step within that time begins it anew.
    watch.look(reading(START, SECOND + STEADY_NS // 2))
    assert watch.gated_for(reading(START, SECOND + STEADY_NS // 2)) == STEADY_NS
    assert watch.gated_for(reading(START, 2 * SECOND + STEADY_NS // 2)) == 0
    assert watch.gated_for(reading(START, 0)) == 0


def test_the_host_clock_reads_an_interval_without_width() -> None:
    clock = HostClock()
    first = clock.read()
    clock.sleep(0)
    second = clock.read()
    assert first.earliest == first.latest
    assert first.monotonic_ns <= second.monotonic_ns
    assert first.boot_id == second.boot_id == read_boot_id()
    assert len(first.boot_id) == 16
