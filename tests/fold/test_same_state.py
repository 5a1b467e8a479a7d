"""The same log prefix gives the same state, whatever the batching, the commits, the reopenings (I4); repeats change
nothing (I5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nereus_cli.domain.limits import TINY
from nereus_cli.fold import Fold, batches
from nereus_cli.projection.overlay import Overlay
from nereus_cli.projection.sqlite import SqliteProjection
from tests.domain.story import Story
from tests.fold.scripts import GARBAGE, stories
from tests.fold.ways import committed, in_memory

cuts = st.lists(st.integers(0, 80), max_size=5)


@contextmanager
def somewhere() -> Iterator[Path]:
    """A path for one example."""
    with TemporaryDirectory() as place:
        yield Path(place) / "state.db"


def digest_of(story: Story) -> str:
    return Overlay(None, story.fold.batch).digest()


@given(stories)
def test_the_size_of_the_batches_does_not_matter(story: Story) -> None:
    for size in (1, 2, 7, max(len(story.records), 1)):
        assert in_memory(story.records, size)[0].digest() == digest_of(story)


@settings(max_examples=40)
@given(story=stories, cuts=cuts, reopen=st.booleans())
def test_when_it_is_committed_or_reopened_does_not_matter(story: Story, cuts: list[int], reopen: bool) -> None:
    with somewhere() as path:
        projection = committed(path, story.records, cuts, reopen=reopen)
        try:
            assert projection.head() == story.head
            assert projection.digest() == digest_of(story)
        finally:
            projection.close()


@settings(max_examples=40)
@given(story=stories, cut=st.integers(0, 80), size=st.integers(1, 7))
def test_a_tail_over_rows_gives_what_the_rows_would_have_held(story: Story, cut: int, size: int) -> None:
    """What a reader folds over a lagging projection, once committed, is the state of the whole log."""
    with somewhere() as path:
        projection = committed(path, story.records[:cut], [])
        try:
            fold = Fold(projection, TINY)
            for batch in batches(iter(story.records[cut:]), size):
                fold.apply(batch)
            projection.commit(fold.settle())
            assert projection.digest() == digest_of(story)
        finally:
            projection.close()


@given(stories)
def test_what_each_record_did_is_the_same_too(story: Story) -> None:
    one, two = (in_memory(story.records, size)[1] for size in (1, 5))
    assert one == two


@given(stories, st.integers(0, 80))
def test_repeats_change_nothing_but_the_position(story: Story, later: int) -> None:
    batch = story.fold.batch
    before = msgspec.structs.replace(story.head, applied=0), [
        dict(rows) for rows in (batch.messages, batch.results, batch.attempts, batch.descriptors)
    ], list(batch.history)  # fmt: skip
    story.now += later
    for record in [record for record in story.records if record.link is None and record.payload != GARBAGE]:
        story.tell(record.payload)
    assert before == (
        msgspec.structs.replace(story.head, applied=0),
        [batch.messages, batch.results, batch.attempts, batch.descriptors],
        batch.history,
    )


def test_a_digest_is_taken_of_the_whole_state_only(tmp_path: Path) -> None:
    projection = SqliteProjection(tmp_path / "state.db", b"x", write=True)
    try:
        with pytest.raises(ValueError, match="whole state"):
            Overlay(projection, Fold(projection, TINY).batch).digest()
    finally:
        projection.close()
