"""The one owner chain (I11), and records that cannot be trusted (I13)."""

from __future__ import annotations

import pytest

from nereus_cli.codec import NewerRecordError, encode_command
from nereus_cli.domain.facts import OwnerFact, Verdict
from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.message import State
from nereus_cli.domain.records import Catalog, ClockStep, Floor, TimeFence
from nereus_cli.ports import Link
from tests.domain.story import BOOT, NOW, Story, command, schedule, told


def test_the_first_owner_begins_the_chain() -> None:
    story = Story()
    story.say(schedule())
    assert story.own() is Verdict.TAKEN
    assert (story.head.epoch, story.head.owner_position) == (1, 2)
    assert story.head.owner == OwnerFact(2, 1, NOW, "host", 7, 11, BOOT)


@pytest.mark.parametrize(("epoch", "prev"), [(0, 0), (2, 0), (1, 1), (1, -1)])
def test_an_owner_that_does_not_continue_the_chain_is_void(epoch: int, prev: int) -> None:
    story = Story()
    assert story.own(epoch=epoch, prev=prev) is Verdict.VOID
    assert (story.head.epoch, story.head.owner_position, story.head.applied) == (0, 0, 1)


@pytest.mark.parametrize(("epoch", "prev"), [(0, 1), (2, 1), (1, 0), (1, 2), (1, 3)])
def test_an_owner_record_that_does_not_continue_the_chain_is_void(epoch: int, prev: int) -> None:
    story = told()
    admission = story.admission()
    story.now = admission.earliest
    assert story.do(admission, epoch=epoch, prev=prev) is Verdict.VOID
    assert (story.message().state, story.head.owner_position) == (State.SCHEDULED, 1)
    assert story.do(admission) is Verdict.ADMITTED


def test_a_deposed_owner_has_no_effect_from_the_position_of_its_successor_on() -> None:
    story = told()
    admission = story.admission()
    deposed = story.head
    story.own()
    assert story.do(admission, epoch=deposed.epoch, prev=deposed.owner_position) is Verdict.VOID
    assert story.do(admission, epoch=deposed.epoch, prev=story.head.owner_position) is Verdict.VOID
    assert story.do(admission) is Verdict.ADMITTED


def test_a_stale_record_still_links() -> None:
    story = told()
    early = story.admission(earliest=NOW, latest=NOW)
    assert story.do(early) is Verdict.STALE
    assert story.head.owner_position == 3
    assert story.do(story.admission(), prev=1) is Verdict.VOID
    assert story.do(story.admission(), prev=3) is Verdict.ADMITTED


@pytest.mark.parametrize("record", [Catalog("x", 1, b""), Floor(1)], ids=lambda r: type(r).__name__)
def test_records_without_a_behaviour_yet_are_taken_and_link(record: Catalog | Floor) -> None:
    story = told()
    before = story.message()
    assert story.do(record) is Verdict.TAKEN
    assert (story.head.owner_position, story.message()) == (3, before)


def test_a_clock_step_is_remembered() -> None:
    story = told()
    story.do(ClockStep(5, 50))
    story.do(ClockStep(60, 6))
    assert (story.head.clock_steps, story.head.clock_step) == (2, (4, 60, 6))


def test_what_cannot_be_decoded_is_counted_and_stepped_over() -> None:
    story = told()
    owned = story.head
    story.tell(b"\xc1")
    story.tell(b"\xc1", Link(1, 1, 99))
    story.tell(b"\xc1")
    assert (story.head.quarantined, story.head.quarantined_first, story.head.applied) == (3, 3, 5)
    assert (story.head.epoch, story.head.owner_position) == (owned.epoch, owned.owner_position)
    assert story.do(story.admission()) is Verdict.ADMITTED


def test_what_a_newer_version_wrote_stops_the_fold_before_anything_changes() -> None:
    story = told()
    good = story.tell(encode_command(command(schedule("n"), "n"))).position
    records = [story.records[-1], story.records[-1]]
    before = story.head
    newer = encode_command(command(schedule("o"), "o")).replace(b"\xa1v\x01", b"\xa1v\x02")
    records[1] = type(records[1])(good + 1, records[1].kind, NOW + SECOND, BOOT, 0, None, newer)
    with pytest.raises(NewerRecordError):
        story.fold.apply(records)
    assert story.head == before


def test_a_fence_only_ever_moves_on() -> None:
    story = told()
    for through, fence in ((5, 5), (3, 5), (9, 9)):
        story.do(TimeFence(through))
        assert story.head.fence == fence
