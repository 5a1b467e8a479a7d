"""What a person may say of an attempt of unknown effect, in every state, and what follows (design §6; I6, I8)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nereus_cli.domain.facts import Result, Verdict
from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.message import VERDICTS, DeadLetter, Publishing, RetryWait, State, Uncertain, Work
from nereus_cli.domain.outcome import Basis, Decision, Disposition, Ending, Reason, Risk, SideEffect
from nereus_cli.domain.records import At, Expire, Expiry, In, Replay, Reschedule, Resolve, Stop
from tests.domain import states
from tests.domain.story import Story, schedule, told

RETRYING: dict[str, object] = {"max_attempts": 4, "retry_base_ns": SECOND}
PATIENT: dict[str, object] = {"max_attempts": 4, "on_uncertain": "wait"}
EVIDENCE = "the ledger has it"


def say(story: Story, verdict: str, attempt: int = 1, *, by: str = "", evidence: str = EVIDENCE) -> Result:
    return story.say(Resolve("m", attempt, verdict, evidence, by))


def uncertain(policy: dict[str, object] | None = None) -> Story:
    story = told(policy=policy or {})
    story.attempt("unknown")
    return story


# ---------------------------------------------------------------------------------------------------- one attempt


@pytest.mark.parametrize(
    ("policy", "verdict", "state", "ending"),
    [
        ({}, "published", State.PUBLISHED, None),
        (PATIENT, "published", State.PUBLISHED, None),
        (RETRYING, "published", State.PUBLISHED, None),
        ({}, "not-published", State.DEAD_LETTER, Ending.EXHAUSTED),
        (PATIENT, "not-published", State.RETRY_WAIT, None),
        (RETRYING, "not-published", State.RETRY_WAIT, None),
        ({}, "retry", State.UNCERTAIN, None),
        (PATIENT, "retry", State.UNCERTAIN, None),
        ({}, "give-up", State.DEAD_LETTER, Ending.GIVEN_UP),
        (RETRYING, "give-up", State.DEAD_LETTER, Ending.GIVEN_UP),
    ],
)
def test_where_a_verdict_leads(policy: dict[str, object], verdict: str, state: State, ending: Ending | None) -> None:
    story = uncertain(policy)
    before = story.message()
    result = say(story, verdict)
    after = story.message()
    assert (result.decision, result.reason, result.already) == (Decision.APPLIED, None, False)
    assert (after.state, getattr(after.condition, "ending", None)) == (state, ending)
    assert (after.state_version, after.generation) == (before.state_version + 1, before.generation)
    assert (result.state_version, result.deliver_at) == (after.state_version, None)
    assert after.settled == ((1, verdict),)
    assert after.risk is Risk.NONE


@pytest.mark.parametrize(
    ("verdict", "effect", "basis"),
    [
        ("published", SideEffect.PUBLISHED, None),
        ("not-published", SideEffect.NOT_PUBLISHED, Basis.PROVEN_ABSENT),
        ("retry", SideEffect.UNKNOWN, None),
        ("give-up", SideEffect.UNKNOWN, None),
    ],
)
def test_the_attempt_bears_the_verdict_and_who_said_it(verdict: str, effect: SideEffect, basis: Basis | None) -> None:
    story = uncertain(PATIENT)
    position = say(story, verdict, by="ops").position
    row = story.fold.batch.attempts["m", 1]
    assert (row.side_effect, row.basis) == (effect, basis)
    assert row.resolution is not None
    assert (row.resolution.verdict, row.resolution.evidence, row.resolution.by) == (verdict, EVIDENCE, "ops")
    assert (row.resolution.at, row.resolution.position) == (story.now, position)
    assert row.given_up is (verdict == "give-up")
    assert row.disposition is {
        "published": Disposition.NONE, "not-published": Disposition.RETRIABLE,
    }.get(verdict, Disposition.UNCERTAIN)  # fmt: skip
    open_numbers = [a.number for a in story.message().open_attempts]
    assert open_numbers == ([] if effect is not SideEffect.UNKNOWN else [1])
    line = story.fold.batch.history[-1]
    assert (line.event, line.detail) == ("Resolve", f"attempt 1: {verdict}, by ops: {EVIDENCE}")


def test_who_is_not_named_is_the_one_who_asked() -> None:
    story = uncertain()
    say(story, "published")
    resolution = story.fold.batch.attempts["m", 1].resolution
    assert resolution is not None
    assert resolution.by == "anna"


def test_absence_is_tried_again_at_once_and_the_budget_goes_on_from_where_it_was() -> None:
    story = uncertain({"max_attempts": 2, "on_uncertain": "wait"})
    story.now += 3600 * SECOND
    say(story, "not-published")
    assert story.message().condition == RetryWait(story.now, 0)
    assert story.message().timer == story.now
    story.admit()
    story.end("retriable")
    assert story.message().condition == DeadLetter(Ending.EXHAUSTED)


def test_the_time_for_retries_is_part_of_the_budget() -> None:
    for late, state in ((9, State.RETRY_WAIT), (10, State.RETRY_WAIT), (11, State.DEAD_LETTER)):
        story = uncertain({**PATIENT, "retry_for_ns": 10 * SECOND})
        story.now += late * SECOND
        say(story, "not-published")
        assert story.message().state is state, late


def test_retry_is_one_more_admission_beyond_the_budget_and_no_more() -> None:
    story = uncertain()
    say(story, "retry")
    message = story.message()
    assert (message.state, message.work, message.timer) == (State.UNCERTAIN, Work.TIMELINE, story.now)
    story.admit()
    assert story.message().condition == Uncertain()
    message = story.end("unknown")
    assert (message.condition, message.work, message.risk) == (Uncertain(), Work.NONE, Risk.POSSIBLE)
    assert story.do(story.admission()) is Verdict.STALE


def test_a_retry_that_published_leaves_a_possible_duplicate_which_proof_moves() -> None:
    for verdict, risk in (("published", Risk.CONFIRMED), ("not-published", Risk.NONE), ("give-up", Risk.POSSIBLE)):
        story = uncertain()
        say(story, "retry")
        story.admit()
        message = story.end("published")
        assert (message.state, message.risk) == (State.PUBLISHED, Risk.POSSIBLE)
        result = say(story, verdict)
        assert (result.decision, result.already) == (Decision.APPLIED, False)
        assert (story.message().state, story.message().risk) == (State.PUBLISHED, risk)


# ------------------------------------------------------------------------------------------------ said again, refused


@pytest.mark.parametrize("first", VERDICTS)
@pytest.mark.parametrize("second", VERDICTS)
def test_the_same_again_is_already_so_and_another_verdict_is_refused(first: str, second: str) -> None:
    story = uncertain(PATIENT)
    say(story, first)
    before = story.message()
    result = say(story, second, evidence="something else")
    if first == second:
        assert (result.decision, result.already, story.message()) == (Decision.APPLIED, True, before)
    elif first == "retry":
        assert result.decision is Decision.APPLIED
        assert story.message().settled == ((1, second),)
    else:
        assert (result.decision, result.reason) == (Decision.REJECTED, Reason.ALREADY_SETTLED)
        assert story.message() == before


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("attempt", [-1, 2, 99])
def test_an_attempt_that_never_was(verdict: str, attempt: int) -> None:
    story = uncertain()
    before = story.message()
    assert say(story, verdict, attempt).reason is Reason.NO_SUCH_ATTEMPT
    assert story.message() == before


@pytest.mark.parametrize("verdict", VERDICTS)
def test_what_is_in_progress_is_not_judged(verdict: str) -> None:
    for maker, attempt in ((states.publishing, 1), (states.uncertain_publishing, 2)):
        story = maker()
        before = story.message()
        result = say(story, verdict, attempt)
        assert (result.reason, story.message()) == (Reason.TOO_LATE_PUBLISHING, before)
        assert result.attempt == before.last_attempt


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("maker", [states.published, states.dead_letter, states.retry_wait], ids=lambda m: m.__name__)
def test_an_attempt_that_its_own_outcome_settled_is_settled(verdict: str, maker: Callable[[], Story]) -> None:
    story = maker()
    before = story.message()
    assert say(story, verdict).reason is Reason.ALREADY_SETTLED
    assert story.message() == before


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("maker", [states.scheduled, states.held, states.canceled, states.expired])
def test_without_attempts_there_is_nothing_to_judge(verdict: str, maker: Callable[[], Story]) -> None:
    assert say(maker(), verdict).reason is Reason.NO_SUCH_ATTEMPT


def test_a_version_that_has_passed_is_a_conflict_and_an_unknown_message_is_not_found() -> None:
    story = uncertain()
    assert story.say(Resolve("m", 1, "published", "x", "", 99)).reason is Reason.VERSION_CONFLICT
    assert story.say(Resolve("n", 1, "published", "x")).reason is Reason.NOT_FOUND


@pytest.mark.parametrize(
    ("verdict", "attempt", "evidence", "by"),
    [
        ("maybe", 1, "x", ""),
        ("published", 0, "x", ""),
        ("retry", 0, "x", ""),
        ("published", 1, "", ""),
        ("published", 1, " \n", ""),
        ("published", 1, "x" * 5_000, ""),
        ("published", 1, "x", "y" * 5_000),
    ],
)
def test_what_cannot_be_a_verdict_is_outside_the_limits(verdict: str, attempt: int, evidence: str, by: str) -> None:
    story = uncertain()
    assert story.say(Resolve("m", attempt, verdict, evidence, by)).reason is Reason.LIMIT


# ----------------------------------------------------------------------------------------------- several attempts


def two_unknown() -> Story:
    story = uncertain(RETRYING)
    story.attempt("unknown")
    assert story.message().work is Work.TIMELINE
    return story


def test_none_may_be_unknown_before_absence_counts() -> None:
    story = two_unknown()
    waiting = story.message().condition
    say(story, "not-published", 2)
    assert (story.message().condition, story.message().risk) == (waiting, Risk.NONE)
    say(story, "not-published", 1)
    assert story.message().condition == RetryWait(story.now, 0)


def test_giving_up_one_leaves_the_other_and_giving_up_all_ends_it() -> None:
    story = two_unknown()
    say(story, "give-up", 1)
    assert (story.message().state, story.message().risk) == (State.UNCERTAIN, Risk.POSSIBLE)
    say(story, "give-up", 2)
    message = story.message()
    assert (message.condition, message.work, message.risk) == (DeadLetter(Ending.GIVEN_UP), Work.NONE, Risk.POSSIBLE)
    assert [a.number for a in message.open_attempts] == [1, 2]


def test_absence_of_the_last_beside_one_given_up_ends_it() -> None:
    story = two_unknown()
    say(story, "give-up", 1)
    say(story, "not-published", 2)
    assert story.message().condition == DeadLetter(Ending.GIVEN_UP)


def test_proof_of_one_publishes_whatever_the_other_did() -> None:
    story = two_unknown()
    say(story, "published", 2)
    assert (story.message().state, story.message().risk) == (State.PUBLISHED, Risk.POSSIBLE)
    say(story, "published", 1)
    assert story.message().risk is Risk.CONFIRMED


# -------------------------------------------------------------------------------------- another attempt in progress


@pytest.mark.parametrize(
    ("verdict", "condition"),
    [("published", "PUBLISHED"), ("not-published", "PUBLISHING"), ("give-up", "UNCERTAIN")],
)
def test_while_another_is_in_progress(verdict: str, condition: str) -> None:
    story = states.uncertain_publishing()
    say(story, verdict)
    message = story.message()
    assert (message.state, message.work) == (condition, Work.PUBLISHING)
    assert say(story, "retry", 2).reason is Reason.TOO_LATE_PUBLISHING


@pytest.mark.parametrize(
    ("verdict", "how", "state", "ending"),
    [
        ("not-published", "retriable", "RETRY_WAIT", None),
        ("not-published", "published", "PUBLISHED", None),
        ("not-published", "unknown", "UNCERTAIN", None),
        ("give-up", "retriable", "DEAD_LETTER", Ending.GIVEN_UP),
        ("give-up", "permanent", "DEAD_LETTER", Ending.GIVEN_UP),
        ("give-up", "published", "PUBLISHED", None),
        ("give-up", "unknown", "UNCERTAIN", None),
        ("published", "retriable", "PUBLISHED", None),
        ("published", "published", "PUBLISHED", None),
    ],
)
def test_the_end_of_the_one_in_progress_decides(verdict: str, how: str, state: str, ending: Ending | None) -> None:
    story = states.uncertain_publishing()
    say(story, verdict)
    message = story.end(how)
    assert (message.state.value, getattr(message.condition, "ending", None)) == (state, ending)
    two = how == "published" and verdict == "published"
    assert (message.risk is Risk.CONFIRMED) is two


def test_a_retry_is_not_asked_for_while_another_is_in_progress() -> None:
    story = states.uncertain_publishing()
    assert say(story, "retry", 1).reason is Reason.TOO_LATE_PUBLISHING


# ------------------------------------------------------------------------------------------- stopped, expired, ended


def stopped() -> Story:
    story = uncertain(PATIENT)
    story.say(Stop("m"))
    return story


def expired_while_uncertain() -> Story:
    story = states.uncertain()
    expire_at = story.message().expire_at
    assert expire_at is not None
    story.now = expire_at
    assert story.do(Expire("m", 0, expire_at)) is Verdict.TAKEN
    return story


@pytest.mark.parametrize(
    ("maker", "ends"),
    [(stopped, (State.DEAD_LETTER, Ending.STOPPED)), (expired_while_uncertain, (State.EXPIRED, None))],
    ids=["stopped", "expired"],
)
def test_what_was_to_have_no_further_admission_gets_none(
    maker: Callable[[], Story], ends: tuple[State, Ending | None]
) -> None:
    assert say(maker(), "retry").reason is Reason.TOO_LATE_UNCERTAIN
    for verdict in ("not-published", "give-up"):
        story = maker()
        say(story, verdict)
        message = story.message()
        assert (message.state, getattr(message.condition, "ending", None)) == ends, verdict
    story = maker()
    say(story, "published")
    assert story.message().state is State.PUBLISHED


def test_stopped_while_another_is_in_progress_stays_so() -> None:
    for verdict, condition in (("not-published", Publishing), ("give-up", Uncertain)):
        story = states.uncertain_publishing()
        story.say(Stop("m"))
        say(story, verdict)
        found = story.message().condition
        assert isinstance(found, condition)
        assert found.closing == Ending.STOPPED
        assert story.end("retriable").condition == DeadLetter(Ending.STOPPED)


def exhausted() -> Story:
    story = uncertain({"max_attempts": 1, "on_uncertain": "retry"})
    assert story.message().condition == DeadLetter(Ending.UNCERTAIN_EXHAUSTED)
    return story


@pytest.mark.parametrize("verdict", ["published", "not-published", "give-up"])
def test_of_what_has_ended_only_risk_and_lists_change(verdict: str) -> None:
    story = exhausted()
    say(story, verdict)
    message = story.message()
    assert message.condition == DeadLetter(Ending.UNCERTAIN_EXHAUSTED)
    assert message.published == (verdict == "published")
    assert [a.given_up for a in message.open_attempts] == ([True] if verdict == "give-up" else [])


def test_what_has_ended_is_not_retried_but_replayed() -> None:
    assert say(exhausted(), "retry").reason is Reason.TOO_LATE_DEAD_LETTER


def older() -> Story:
    """An uncertain attempt of a generation that was replayed."""
    story = exhausted()
    assert story.say(Replay("m", In("1m", 60 * SECOND), accept_duplicate=True)).decision is Decision.APPLIED
    return story


@pytest.mark.parametrize("verdict", ["published", "not-published", "give-up"])
def test_an_older_generation_moves_nothing_but_risk_and_lists(verdict: str) -> None:
    story = older()
    before = story.message()
    assert say(story, verdict).decision is Decision.APPLIED
    after = story.message()
    assert (after.condition, after.timer, after.counted) == (before.condition, before.timer, before.counted)
    assert say(older(), "retry").reason is Reason.NO_SUCH_ATTEMPT


# ------------------------------------------------------------------------------------------------- dead letters


def test_a_dead_letter_is_seen_off_without_an_attempt() -> None:
    story = states.dead_letter()
    result = say(story, "give-up", 0, by="ops")
    assert (result.decision, result.already) == (Decision.APPLIED, False)
    assert (story.message().state, story.message().given_up) == (State.DEAD_LETTER, True)
    assert story.fold.batch.history[-1].detail == f"seen off by ops: {EVIDENCE}"
    before = story.message()
    assert say(story, "give-up", 0).already
    assert story.message() == before


@pytest.mark.parametrize("name", [name for name in states.MAKERS if name != "DEAD_LETTER"])
def test_nothing_else_is_seen_off(name: str) -> None:
    for maker in states.MAKERS[name]:
        assert say(maker(), "give-up", 0).reason is Reason.NO_SUCH_ATTEMPT


def test_a_replay_is_a_new_generation_with_a_fresh_budget_and_the_old_key() -> None:
    story = states.dead_letter()
    say(story, "give-up", 0)
    before = story.message()
    story.now += 5 * SECOND
    result = story.say(Replay("m"))
    message = story.message()
    assert (result.decision, result.generation, result.deliver_at) == (Decision.APPLIED, 1, story.now)
    assert (message.state, message.generation, message.counted, message.attempts) == (State.SCHEDULED, 1, 0, 1)
    assert (message.given_up, message.key_generation) == (False, before.key_generation)
    assert message.descriptor_position == before.descriptor_position
    assert story.fold.batch.history[-1].event == "Replay"
    assert story.admit().number == 2
    assert story.end("published").state is State.PUBLISHED


def test_the_key_is_new_where_that_is_asked_for_and_behind_every_reschedule() -> None:
    story = states.dead_letter()
    story.say(Replay("m", new_key=True))
    assert story.message().key_generation == 1
    story.say(Reschedule("m", In("1m", 60 * SECOND)))
    assert (story.message().generation, story.message().key_generation) == (2, 2)


@pytest.mark.parametrize("verdict", [None, "give-up", "published"])
def test_a_possible_duplicate_has_to_be_accepted(verdict: str | None) -> None:
    story = exhausted()
    if verdict is not None:
        say(story, verdict)
    before = story.message()
    assert story.say(Replay("m")).reason is Reason.DUPLICATE_NOT_ACCEPTED
    assert story.message() == before
    assert story.say(Replay("m", accept_duplicate=True)).decision is Decision.APPLIED
    story.admit()
    risk = story.end("published").risk
    assert risk is (Risk.CONFIRMED if verdict == "published" else Risk.POSSIBLE)


def test_what_was_proven_absent_is_replayed_without_more_words() -> None:
    story = exhausted()
    say(story, "not-published")
    assert story.say(Replay("m")).decision is Decision.APPLIED


def test_a_replay_has_its_time_as_a_reschedule_has() -> None:
    story = states.dead_letter()
    past = At("@1", None, None, None)
    assert story.say(Replay("m", past), instant=1).reason is Reason.PAST
    far = In("x", story.limits.horizon_ns + 1)
    assert story.say(Replay("m", far)).reason is Reason.TOO_FAR
    assert story.say(Replay("m", In("x", -1))).reason is Reason.LIMIT
    assert story.say(Replay("m", if_version=99)).reason is Reason.VERSION_CONFLICT
    assert story.say(Replay("m", In("1m", 60 * SECOND))).deliver_at == story.now + 60 * SECOND


def test_an_absolute_expiry_that_has_passed_is_not_lifted_by_a_replay() -> None:
    story = Story()
    story.own()
    stated = schedule(expiry=Expiry(at=At("@1", None, None, None)))
    story.say(stated, "schedule", expiry_instant=story.now + 60 * SECOND)
    story.attempt("permanent")
    story.now += 120 * SECOND
    assert story.say(Replay("m")).reason is Reason.EXPIRES_BEFORE_DELIVERY


def test_a_replayed_message_may_die_and_be_replayed_again() -> None:
    story = states.dead_letter()
    for generation in (1, 2, 3):
        story.say(Replay("m"))
        story.admit()
        assert story.end("permanent").condition == DeadLetter(Ending.PERMANENT)
        assert story.message().generation == generation
    assert story.message().key_generation == 0
