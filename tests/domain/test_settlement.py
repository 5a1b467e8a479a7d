"""What becomes of a message when an attempt ends: the outcome tables, budgets, risk (design §6, §9; I6, I7, I8)."""

from __future__ import annotations

import msgspec
import pytest

from nereus_cli.domain.apply import Chain, apply_mutation
from nereus_cli.domain.facts import Facts, Place, Verdict
from nereus_cli.domain.instant import DAY, SECOND
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.message import (
    DeadLetter,
    Expired,
    Message,
    Published,
    Publishing,
    RetryWait,
    State,
    Uncertain,
    Work,
)
from nereus_cli.domain.outcome import Basis, Code, Disposition, Ending, Risk, SideEffect
from nereus_cli.domain.records import Expire, Expiry, Outcome, Stop, Usage
from tests.domain.states import publishing, stopping, uncertain_publishing, uncertain_waiting
from tests.domain.story import ENDS, NOW, Story, told

HOUR = 3600 * SECOND
ONE = {"max_attempts": 1}
THREE = {"max_attempts": 3}
WAIT = {"max_attempts": 3, "on_uncertain": "wait"}
RETRY_ONE = {"max_attempts": 1, "on_uncertain": "retry"}


def ran(how: str, policy: dict[str, object]) -> Message:
    return told(policy=policy).attempt(how)


@pytest.mark.parametrize(
    ("how", "policy", "state", "ending"),
    [
        ("published", ONE, "PUBLISHED", None),
        ("permanent", THREE, "DEAD_LETTER", Ending.PERMANENT),
        ("retriable", ONE, "DEAD_LETTER", Ending.EXHAUSTED),
        ("retriable", {}, "DEAD_LETTER", Ending.EXHAUSTED),
        ("retriable", THREE, "RETRY_WAIT", None),
        ("door", ONE, "RETRY_WAIT", None),
        ("unknown", ONE, "UNCERTAIN", None),
        ("unknown", WAIT, "UNCERTAIN", None),
        ("unknown", THREE, "UNCERTAIN", None),
        ("unknown", RETRY_ONE, "DEAD_LETTER", Ending.UNCERTAIN_EXHAUSTED),
    ],
)
def test_where_one_attempt_leads(how: str, policy: dict[str, object], state: str, ending: Ending | None) -> None:
    message = ran(how, policy)
    assert (message.state.value, getattr(message.condition, "ending", None)) == (state, ending)
    assert [a.side_effect for a in message.open_attempts] == ([SideEffect.UNKNOWN] if how == "unknown" else [])
    assert message.risk is Risk.NONE


@pytest.mark.parametrize(
    ("policy", "key", "waits"),
    [
        ({}, None, False),
        (ONE, None, False),
        (THREE, None, True),
        (THREE, "k", False),
        (WAIT, None, False),
        ({"max_attempts": 3, "on_uncertain": "probe"}, None, False),
        ({"max_attempts": 3, "on_uncertain": "retry"}, None, True),
    ],
)
def test_whether_an_unknown_effect_is_followed_by_another_attempt(
    policy: dict[str, object], key: str | None, waits: bool
) -> None:
    message = told(policy=policy, key=key).attempt("unknown")
    assert message.state is State.UNCERTAIN
    assert message.work is (Work.TIMELINE if waits else Work.NONE)
    assert (message.timer is not None) is waits
    assert (message.waits is not None) is waits


def test_an_outcome_is_kept_in_full() -> None:
    story = publishing()
    usage = Usage(user_s=0.5, stdout_bytes=3)
    story.end("retriable", exit_code=3, errno=7, started_at=1, ended_at=2, detail="no", usage=usage, http_status=9)
    row = story.fold.batch.attempts["m", 1]
    assert (row.side_effect, row.basis, row.disposition, row.code) == (
        SideEffect.NOT_PUBLISHED, Basis.REFUSED, Disposition.RETRIABLE, Code.EXIT_NONZERO,
    )  # fmt: skip
    assert (row.exit_code, row.signal, row.errno, row.started_at, row.ended_at, row.detail, row.http_status) == (
        3, None, 7, 1, 2, "no", 9,
    )  # fmt: skip
    assert (row.usage, row.counted) == (usage, True)
    assert story.fold.batch.history[-1].detail == "attempt 1: NOT_PUBLISHED EXIT_NONZERO"


def test_an_attempt_has_one_outcome() -> None:
    for how in ("published", "retriable", "unknown"):
        story = told(policy=WAIT)
        attempt = story.admit()
        before = story.end(how)
        again = Outcome(message_id="m", attempt_id=attempt.attempt_id, **ENDS["published"])
        assert story.do(again) is Verdict.STALE
        assert story.message() == before


def test_an_outcome_of_nothing_is_stale() -> None:
    story = publishing()
    before = story.message()
    for name, attempt_id in (("m", "other"), ("n", before.open_attempts[0].attempt_id)):
        assert story.do(Outcome(message_id=name, attempt_id=attempt_id, **ENDS["published"])) is Verdict.STALE
    assert story.message() == before


