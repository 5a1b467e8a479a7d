"""What every view of the state has to answer, whichever adapter: rows, memory, a tail over rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.message import TERMINAL, Message, State
from nereus_cli.domain.records import Cancel
from nereus_cli.ports import Batch, Selection, Views
from tests.conformance.facts.views import ADAPTERS, adapters
from tests.domain.story import NOW, Story, schedule
from tests.fold.scripts import NAMES, stories

cuts = st.integers(0, 80)
instants = st.sampled_from([NOW - SECOND, NOW, NOW + SECOND, NOW + 3 * SECOND, NOW + 60 * SECOND, NOW * 2])
selections = st.builds(
    Selection,
    states=st.lists(st.sampled_from(State), max_size=4).map(tuple),
    tags=st.lists(st.sampled_from([("t", "0"), ("t", "1"), ("u", "0")]), max_size=2).map(tuple),
    lane=st.sampled_from([None, "shell", "other"]),
    key=st.sampled_from([None, "k", "l"]),
    due_before=st.none() | instants,
    after=st.none() | st.tuples(instants, st.sampled_from(NAMES)),
    limit=st.none() | st.integers(0, 3),
)


def everywhere(story: Story, cut: int, check: Callable[[Views, Batch], None]) -> None:
    with adapters(story.records, cut) as found:
        assert tuple(found) == ADAPTERS
        for name, views in found.items():
            try:
                check(views, story.fold.batch)
            except AssertionError as error:
                error.add_note(f"adapter: {name}")
                raise


def place(message: Message) -> tuple[int, str]:
    return message.deliver_at, message.message_id


def chosen(message: Message, wanted: Selection) -> bool:
    """The selection in its plainest words."""
    if wanted.states and message.state not in wanted.states:
        return False
    if not wanted.states and message.state in TERMINAL:
        return False
    if any(tag not in message.tags for tag in wanted.tags):
        return False
    if wanted.lane is not None and message.lane != wanted.lane:
        return False
    if wanted.key is not None and message.key != wanted.key:
        return False
    if wanted.due_before is not None and message.deliver_at >= wanted.due_before:
        return False
    return wanted.after is None or place(message) > wanted.after


@settings(max_examples=15)
@given(story=stories, cut=cuts)
def test_facts_are_those_of_the_log(story: Story, cut: int) -> None:
    def check(views: Views, batch: Batch) -> None:
        assert views.head() == batch.head
        asked = [*batch.messages, "unknown"]
        assert views.messages(asked) == batch.messages
        assert views.results([*batch.results, "unknown"]) == batch.results
        assert (views.messages([]), views.results([])) == ({}, {})

    everywhere(story, cut, check)


@settings(max_examples=15)
@given(story=stories, cut=cuts)
def test_attempts_history_and_descriptors(story: Story, cut: int) -> None:
    def check(views: Views, batch: Batch) -> None:
        for name in (*NAMES, "unknown"):
            attempts = {number: a for (owner, number), a in batch.attempts.items() if owner == name}
            assert list(views.attempts_of(name)) == [attempts[number] for number in sorted(attempts)]
            lines = sorted((x for x in batch.history if x.message_id == name), key=lambda x: x.position)
            assert list(views.history_of(name)) == lines
        for position in range(len(story.records) + 2):
            assert views.descriptor(position) == batch.descriptors.get(position)

    everywhere(story, cut, check)


@settings(max_examples=25)
@given(story=stories, cut=cuts, wanted=st.lists(selections, min_size=1, max_size=5))
def test_every_selection(story: Story, cut: int, wanted: list[Selection]) -> None:
    def check(views: Views, batch: Batch) -> None:
        for selection in wanted:
            matching = sorted((m for m in batch.messages.values() if chosen(m, selection)), key=place)
            assert list(views.select(selection)) == matching[: selection.limit]

    everywhere(story, cut, check)


@settings(max_examples=15)
@given(story=stories, cut=cuts, size=st.integers(1, 2))
def test_pages_are_the_whole_cut_in_pieces(story: Story, cut: int, size: int) -> None:
    def check(views: Views, batch: Batch) -> None:
        pages: list[Message] = []
        for _ in range(len(batch.messages) + 1):
            after = place(pages[-1]) if pages else None
            pages += views.select(Selection(states=tuple(State), after=after, limit=size))
        assert pages == sorted(batch.messages.values(), key=place)

    everywhere(story, cut, check)


@settings(max_examples=15)
@given(story=stories, cut=cuts, through=instants, limit=st.integers(0, 4))
def test_counts_what_is_due_and_what_is_open(story: Story, cut: int, through: int, limit: int) -> None:
    def check(views: Views, batch: Batch) -> None:
        messages = batch.messages.values()
        assert views.counts() == Counter(message.state for message in messages)
        timers = sorted((m.timer, m.message_id) for m in messages if m.timer is not None and m.timer <= through)
        assert list(views.due(through, limit)) == timers[:limit]
        waiting = sorted((m for m in messages if m.open_attempts), key=lambda m: m.message_id)
        assert list(views.open_messages()) == waiting

    everywhere(story, cut, check)


@pytest.mark.parametrize("count", [499, 500, 501, 1_001])
def test_any_number_of_ids_can_be_asked_for_at_once(count: int) -> None:
    story = Story()
    story.say(schedule("a"))
    with adapters(story.records, 0) as found:
        for views in found.values():
            asked = [f"x{number}" for number in range(count - 1)] + ["a"]
            assert set(views.messages(asked)) == {"a"}


def test_what_the_tail_has_settled_does_not_hide_what_is_due_below_it() -> None:
    story = Story()
    for name in "abc":
        story.say(schedule(name))
    for name in "ab":
        story.say(Cancel(name))
    with adapters(story.records, 3) as found:
        for views in found.values():
            assert [name for _, name in views.due(NOW + 60 * SECOND, 1)] == ["c"]
            assert [message.message_id for message in views.select(Selection(limit=1))] == ["c"]
