"""What people's commands decide: repeats, horizons, times, versions, new generations."""

from __future__ import annotations

import msgspec
import pytest

from nereus_cli.domain import identity
from nereus_cli.domain.facts import Result, Verdict
from nereus_cli.domain.instant import DAY, MILLISECOND, SECOND
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.message import Held, RetryWait, Scheduled, State
from nereus_cli.domain.outcome import Decision, Ending, Reason
from nereus_cli.domain.records import (
    At,
    Cancel,
    ClockTrust,
    Destination,
    Expiry,
    Hold,
    In,
    LaneControl,
    MessageCommand,
    Named,
    Now,
    Policy,
    Release,
    Reschedule,
    Shell,
    Stated,
    Stop,
    TimeFence,
    Webhook,
)
from tests.domain.states import publishing, retry_wait, scheduled, stopping, uncertain_publishing
from tests.domain.story import NOW, Story, schedule, told

HOUR = 3600 * SECOND
ENTROPY = b"0123456789"


def refused(result: Result) -> Reason | None:
    assert result.decision is (Decision.APPLIED if result.reason is None else Decision.REJECTED)
    return result.reason


# ------------------------------------------------------------------------------------------------- the first result


def test_a_schedule_brings_a_message_into_being() -> None:
    story = Story()
    result = story.say(schedule(key="k", tags=(("a", "b"),)), "c", reason="nightly", correlation="x", requested_at=5)
    message = story.message()
    assert result == Result(
        "c", result.command_hash, 1, NOW, "m", Decision.APPLIED,
        generation=0, state_version=1, deliver_at=NOW + 10 * SECOND,
    )  # fmt: skip
    assert (message.state, message.deliver_at, message.key, message.tags) == (
        State.SCHEDULED, NOW + 10 * SECOND, "k", (("a", "b"),),
    )  # fmt: skip
    assert (message.requested_by, message.requested_at, message.reason, message.correlation) == (
        "anna", 5, "nightly", "x",
    )  # fmt: skip
    assert (message.created_position, message.order_position, message.descriptor_position) == (1, 1, 1)
    assert story.fold.batch.descriptors[1].command.stated == schedule(key="k", tags=(("a", "b"),))
    assert [line.event for line in story.fold.batch.history] == ["Schedule"]


def test_a_repeat_changes_nothing_but_the_position_whatever_was_captured() -> None:
    story = told()
    story.say(Cancel("m"), "cancel")
    before = story.fold.batch
    seen = (dict(before.results), dict(before.messages), list(before.history))
    story.now += DAY
    first = story.say(schedule(), "schedule", requested_by="bert", requested_at=NOW + DAY, host="elsewhere")
    assert first.position == 2
    assert story.say(Cancel("m"), "cancel") is seen[0]["cancel"]
    assert (before.results, before.messages, before.history) == seen
    assert story.head.applied == 5


def test_an_id_used_again_for_something_else_leaves_the_first_result() -> None:
    story = told()
    first = story.say(schedule("other"), "schedule")
    assert first.message_id == "m"
    assert "other" not in story.fold.batch.messages


def test_a_rejection_is_a_result_too_and_stays_one() -> None:
    story = Story()
    assert refused(story.say(Cancel("m"), "early")) is Reason.NOT_FOUND
    story.say(schedule(), "schedule")
    assert refused(story.say(Cancel("m"), "early")) is Reason.NOT_FOUND
    assert story.message().state is State.SCHEDULED


# --------------------------------------------------------------------------------------------- how long ids are good


