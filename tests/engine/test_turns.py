"""Turn by turn: claims, what may start, what has to be written; and that no path starts anything else (I2, I3)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.domain.facts import Verdict
from nereus_cli.domain.instant import MILLISECOND, SECOND, Reading
from nereus_cli.domain.limits import TINY
from nereus_cli.domain.message import State
from nereus_cli.domain.outcome import Code, Disposition
from nereus_cli.domain.records import (
    Admission,
    Cancel,
    Expire,
    Expiry,
    Hold,
    In,
    LateHold,
    Mutation,
    Now,
    Outcome,
    Release,
    Stop,
)
from nereus_cli.fold import Applied
from nereus_cli.ports import CannotStartError, DestinationAwayError
from tests.domain.story import ENDS, NOW, Story, schedule
from tests.engine.desk import Desk, outcome_of


def desk_with(*delays: int, concurrency: int = 3, **fields: object) -> Desk:
    """Messages a, b, c… due after so many seconds."""
    desk = Desk(concurrency=concurrency)
    for name, delay in zip("abcdefghij", delays, strict=False):
        stated = schedule(name, when=In("x", delay * SECOND))
        desk.story.say(msgspec.structs.replace(stated, **fields), f"s-{name}")
    return desk


def names(desk: Desk) -> list[str]:
    return [start.message.message_id for start in desk.started]


def test_an_admission_says_what_is_attempted_and_by_which_reading() -> None:
    desk = desk_with(0)
    [record] = desk.turn(width=5)
    assert isinstance(record, Admission)
    message = desk.story.message("a")
    assert (record.message_id, record.generation, record.descriptor_hash) == ("a", 0, message.descriptor_hash)
    assert (record.earliest, record.latest, record.grace_ns) == (NOW, NOW + 5, 10 * SECOND)
    assert record.attempt_id == f"na~{(NOW + 5) // MILLISECOND:012x}70008000000000000000"
    assert desk.door.materialised == ["a"]


def test_only_what_is_read_back_as_admitted_starts() -> None:
    desk = desk_with(0)
    records = desk.turn()
    assert (desk.started, desk.engine.running, desk.engine.idle) == ([], 0, False)
    desk.append(records)
    [start] = desk.started
    assert (start.message.message_id, start.attempt.number, start.work) == ("a", 1, ("work", "s-a"))
    assert start.command.command_id == "s-a"
    assert (desk.engine.running, desk.engine.idle, desk.turn()) == (1, False, [])


def test_what_was_cancelled_in_between_never_starts() -> None:
    desk = desk_with(0)
    records = desk.turn()
    start = len(desk.story.records)
    desk.story.say(Cancel("a"))
    for record in records:
        desk.story.do(record)
    desk.observe(start)
    assert (desk.started, desk.engine.idle) == ([], True)


def test_an_admission_that_this_owner_did_not_claim_never_starts_here() -> None:
    desk = desk_with(0)
    desk.append([desk.story.admission("a")])
    assert (desk.started, desk.engine.running) == ([], 0)


def test_a_verdict_other_than_admitted_never_starts_anything_whatever_stands_beside_it() -> None:
    """I3."""
    for verdict in (Verdict.STALE, Verdict.VOID, Verdict.TAKEN, None):
        desk = desk_with(0)
        [admission] = desk.turn()
        desk.story.do(admission)
        change = msgspec.structs.replace(desk.story.applied[-1].change, verdict=verdict)
        todo = desk.engine.observe([Applied(3, desk.story.applied[-1].record, change)])
        assert (todo.starts, desk.engine.running, desk.engine.idle) == ((), 0, True)


def test_nothing_is_admitted_before_its_instant_has_surely_come() -> None:
    desk = desk_with(1)
    desk.story.now = NOW + SECOND - 1
    assert desk.turn(width=SECOND) == []
    desk.story.now += 1
    assert len(desk.turn(width=SECOND)) == 1


def test_what_is_not_yet_sure_is_looked_at_again() -> None:
    desk = desk_with(0, expiry=Expiry(after_ns=SECOND))
    assert desk.turn(width=2 * SECOND) == []
    assert len(desk.turn()) == 1


def test_a_window_smaller_than_what_is_due_loses_nothing_and_keeps_the_order() -> None:
    desk = desk_with(*range(10), concurrency=5)
    desk.story.now += 20 * SECOND
    seen, largest = [], 0
    for _ in range(20):
        records = desk.round()
        largest = max(largest, sum(isinstance(record, Admission) for record in records))
        assert desk.engine.running <= 5
        seen += names(desk)
        desk.finish()
    assert seen == list("abcdefghij")
    assert largest == TINY.turn_admissions_max
    assert desk.story.fold.batch.messages.keys() == {m for m in seen if desk.story.message(m).state == "PUBLISHED"}


def test_concurrency_is_never_exceeded_and_room_is_used_when_it_comes() -> None:
    desk = desk_with(0, 0, 0, 0, concurrency=1)
    order = []
    for _ in range(8):
        desk.round()
        assert desk.engine.running <= 1
        order += names(desk)
        desk.finish()
    assert order == list("abcd")


def test_what_cannot_be_started_is_admitted_first_and_then_settled_for_its_reason() -> None:
    for permanent, code, disposition in (
        (True, Code.NOT_STARTABLE, Disposition.PERMANENT),
        (False, Code.NO_RESOURCES, Disposition.RETRIABLE),
    ):
        desk = desk_with(0)
        desk.door.refuses = CannotStartError("no such file", permanent=permanent, errno=2)
        desk.round()
        assert desk.started == []
        [outcome] = desk.turn()
        assert isinstance(outcome, Outcome)
        assert (outcome.code, outcome.disposition, outcome.basis) == (code, disposition, "NOT_SENT")
        assert (outcome.errno, outcome.detail) == (2, "no such file")
        desk.append([outcome])
        assert desk.engine.running == 0
        assert desk.story.message("a").state is (State.DEAD_LETTER if permanent else State.RETRY_WAIT)


def test_an_errno_of_nothing_is_not_said() -> None:
    desk = desk_with(0)
    desk.door.refuses = CannotStartError("away", permanent=False)
    desk.round()
    [outcome] = desk.turn()
    assert isinstance(outcome, Outcome)
    assert outcome.errno is None


def test_nothing_is_admitted_while_the_destination_is_away_and_everything_when_it_is_back() -> None:
    desk = desk_with(0, 0)
    desk.door.refuses = DestinationAwayError("no process to be had")

    def turn(after_s: float) -> list[Mutation]:
        now = desk.story.now
        return list(desk.engine.turn(Reading(now, now, int(after_s * SECOND), b"")))

    assert turn(5) == []
    assert desk.engine.away == "no process to be had"
    assert desk.engine.idle
    assert desk.door.materialised == ["a"], "one is asked for, the others wait with it"
    assert desk.engine.next_wake(desk.story.now) == desk.story.now + SECOND
    assert turn(5.9) == []
    assert desk.door.materialised == ["a"], "not asked again within a second"
    assert turn(6) == []
    assert desk.door.materialised == ["a", "a"]
    desk.door.refuses = None
    records = turn(7)
    assert desk.engine.away == ""
    assert [type(record) for record in records] == [Admission, Admission]


def test_what_expires_does_so_although_the_destination_is_away() -> None:
    desk = desk_with(0, 0, expiry=Expiry(after_ns=SECOND))
    desk.door.refuses = DestinationAwayError("away")
    assert desk.turn() == []
    desk.story.now += SECOND
    now = desk.story.now
    assert list(desk.engine.turn(Reading(now, now, 2 * SECOND, b""))) == [Expire("a", 0, now), Expire("b", 0, now)]
    assert desk.engine.away == ""


def test_lateness_and_expiry_become_records_and_take_no_room() -> None:
    desk = desk_with(0, late_after_ns=SECOND, concurrency=1)
    desk.story.now += 2 * SECOND
    assert desk.turn() == [LateHold("a", 0, desk.story.now)]
    desk = desk_with(0, 0, expiry=Expiry(after_ns=SECOND))
    desk.story.now += SECOND
    assert desk.turn() == [Expire("a", 0, desk.story.now), Expire("b", 0, desk.story.now)]


def test_what_is_held_expires_from_its_timer() -> None:
    desk = desk_with(0, late_after_ns=SECOND, expiry=Expiry(after_ns=5 * SECOND))
    desk.story.now += 2 * SECOND
    desk.round()
    assert desk.story.message("a").state is State.HELD
    desk.story.now += 2 * SECOND
    assert desk.turn() == []
    desk.story.now += SECOND
    desk.round()
    assert desk.story.message("a").state is State.EXPIRED


def test_entries_left_over_from_what_has_ended_decide_nothing() -> None:
    desk = desk_with(1, expiry=Expiry(after_ns=5 * SECOND))
    assert desk.turn() == []
    start = len(desk.story.records)
    desk.story.say(Hold("a"))
    desk.story.say(Release("a"))
    desk.observe(start)
    desk.story.now += SECOND
    desk.round()
    desk.finish()
    desk.round()
    desk.story.now += 5 * SECOND
    assert [desk.turn() for _ in range(4)] == [[]] * 4


def test_while_the_clock_is_gated_or_no_more_is_admitted_outcomes_are_still_written() -> None:
    desk = desk_with(0, 0)
    desk.engine.settle([Outcome(message_id="z", attempt_id="a", **ENDS["published"])])
    assert [type(record) for record in desk.turn(gated=True)] == [Outcome]
    assert desk.turn(gated=True) == []
    desk.engine.admitting = False
    assert desk.turn() == []
    desk.engine.admitting = True
    assert len(desk.turn()) == 2


def test_outcomes_come_before_what_is_due() -> None:
    desk = desk_with(0, 0, concurrency=1)
    desk.round()
    desk.finish()
    records = desk.round()
    assert [type(record) for record in records] == [Outcome]
    assert [type(record) for record in desk.round()] == [Admission]


def test_a_retry_comes_when_its_back_off_has_passed() -> None:
    desk = desk_with(0, policy=schedule(policy={"max_attempts": 2}).policy)
    desk.round()
    desk.finish("retriable")
    desk.round()
    timer = desk.story.message("a").timer
    assert timer is not None
    desk.story.now = timer - 1
    assert desk.round() == []
    desk.story.now = timer
    desk.round()
    assert names(desk) == ["a"]
    assert desk.started[0].attempt.number == 2


# --------------------------------------------------------------------------------------------------------- refusals


def test_when_the_log_takes_nothing_everything_is_there_again() -> None:
    desk = desk_with(0, 0, 0, concurrency=3)
    desk.round()
    assert names(desk) == ["a", "b"]
    desk.finish()
    records = desk.turn()
    assert [type(record) for record in records] == [Outcome, Outcome, Admission]
    desk.engine.abandon(records)
    assert (desk.engine.running, desk.engine.idle) == (2, False)
    again = desk.turn()
    assert sorted(map(str, again[:2])) == sorted(map(str, records[:2]))
    assert [record.message_id for record in again if isinstance(record, Admission)] == ["c"]
    desk.append(again)
    assert names(desk) == ["c"]
    assert [desk.story.message(name).state for name in "ab"] == [State.PUBLISHED] * 2


def test_abandoned_decisions_are_decided_again() -> None:
    desk = desk_with(0, late_after_ns=SECOND)
    desk.story.now += 2 * SECOND
    for _ in range(3):
        records = desk.turn()
        assert [type(record) for record in records] == [LateHold]
        desk.engine.abandon(records)
    assert desk.engine.idle


# --------------------------------------------------------------------------------------------------------- stopping


def test_a_stop_with_kill_ends_what_runs_and_one_without_does_not() -> None:
    for kill in (False, True):
        desk = desk_with(0, 0)
        desk.round()
        running = desk.started[0].attempt.attempt_id
        start = len(desk.story.records)
        desk.story.say(Stop("a", kill=kill), "stop")
        desk.story.say(Stop("a", kill=kill), "stop")
        assert desk.observe(start).stops == (((running, True),) if kill else ())


def test_a_stop_behind_its_admission_in_one_batch_starts_and_then_ends_it() -> None:
    desk = desk_with(0)
    records = desk.turn()
    start = len(desk.story.records)
    for record in records:
        desk.story.do(record)
    desk.story.say(Stop("a", kill=True))
    todo = desk.observe(start)
    assert [start.attempt.attempt_id for start in todo.starts] == [attempt_id for attempt_id, _ in todo.stops]
    assert len(todo.stops) == 1


# ---------------------------------------------------------------------------------------------------------- recovery


def left_behind(*, kill: bool = False) -> Desk:
    """A new owner over what an earlier one left in progress."""
    story = Story(TINY)
    story.own()
    for name in "abc":
        story.say(schedule(name, when=Now(), policy={"max_attempts": 3}), f"s-{name}")
    story.admit("a", "a-1")
    story.attempt("unknown", "b")
    story.admit("b", "b-2")
    story.attempt("published", "c")
    if kill:
        story.say(Stop("a", kill=True))
    story.own()
    return Desk(story)


def test_recovery_asks_about_exactly_what_is_in_progress() -> None:
    desk = left_behind()
    desk.engine.recover()
    assert [(s.message.message_id, s.attempt.attempt_id, s.work) for s in desk.door.recovered] == [
        ("a", "a-1", None),
        ("b", "b-2", None),
    ]
    assert [s.command.command_id for s in desk.door.recovered] == ["s-a", "s-b"]
    assert (desk.engine.running, desk.engine.idle, desk.door.stopped) == (2, False, [])


def test_what_recovery_decides_is_written_and_what_it_adopts_keeps_its_room() -> None:
    desk = left_behind()
    desk.door.decides = [Outcome(message_id="a", attempt_id="a-1", **ENDS["lost"])]
    desk.engine.recover()
    desk.round()
    assert desk.story.message("a").state is State.UNCERTAIN
    assert desk.engine.running == 1
    desk.engine.settle([outcome_of(desk.door.recovered[1], "published")])
    desk.round()
    assert (desk.story.message("b").state, desk.engine.running) == (State.PUBLISHED, 0)


def test_an_end_that_was_asked_for_while_nobody_owned_it_is_seen_to() -> None:
    desk = left_behind(kill=True)
    desk.engine.recover()
    assert desk.door.stopped == [("a-1", True)]


# -------------------------------------------------------------------------------------------------------- when next


def test_when_a_turn_may_have_something_to_do() -> None:
    desk = desk_with(5, 0, concurrency=1)
    engine = desk.engine
    assert engine.next_wake(NOW) == NOW
    desk.round()
    assert engine.next_wake(NOW) == NOW + SECOND
    desk.finish()
    assert engine.next_wake(NOW) == NOW
    desk.round()
    assert engine.next_wake(NOW) == NOW + 5 * SECOND
    engine.admitting = False
    assert engine.next_wake(NOW) == NOW + SECOND


def test_a_message_scheduled_since_moves_the_next_wake_forward() -> None:
    desk = desk_with(500)
    assert desk.engine.next_wake(NOW) == NOW + 500 * SECOND
    start = len(desk.story.records)
    desk.story.say(schedule("soon", when=In("1s", SECOND)))
    desk.observe(start)
    assert desk.engine.next_wake(NOW) == NOW + SECOND


def test_rows_without_what_they_deliver_are_a_fault_and_not_a_guess() -> None:
    desk = desk_with(0)
    desk.story.fold.batch.descriptors.clear()
    with pytest.raises(LookupError, match="no descriptor at 2"):
        desk.turn()


# -------------------------------------------------------------------------------------------------------- all of it


endings = st.sampled_from(["published", "retriable", "permanent", "door", "unknown"])


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=10),
    st.lists(endings, max_size=30),
    st.integers(1, 4),
    st.sets(st.integers(0, 40)),
)
def test_everything_is_attempted_once_due_and_never_before(
    delays: list[int], hows: list[str], concurrency: int, refused: set[int]
) -> None:
    policy = schedule(policy={"max_attempts": 3, "retry_base_ns": SECOND, "retry_max_ns": SECOND}).policy
    desk = desk_with(*delays, concurrency=concurrency, policy=policy)
    effects = 0
    for step in range(200):
        records = desk.turn()
        if step in refused:
            desk.engine.abandon(records)
            continue
        desk.append(records)
        assert desk.engine.running <= concurrency
        for start in desk.started:
            assert start.attempt.earliest >= start.message.deliver_at or start.attempt.number > 1
            how = hows.pop() if hows else "published"
            effects += how == "published"
            desk.engine.settle([outcome_of(start, how)])
        desk.started.clear()
        desk.story.now += SECOND // 2
    messages = desk.story.fold.batch.messages.values()
    assert {message.state for message in messages} <= {State.PUBLISHED, State.DEAD_LETTER}
    assert effects <= sum(message.attempts for message in messages)
    assert desk.engine.idle
