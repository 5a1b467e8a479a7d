"""The window over the timers: nothing due is lost, nothing comes early, and it stays small."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.message import Canceled, Message
from nereus_cli.engine.timeline import Timeline
from tests.domain.story import NOW, told

PLAIN = told().message()
AHEAD = 600 * SECOND


def waiting(name: str, timer: int) -> Message:
    return msgspec.structs.replace(PLAIN, message_id=name, deliver_at=timer)


class Stored:
    """The timers of the projection, as a dictionary; and how often they were asked for."""

    def __init__(self, timers: dict[str, int] | None = None) -> None:
        self.timers = timers or {}
        self.asked = 0

    def due(self, through: int, limit: int) -> Sequence[tuple[int, str]]:
        self.asked += 1
        return sorted((timer, name) for name, timer in self.timers.items() if timer <= through)[:limit]


def take(timeline: Timeline, stored: Stored, now: int, count: int = 9) -> list[str]:
    timeline.refill(now, stored)
    return timeline.take(now, count)


def test_what_is_stored_comes_in_the_order_of_its_timers() -> None:
    stored = Stored({"c": NOW, "a": NOW - 1, "b": NOW, "later": NOW + 1})
    timeline = Timeline(10)
    assert take(timeline, stored, NOW, count=2) == ["a", "b"]
    assert take(timeline, stored, NOW) == ["c"]
    assert take(timeline, stored, NOW) == []
    assert timeline.next_timer() == NOW + 1
    assert stored.asked == 1


def test_the_window_is_loaded_again_when_it_is_used_up_and_when_time_reaches_its_end() -> None:
    stored = Stored({name: NOW + n for n, name in enumerate("abcde")})
    timeline = Timeline(2)
    taken = [name for _ in range(3) for name in take(timeline, stored, NOW + 9) if stored.timers.pop(name)]
    assert (taken, stored.asked) == (["a", "b", "c", "d", "e"], 3)
    stored.timers["f"] = NOW + 2 * AHEAD
    assert take(timeline, stored, NOW + AHEAD + 8) == []
    assert take(timeline, stored, NOW + 2 * AHEAD) == ["f"]


def test_ties_at_the_edge_of_the_window_are_not_lost() -> None:
    stored = Stored(dict.fromkeys("abcdefg", NOW))
    timeline = Timeline(3)
    seen = []
    for _ in range(4):
        for name in take(timeline, stored, NOW):
            seen.append(name)
            del stored.timers[name]
    assert seen == list("abcdefg")


def test_what_changes_inside_the_window_is_learnt_and_beyond_it_left_to_the_rows() -> None:
    stored = Stored({"a": NOW + 10})
    timeline = Timeline(10)
    timeline.learn(waiting("before it was ever loaded", NOW))
    assert take(timeline, stored, NOW) == []
    timeline.learn(waiting("b", NOW + 5))
    timeline.learn(waiting("far", NOW + 2 * AHEAD))
    timeline.learn(msgspec.structs.replace(PLAIN, condition=Canceled()))
    assert timeline.next_timer() == NOW + 5
    assert take(timeline, stored, NOW + 2 * AHEAD) == ["b", "a"]


def test_an_id_is_taken_once_at_a_time_however_often_it_was_learnt() -> None:
    timeline = Timeline(10)
    take(timeline, Stored(), NOW)
    for timer in (NOW, NOW + 1, NOW + 1):
        timeline.learn(waiting("a", timer))
    assert timeline.take(NOW + 1, 9) == ["a"]


def test_what_found_no_room_is_there_again() -> None:
    stored = Stored({"a": NOW, "b": NOW})
    timeline = Timeline(10)
    assert take(timeline, stored, NOW) == ["a", "b"]
    timeline.put_back(waiting("b", NOW))
    assert take(timeline, stored, NOW) == ["b"]


def test_an_entry_put_back_from_beyond_the_window_does_not_keep_the_rest_from_being_loaded() -> None:
    stored = Stored(dict.fromkeys("abc", NOW) | {"d": NOW + 1})
    timeline = Timeline(3)
    for name in take(timeline, stored, NOW):
        stored.timers[name] = NOW + AHEAD
        timeline.put_back(waiting(name, NOW + AHEAD))
    assert take(timeline, stored, NOW + 1) == ["d"]


def test_an_empty_window_wakes_at_its_end() -> None:
    timeline = Timeline(3)
    assert timeline.next_timer() == 0
    assert take(timeline, Stored(), NOW) == []
    assert timeline.next_timer() == NOW + AHEAD


@given(st.lists(st.integers(0, 100), min_size=1, max_size=60), st.integers(1, 4))
def test_memory_is_bounded_by_the_window(timers: list[int], limit: int) -> None:
    """I16."""
    stored, timeline = Stored(), Timeline(limit)
    timeline.refill(NOW, stored)
    for number, timer in enumerate(timers):
        name = f"m{number}"
        stored.timers[name] = NOW + timer
        timeline.learn(waiting(name, NOW + timer))
        assert len(timeline._heap) <= 2 * limit
    seen = []
    while names := take(timeline, stored, NOW + 100, count=2):
        seen += [name for name in names if stored.timers.pop(name, None) is not None]
    assert sorted(seen) == sorted(f"m{number}" for number in range(len(timers)))


moves = st.one_of(
    st.tuples(st.just("set"), st.integers(0, 7), st.integers(-3, 2_000)),
    st.tuples(st.just("clear"), st.integers(0, 7), st.just(0)),
    st.tuples(st.just("go"), st.integers(-700, 700), st.integers(1, 3)),
)


@given(st.lists(moves, max_size=30), st.integers(1, 4), st.integers(0, 1 << 30))
def test_nothing_due_is_ever_lost_whatever_changes_and_however_the_clock_runs(
    script: list[tuple[str, int, int]], limit: int, luck: int
) -> None:
    stored, timeline, now = Stored(), Timeline(limit), NOW
    for step, (move, first, second) in enumerate(script):
        if move == "go":
            now += first * SECOND
            _drain(timeline, stored, now, second, again=luck >> step & 1)
            timeline.refill(now, stored)
            assert timeline.next_timer() <= min(stored.timers.values(), default=1 << 62)
        elif move == "set":
            stored.timers[f"m{first}"] = now + second * SECOND
            timeline.learn(waiting(f"m{first}", now + second * SECOND))
        else:
            stored.timers.pop(f"m{first}", None)
    _drain(timeline, stored, now + 5_000 * SECOND, 3, again=0)
    assert stored.timers == {}


def _drain(timeline: Timeline, stored: Stored, now: int, count: int, *, again: int) -> None:
    """Takes until nothing is left; the first that is due is put back once. Afterwards nothing due is stored."""
    while names := take(timeline, stored, now, count):
        for name in names:
            timer = stored.timers.get(name, 1 << 62)
            if timer > now:
                continue
            if again:
                again = 0
                timeline.put_back(waiting(name, timer))
            else:
                del stored.timers[name]
    assert [name for name, timer in stored.timers.items() if timer <= now] == []


def test_a_window_that_was_narrowed_forgets_nothing_behind_its_new_edge() -> None:
    stored, timeline = Stored(), Timeline(2)
    timeline.refill(NOW, stored)
    for timer in (1, 2, 3, 4, 5, 90):
        stored.timers[f"m{timer}"] = NOW + timer
        timeline.learn(waiting(f"m{timer}", NOW + timer))
    for now, wanted in ((2, ["m1", "m2"]), (3, ["m3"]), (5, ["m4", "m5"])):
        taken = [name for _ in range(3) for name in take(timeline, stored, NOW + now) if stored.timers.pop(name)]
        assert taken == wanted
        timeline.refill(NOW + now, stored)
        assert timeline.next_timer() <= min(stored.timers.values())