def generated(made: int) -> str:
    return identity.generated_command_id(made // MILLISECOND, ENTROPY)


@pytest.mark.parametrize(
    ("age", "reason"),
    [
        (0, None),
        (7 * DAY - MILLISECOND, None),
        (7 * DAY, Reason.OUTSIDE_HORIZON),
        (8 * DAY, Reason.OUTSIDE_HORIZON),
        (-HOUR, None),
        (-HOUR - MILLISECOND, Reason.ID_FROM_FUTURE),
    ],
)
def test_a_generated_id_is_good_from_an_hour_ahead_until_seven_days_after(age: int, reason: Reason | None) -> None:
    command_id = generated(NOW - age)
    assert refused(Story().say(schedule(), command_id)) is reason
    assert refused(Story().say(schedule(identity.message_id_for(command_id)), "chosen")) is reason
    story = told()
    assert refused(story.say(Cancel("m"), command_id)) is reason


def test_a_control_of_an_old_message_is_not_held_against_the_age_of_its_id() -> None:
    story = Story()
    message_id = identity.message_id_for(generated(NOW))
    story.say(schedule(message_id, when=In("30d", 30 * DAY)), generated(NOW))
    story.now += 20 * DAY
    assert refused(story.say(Cancel(message_id), "later")) is None


def test_a_fence_closes_what_a_clock_set_back_would_reopen() -> None:
    story = told()
    command_id = generated(NOW - 6 * DAY)
    assert story.do(TimeFence(NOW + DAY)) is Verdict.TAKEN
    story.now -= 2 * DAY
    assert refused(story.say(schedule("n"), command_id)) is Reason.OUTSIDE_HORIZON
    story.do(TimeFence(NOW))
    assert story.head.fence == NOW + DAY
    assert refused(story.say(schedule("n"), generated(NOW - 6 * DAY + MILLISECOND))) is None


def test_a_repeat_beyond_the_window_still_has_its_first_result() -> None:
    story = Story()
    command_id = generated(NOW)
    story.say(schedule(), command_id)
    story.now += 30 * DAY
    assert refused(story.say(schedule(), command_id)) is None


def test_a_chosen_id_never_grows_old() -> None:
    story = told()
    story.do(TimeFence(NOW + 1000 * DAY))
    story.now += 1000 * DAY
    assert refused(story.say(schedule("n"), "chosen")) is None


# ---------------------------------------------------------------------------------------------------------- times


def test_a_delay_counts_from_the_append_and_run_now_is_the_append() -> None:
    story = Story()
    assert story.say(schedule(when=In("1h", HOUR)), requested_at=NOW - DAY).deliver_at == NOW + HOUR
    assert story.say(schedule("n", when=Now())).deliver_at == NOW
    story.now += 5
    assert story.say(Reschedule("m", Now())).deliver_at == NOW + 5


def test_the_instant_of_the_first_record_is_the_truth() -> None:
    story = Story()
    at = At("07:00", "Europe/Berlin")
    assert story.say(schedule(when=at), "c", instant=NOW + HOUR).deliver_at == NOW + HOUR
    assert story.say(schedule(when=at), "c", instant=NOW + 2 * HOUR).deliver_at == NOW + HOUR
    assert story.message().deliver_at == NOW + HOUR


@pytest.mark.parametrize(
    ("instant", "allow_past", "reason"),
    [
        (NOW - 1, False, Reason.PAST),
        (NOW - 1, True, None),
        (-(1 << 63), True, None),
        (NOW, False, None),
        (NOW + PRODUCTION.horizon_ns, False, None),
        (NOW + PRODUCTION.horizon_ns + 1, False, Reason.TOO_FAR),
        (None, True, Reason.LIMIT),
    ],
)
def test_calendar_times_are_judged_in_apply(instant: int | None, allow_past: bool, reason: Reason | None) -> None:
    at = At("some day")
    assert refused(Story().say(schedule(when=at, allow_past=allow_past), instant=instant)) is reason
    story = told()
    assert refused(story.say(Reschedule("m", at, allow_past=allow_past), instant=instant)) is reason
    assert story.message().generation == (1 if reason is None else 0)


def test_a_time_that_was_ahead_when_it_was_asked_for_is_not_past_because_the_append_was_slow() -> None:
    story = Story()
    story.now = NOW + HOUR
    assert refused(story.say(schedule(when=At("soon")), requested_at=NOW, instant=NOW + 1)) is None


def test_a_delay_has_a_horizon_too() -> None:
    longest = PRODUCTION.horizon_ns
    assert refused(Story().say(schedule(when=In("10y", longest)))) is None
    assert refused(Story().say(schedule(when=In("10y", longest + 1)))) is Reason.TOO_FAR


@pytest.mark.parametrize(
    ("instant", "reason"),
    [
        (NOW + 10 * SECOND + 1, None),
        (NOW + 10 * SECOND, Reason.EXPIRES_BEFORE_DELIVERY),
        (NOW, Reason.EXPIRES_BEFORE_DELIVERY),
        (NOW + 10 * SECOND + PRODUCTION.horizon_ns, None),
        (NOW + 10 * SECOND + PRODUCTION.horizon_ns + 1, Reason.TOO_FAR),
        (None, Reason.LIMIT),
    ],
)
def test_the_last_instant_lies_behind_the_delivery(instant: int | None, reason: Reason | None) -> None:
    story = Story()
    assert refused(story.say(schedule(expiry=Expiry(at=At("then"))), expiry_instant=instant)) is reason
    assert ("m" in story.fold.batch.messages) is (reason is None)


# ------------------------------------------------------------------------------------------------------ generations


def test_what_expires_after_counts_from_each_delivery_anew() -> None:
    story = told(expiry=Expiry(after_ns=60 * SECOND))
    assert story.message().expire_at == NOW + 70 * SECOND
    story.say(Reschedule("m", In("1h", HOUR)))
    assert story.message().expire_at == NOW + HOUR + 60 * SECOND


def test_what_expires_at_stays_there_and_is_judged_anew() -> None:
    story = Story()
    story.say(schedule(expiry=Expiry(at=At("in an hour"))), expiry_instant=NOW + HOUR)
    assert refused(story.say(Reschedule("m", In("1h", HOUR)))) is Reason.EXPIRES_BEFORE_DELIVERY
    assert refused(story.say(Reschedule("m", In("59m", HOUR - 60 * SECOND)))) is None
    assert story.message().expire_at == NOW + HOUR


def test_a_reschedule_may_say_another_expiry() -> None:
    story = told(expiry=Expiry(after_ns=60 * SECOND))
    story.say(Reschedule("m", In("1h", HOUR), expiry=Expiry(at=At("x"))), expiry_instant=NOW + 2 * HOUR)
    assert story.message().expire_at == NOW + 2 * HOUR
    story.say(Reschedule("m", In("1h", HOUR), expiry=Expiry(after_ns=SECOND)))
    assert story.message().expire_at == NOW + HOUR + SECOND


def test_a_kept_expiry_far_ahead_does_not_hinder_an_earlier_delivery() -> None:
    story = Story()
    far = PRODUCTION.horizon_ns
    story.say(schedule(when=In("10y", far), expiry=Expiry(at=At("x"))), expiry_instant=NOW + 2 * far)
    assert refused(story.say(Reschedule("m", Now()))) is None


def test_a_new_generation_starts_with_a_fresh_budget_and_numbers_run_on() -> None:
    story = told(policy={"max_attempts": 2})
    story.attempt("retriable")
    result = story.say(Reschedule("m", In("1s", SECOND)))
    assert (result.generation, result.state_version, result.deliver_at) == (1, 2, story.now + SECOND)
    message = story.message()
    assert (message.order_position, message.descriptor_position, message.last_attempt) == (result.position, 2, None)
    story.attempt("retriable")
    assert (story.message().state, story.message().counted) == (State.RETRY_WAIT, 1)
    story.attempt("retriable")
    assert (story.message().state, story.message().attempts) == (State.DEAD_LETTER, 3)
    numbers = sorted((a.number, a.generation) for a in story.fold.batch.attempts.values())
    assert numbers == [(1, 0), (2, 1), (3, 1)]


def test_an_edit_replaces_what_is_delivered_and_the_first_admission_must_name_it() -> None:
    story = told()
    stale = story.admission(generation=1, earliest=NOW + DAY, latest=NOW + DAY)
    edit = Reschedule("m", In("1s", SECOND), target=Shell((b"false",)), policy=Policy(max_attempts=9))
    result = story.say(edit)
    assert (story.message().descriptor_position, story.message().policy.max_attempts) == (result.position, 9)
    assert story.message().descriptor_hash == result.command_hash
    assert story.fold.batch.descriptors[result.position].command.stated == edit
    assert story.do(stale) is Verdict.STALE
    assert story.do(msgspec.structs.replace(stale, descriptor_hash=result.command_hash)) is Verdict.ADMITTED


def test_a_policy_can_be_edited_alone() -> None:
    story = told()
    story.say(Reschedule("m", In("1s", SECOND), policy=Policy(max_attempts=4)))
    assert (story.message().policy.max_attempts, story.message().descriptor_position) == (4, 2)
    story.say(Reschedule("m", In("1s", SECOND)))
    assert story.message().policy.max_attempts == 4


# ---------------------------------------------------------------------------------------------------------- versions


@pytest.mark.parametrize(
    "stated", [Cancel("m"), Reschedule("m", Now()), Hold("m"), Release("m"), Stop("m")], ids=lambda s: type(s).__name__
)
def test_every_verb_heeds_the_version_it_was_given(stated: MessageCommand) -> None:
    for wanted, reason in ((0, Reason.VERSION_CONFLICT), (2, Reason.VERSION_CONFLICT), (1, None)):
        story = scheduled()
        assert refused(story.say(msgspec.structs.replace(stated, if_version=wanted))) is reason


def test_owner_records_never_move_the_version() -> None:
    story = told(policy={"max_attempts": 5})
    for how in ("door", "retriable", "unknown", "published"):
        story.attempt(how)
        assert story.message().state_version == 1


# -------------------------------------------------------------------------------------------- hold, release, stop


def test_a_release_puts_back_exactly_what_was_held() -> None:
    story = retry_wait()
    was = story.message().condition
    assert isinstance(was, RetryWait)
    story.say(Hold("m"))
    assert story.message().condition == Held("PERSON", was)
    assert story.message().timer == story.message().expire_at
    story.say(Release("m"))
    assert story.message().condition == was
    assert story.message().state_version == 3


def test_what_is_held_without_an_expiry_has_no_timer() -> None:
    story = told()
    story.say(Hold("m"))
    assert story.message().timer is None
    story.say(Reschedule("m", Now()))
    assert story.message().condition == Scheduled()


def test_a_stop_with_kill_marks_what_runs_for_whoever_owns_it_then() -> None:
    story = uncertain_publishing()
    story.say(Stop("m"))
    assert [a.kill for a in story.message().open_attempts] == [False, False]
    result = story.say(Stop("m", kill=True))
    assert [(a.number, a.kill) for a in story.message().open_attempts] == [(1, False), (2, True)]
    assert story.fold.batch.attempts["m", 2].kill
    assert story.message().state_version == result.state_version == 3


def test_a_stop_with_kill_of_what_does_not_run_is_a_stop() -> None:
    story = scheduled()
    story.say(Stop("m", kill=True))
    assert (story.message().state, story.message().open_attempts) == (State.CANCELED, ())


def test_the_first_closing_counts() -> None:
    story = stopping()
    story.say(Stop("m"))
    assert getattr(story.message().condition, "closing", "") == Ending.STOPPED


# ------------------------------------------------------------------------------------------- what is not taken


@pytest.mark.parametrize(
    ("target", "reason"),
    [(Webhook("http://localhost"), Reason.LIMIT), (Named("backup"), Reason.DESTINATION_UNKNOWN)],
    ids=["webhook", "named"],
)
def test_what_no_part_can_deliver_is_refused(target: Webhook | Named, reason: Reason) -> None:
    assert refused(Story().say(schedule(target=target))) is reason
    assert refused(told().say(Reschedule("m", Now(), target=target))) is reason


@pytest.mark.parametrize(
    "stated",
    [LaneControl("shell", "pause"), Destination("d", "add"), ClockTrust("a watch")],
    ids=lambda s: type(s).__name__,
)
def test_controls_without_a_behaviour_yet_are_refused(stated: Stated) -> None:
    story = told()
    result = story.say(stated)
    assert (refused(result), result.message_id) == (Reason.LIMIT, "")


def test_what_breaks_a_limit_is_refused_however_it_came_into_the_log() -> None:
    assert refused(Story().say(schedule(priority=PRODUCTION.priority_max + 1))) is Reason.LIMIT
    assert refused(Story().say(schedule("-m"))) is Reason.LIMIT
    assert refused(told().say(Cancel("m"), "nc~not-a-uuid")) is Reason.LIMIT
    assert refused(told().say(Reschedule("m", In("", -1)))) is Reason.LIMIT


def test_a_refusal_for_lateness_names_the_attempt_that_made_it_so() -> None:
    story = publishing()
    assert story.say(Cancel("m")).attempt == (story.message().open_attempts[0].attempt_id, 1)
    story = told(policy={"max_attempts": 2})
    story.attempt("retriable")
    story.say(Reschedule("m", Now()))
    story.say(Cancel("m"))
    assert story.say(Hold("m")).attempt is None