# ------------------------------------------------------------------------------------------------------------- budget


def test_every_admission_counts_until_the_budget_is_spent() -> None:
    story = told(policy=THREE)
    for counted in (1, 2):
        message = story.attempt("retriable")
        assert (message.state, message.counted) == (State.RETRY_WAIT, counted)
    assert story.attempt("retriable").condition == DeadLetter(Ending.EXHAUSTED)


def test_what_never_began_for_a_reason_of_ours_is_not_counted_at_most_five_times() -> None:
    story = told(policy=ONE)
    for uncounted in range(1, 6):
        message = story.attempt("door", code=(Code.DOOR_CLOSED, Code.NO_RESOURCES)[uncounted % 2])
        assert (message.state, message.counted, message.uncounted) == (State.RETRY_WAIT, 0, uncounted)
    message = story.attempt("door")
    assert (message.condition, message.counted, message.uncounted) == (DeadLetter(Ending.EXHAUSTED), 1, 5)
    assert [a.counted for _, a in sorted(story.fold.batch.attempts.items())] == [False] * 5 + [True]


def test_what_could_not_be_started_for_its_own_sake_is_counted() -> None:
    message = told(policy=THREE).attempt("door", code=Code.NOT_STARTABLE, disposition=Disposition.PERMANENT)
    assert (message.condition, message.counted) == (DeadLetter(Ending.PERMANENT), 1)


def test_the_back_off_grows_and_is_recorded() -> None:
    story = told(policy={"max_attempts": 30, "retry_base_ns": SECOND, "retry_max_ns": 8 * SECOND})
    for bound in (1, 2, 4, 8, 8, 8):
        condition = story.attempt("retriable").condition
        assert isinstance(condition, RetryWait)
        assert condition.since == story.now
        assert 0 < condition.delay_ns <= bound * SECOND
        assert story.message().timer == story.now + condition.delay_ns


@pytest.mark.parametrize("ended_at", [None, 1, NOW - HOUR, NOW + DAY])
def test_a_wait_begins_with_the_record_of_the_failure_whatever_the_command_says(
    ended_at: int | None,
) -> None:
    """An end may be found late, or by a clock that was wrong: neither shortens the wait, nor draws it out."""
    story = told(policy=THREE)
    condition = story.attempt("retriable", ended_at=ended_at).condition
    assert isinstance(condition, RetryWait)
    assert condition.since == story.now


def test_no_retry_begins_behind_the_end_of_retry_for() -> None:
    policy = {"max_attempts": 100, "retry_base_ns": 10 * SECOND, "retry_max_ns": 10 * SECOND, "retry_for_ns": HOUR}
    story = told(policy=policy)
    begun = story.admit().admitted_at
    while story.end("retriable").state is State.RETRY_WAIT:
        condition = story.message().condition
        assert isinstance(condition, RetryWait)
        assert condition.since + condition.delay_ns <= begun + HOUR
        story.admit()
        story.now += 600 * SECOND
    assert story.message().condition == DeadLetter(Ending.EXHAUSTED)
    assert 2 <= story.message().attempts < 100


@pytest.mark.parametrize(
    ("asked", "retry_for", "wanted"),
    [(HOUR, None, HOUR), (2 * DAY, None, DAY), (2 * DAY, HOUR, HOUR), (1, None, None), (0, None, None)],
)
def test_a_destination_may_ask_for_more_time_within_bounds(
    asked: int, retry_for: int | None, wanted: int | None
) -> None:
    message = told(policy={"max_attempts": 3, "retry_for_ns": retry_for}).attempt("retriable", retry_after_ns=asked)
    condition = message.condition
    assert isinstance(condition, RetryWait)
    assert condition.delay_ns == wanted or (wanted is None and 1 < condition.delay_ns <= SECOND)


# --------------------------------------------------------------------------------------------------------- uncertain


def test_a_retry_that_publishes_may_have_published_twice() -> None:
    story = uncertain_publishing()
    message = story.end("published")
    assert (message.condition, message.risk, message.work) == (Published(), Risk.POSSIBLE, Work.NONE)
    assert [a.number for a in message.open_attempts] == [1]


def test_while_one_effect_is_unknown_the_message_stays_uncertain() -> None:
    story = uncertain_publishing()
    message = story.end("retriable")
    assert isinstance(message.condition, Uncertain)
    assert (message.work, message.risk, message.counted) == (Work.TIMELINE, Risk.NONE, 2)
    assert story.attempt("unknown").condition == DeadLetter(Ending.UNCERTAIN_EXHAUSTED)
    assert (story.message().risk, [a.number for a in story.message().open_attempts]) == (Risk.POSSIBLE, [1, 3])


def test_a_permanent_refusal_beside_an_unknown_effect_ends_the_retries() -> None:
    assert uncertain_publishing().end("permanent").condition == DeadLetter(Ending.UNCERTAIN_EXHAUSTED)


