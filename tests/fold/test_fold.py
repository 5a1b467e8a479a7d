"""The fold itself: batches, what it hands over, what it asks its source for."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.domain.facts import Head, Result
from nereus_cli.domain.limits import TINY
from nereus_cli.domain.message import Message
from nereus_cli.domain.records import Cancel, Floor, Retire
from nereus_cli.fold import Fold, Nothing, batches, empty_batch, named_message
from tests.domain.story import Story, command, schedule, told

RECORDS = told().records


@given(st.integers(0, 20), st.integers(1, 8))
def test_batches_are_runs_of_at_most_the_size_and_lose_nothing(length: int, size: int) -> None:
    records = [RECORDS[0]] * length
    runs = list(batches(iter(records), size))
    assert [record for run in runs for record in run] == records
    assert all(len(run) == size for run in runs[:-1])
    assert all(0 < len(run) <= size for run in runs)


def test_settling_hands_over_what_changed_and_starts_anew_on_top() -> None:
    story = told()
    batch = story.fold.settle()
    assert (set(batch.messages), set(batch.results), batch.head.applied) == ({"m"}, {"schedule"}, 2)
    assert story.fold.batch == empty_batch(batch.head)
    assert story.fold.head == batch.head


class Recording(Nothing):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, frozenset[str]]] = []

    def results(self, command_ids: Collection[str]) -> Mapping[str, Result]:
        self.asked.append(("results", frozenset(command_ids)))
        return {}

    def messages(self, message_ids: Collection[str]) -> Mapping[str, Message]:
        self.asked.append(("messages", frozenset(message_ids)))
        return {}


def test_facts_are_fetched_once_per_batch_and_never_for_what_the_batch_has_changed_itself() -> None:
    story = Story()
    for name in "ab":
        story.say(schedule(name), f"s-{name}")
    story.say(Cancel("a"), "c-a")
    source = Recording()
    fold = Fold(source, TINY)
    fold.apply(story.records)
    assert source.asked == [("messages", frozenset("ab")), ("results", frozenset({"s-a", "s-b", "c-a"}))]
    source.asked.clear()
    fold.apply(story.records[:1])
    assert source.asked == []


def test_a_fold_from_the_beginning_knows_nothing() -> None:
    assert Nothing().head() == Head()
    assert (Nothing().messages(["a"]), Nothing().results(["a"])) == ({}, {})


@pytest.mark.parametrize(
    ("record", "name"),
    [(command(Cancel("m"), "c"), "m"), (Floor(1), ""), (Retire(("m",)), ""), (None, "")],
    ids=["command", "floor", "retire", "nothing"],
)
def test_the_message_a_record_names(record: object, name: str) -> None:
    assert named_message(record) == name  # type: ignore[arg-type] # every member of the union