def test_an_uncertain_message_that_waits_may_expire_into_waiting_for_a_person() -> None:
    story = uncertain_waiting()
    expire_at = story.message().expire_at
    assert expire_at is not None
    story.do(Expire("m", 0, expire_at))
    message = story.message()
    assert (message.condition, message.work, message.timer) == (Uncertain("EXPIRED"), Work.NONE, None)


def test_uncertain_or_not_the_timer_is_the_earlier_of_retry_and_expiry() -> None:
    story = told(policy=THREE | {"retry_base_ns": HOUR, "retry_max_ns": HOUR}, expiry=Expiry(after_ns=SECOND))
    message = story.attempt("unknown")
    assert message.timer == message.expire_at


@pytest.mark.parametrize(
    ("timeout", "reboots", "passed", "least"),
    [
        (60 * SECOND, False, 0, 70 * SECOND),
        (60 * SECOND, False, 65 * SECOND, 5 * SECOND),
        (60 * SECOND, False, 71 * SECOND, 0),
        (60 * SECOND, False, -HOUR, 70 * SECOND),
        (60 * SECOND, True, 0, 0),
        (None, True, 0, 0),
        (None, False, 0, None),
    ],
)
def test_a_child_that_may_still_run_is_given_its_time_before_the_next(
    timeout: int | None, reboots: bool, passed: int, least: int | None
) -> None:
    story = told(policy=THREE | {"timeout_ns": timeout, "retry_base_ns": 1, "retry_max_ns": 1})
    story.admit()
    story.now += passed
    story.boot = b"another-boot-id-" if reboots else story.boot
    condition = story.end("lost").condition
    assert isinstance(condition, Uncertain)
    if least is None:
        assert condition.again is None
        return
    assert condition.again is not None
    assert least <= condition.again.delay_ns <= max(least, SECOND // 1000)


# ---------------------------------------------------------------------------------------------------------- closings


@pytest.mark.parametrize(
    ("how", "stopped", "expired"),
    [
        ("published", Published(), Published()),
        ("retriable", DeadLetter(Ending.STOPPED), Expired()),
        ("permanent", DeadLetter(Ending.STOPPED), Expired()),
        ("door", DeadLetter(Ending.STOPPED), Expired()),
        ("unknown", Uncertain(Ending.STOPPED), Uncertain("EXPIRED")),
    ],
)
def test_what_was_closed_ends_without_a_further_admission(how: str, stopped: object, expired: object) -> None:
    message = stopping().end(how)
    assert (message.condition, message.timer) == (stopped, None)
    story = publishing()
    story.do(Expire("m", 0, story.message().expire_at or 0))
    message = story.end(how)
    assert (message.condition, message.timer) == (expired, None)


def test_a_stop_beside_an_unknown_effect_leaves_it_to_a_person() -> None:
    story = uncertain_publishing()
    story.say(Stop("m"))
    message = story.end("retriable")
    assert (message.condition, message.work) == (Uncertain(Ending.STOPPED), Work.NONE)
    assert story.do(story.admission()) is Verdict.STALE


# ----------------------------------------------------------------------------------------------- older generations


def _older(state: Message, outcome: str, *, code: Code | None = None) -> tuple[Message, Message]:
    """An outcome for an attempt of an older generation: the message before and after."""
    facts = Story()
    facts.own()
    changed = {"code": code} if code else {}
    record = msgspec.structs.replace(
        Outcome(message_id="m", attempt_id=state.open_attempts[0].attempt_id, **ENDS[outcome]), **changed
    )
    change = apply_mutation(Facts(facts.head, None, state), record, Chain(1, 1), Place(2, NOW, b"", 0), PRODUCTION)
    assert change.verdict is Verdict.TAKEN
    assert change.message is not None
    return state, change.message


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("condition", [Publishing(), Uncertain(), Published()], ids=lambda c: type(c).__name__)
def test_an_older_generation_changes_only_its_own_obligation(
    how: str, condition: Publishing | Uncertain | Published
) -> None:
    message = publishing().message()
    message = msgspec.structs.replace(message, generation=1, condition=condition, counted=1)
    before, after = _older(message, how)
    assert len(after.open_attempts) == (1 if ENDS[how]["side_effect"] == "UNKNOWN" else 0)
    assert after.published == (how == "published")
    assert msgspec.structs.replace(after, open_attempts=before.open_attempts, published=0) == before


def test_an_outcome_beside_an_older_unknown_one_raises_the_risk() -> None:
    message = uncertain_publishing().message()
    first, second = message.open_attempts
    message = msgspec.structs.replace(message, generation=1, open_attempts=(second, first))
    for how, risk in (("published", Risk.POSSIBLE), ("unknown", Risk.POSSIBLE), ("retriable", Risk.NONE)):
        assert _older(message, how)[1].risk is risk
    message = msgspec.structs.replace(message, published=1)
    assert _older(message, "published")[1].risk is Risk.CONFIRMED
