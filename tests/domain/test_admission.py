"""Admission: when the fold says ADMITTED, when STALE; expiry and lateness beside it (design §9, I2, I3)."""

from __future__ import annotations

from typing import Any

import pytest

from nereus_cli.domain.facts import Verdict
from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.message import Held, Publishing, Scheduled, State, Work
from nereus_cli.domain.records import Cancel, Expire, Expiry, Hold, In, LateHold, Now, Release, Reschedule, Stop
from tests.domain.states import retry_wait, scheduled, uncertain_publishing
from tests.domain.story import BOOT, NOW, told

DUE = NOW + 10 * SECOND


def test_an_admission_is_an_attempt_with_its_number_and_its_clock_evidence() -> None:
    story = told(policy={"timeout_ns": 30 * SECOND})
    story.now = DUE + 7
    assert story.do(story.admission(attempt_id="a", earliest=DUE, latest=DUE + 3)) is Verdict.ADMITTED
    message = story.message()
    [attempt] = message.open_attempts
    assert (attempt.attempt_id, attempt.number, attempt.generation, attempt.admitted_position) == ("a", 1, 0, 3)
    assert (attempt.admitted_at, attempt.lateness_ns, attempt.grace_ns, attempt.timeout_ns) == (
        DUE + 7, 3, 10 * SECOND, 30 * SECOND,
    )  # fmt: skip
    assert (attempt.boot_id, attempt.admitted_monotonic_ns) == (BOOT, DUE + 7 - NOW)
    assert (attempt.earliest, attempt.latest, attempt.side_effect, attempt.kill) == (DUE, DUE + 3, None, False)
    assert (message.condition, message.work, message.attempts, message.counted) == (
        Publishing(), Work.PUBLISHING, 1, 1,
    )  # fmt: skip
    assert (message.last_attempt, message.first_admitted_at) == (("a", 1), DUE + 7)
    assert story.fold.batch.attempts["m", 1] == attempt


@pytest.mark.parametrize(
    ("earliest", "latest", "verdict"),
    [
        (DUE - 1, DUE + 5, Verdict.STALE),
        (DUE, DUE, Verdict.ADMITTED),
        (DUE, DUE + 60 * SECOND - 1, Verdict.ADMITTED),
        (DUE, DUE + 60 * SECOND, Verdict.STALE),
        (DUE + 60 * SECOND, DUE + 60 * SECOND, Verdict.STALE),
    ],
)
def test_never_early_and_never_at_or_behind_the_last_instant(earliest: int, latest: int, verdict: Verdict) -> None:
    story = told(expiry=Expiry(after_ns=60 * SECOND))
    assert story.do(story.admission(earliest=earliest, latest=latest)) is verdict
    assert (story.message().attempts, len(story.fold.batch.attempts)) == ((1, 1) if verdict == "ADMITTED" else (0, 0))


@pytest.mark.parametrize(
    "wrong",
    [{"message_id": "n"}, {"generation": 1}, {"generation": -1}, {"descriptor_hash": b"other"}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_an_admission_of_something_else_is_stale(wrong: dict[str, Any]) -> None:
    story = told()
    before = story.message()
    assert story.do(story.admission(**wrong)) is Verdict.STALE
    assert story.message() == before


@pytest.mark.parametrize(
    "between",
    [Cancel("m"), Reschedule("m", In("1s", SECOND)), Hold("m"), Stop("m")],
    ids=lambda stated: type(stated).__name__,
)
def test_whatever_comes_first_in_the_log_makes_it_stale(between: Cancel | Reschedule | Hold | Stop) -> None:
    for story in (scheduled(), retry_wait()):
        decided = story.admission()
        story.now = decided.earliest
        story.say(between)
        attempts = story.message().attempts
        assert story.do(decided) is Verdict.STALE
        assert (story.message().attempts, story.message().work is Work.PUBLISHING) == (attempts, False)


def test_an_expiry_that_comes_first_makes_it_stale_and_the_other_way_round_it_only_closes() -> None:
    story = scheduled()
    expire_at = story.message().expire_at
    assert expire_at is not None
    admission = story.admission(earliest=expire_at - 1, latest=expire_at - 1)
    story.do(Expire("m", 0, expire_at))
    assert story.do(admission) is Verdict.STALE
    story = scheduled()
    assert story.do(admission) is Verdict.ADMITTED
    assert story.do(Expire("m", 0, expire_at)) is Verdict.TAKEN
    assert story.message().condition == Publishing("EXPIRED")


def test_of_two_admissions_in_one_batch_the_first_counts() -> None:
    story = told()
    first, second = story.admission(attempt_id="one"), story.admission(attempt_id="two")
    assert (story.do(first), story.do(second)) == (Verdict.ADMITTED, Verdict.STALE)
    assert [a.attempt_id for a in story.message().open_attempts] == ["one"]


def test_a_retry_follows_the_length_of_its_back_off_and_not_the_wall() -> None:
    story = retry_wait()
    back = story.message().deliver_at - 3600 * SECOND
    story.now = back
    assert story.do(story.admission(earliest=back, latest=back)) is Verdict.ADMITTED
    assert story.message().open_attempts[0].lateness_ns == 0


def test_a_new_generation_waits_for_its_own_instant_again() -> None:
    story = retry_wait()
    story.say(Reschedule("m", In("20s", 20 * SECOND)))
    early = story.message().deliver_at - 1
    assert story.do(story.admission(earliest=early, latest=early)) is Verdict.STALE


def test_a_further_attempt_of_an_uncertain_message_keeps_it_uncertain() -> None:
    story = uncertain_publishing()
    message = story.message()
    assert (message.state, message.work, message.timer) == (State.UNCERTAIN, Work.PUBLISHING, None)
    assert [a.number for a in message.open_attempts] == [1, 2]
    assert story.do(story.admission()) is Verdict.STALE


# ------------------------------------------------------------------------------------------------------------ expiry


@pytest.mark.parametrize(
    ("generation", "offset", "verdict"), [(0, 0, Verdict.TAKEN), (0, -1, Verdict.STALE), (1, 0, Verdict.STALE)]
)
def test_only_a_reading_that_has_surely_passed_expires(generation: int, offset: int, verdict: Verdict) -> None:
    story = scheduled()
    expire_at = story.message().expire_at
    assert expire_at is not None
    assert story.do(Expire("m", generation, expire_at + offset)) is verdict
    assert (story.message().state is State.EXPIRED) is (verdict is Verdict.TAKEN)


def test_what_has_no_last_instant_never_expires() -> None:
    story = told()
    assert story.do(Expire("m", 0, NOW * 2)) is Verdict.STALE
    assert story.do(Expire("unknown", 0, NOW * 2)) is Verdict.STALE


def test_a_second_closing_changes_nothing() -> None:
    story = scheduled()
    story.admit()
    expire_at = story.message().expire_at
    assert expire_at is not None
    assert story.do(Expire("m", 0, expire_at)) is Verdict.TAKEN
    assert story.do(Expire("m", 0, expire_at)) is Verdict.STALE
    story.say(Stop("m"))
    assert story.message().condition == Publishing("EXPIRED")
    assert story.end("retriable").state is State.EXPIRED


# ---------------------------------------------------------------------------------------------------------- lateness


@pytest.mark.parametrize(
    ("late", "verdict"), [(5 * SECOND, Verdict.STALE), (5 * SECOND + 1, Verdict.TAKEN), (-1, Verdict.STALE)]
)
def test_late_is_later_than_the_policy_allows(late: int, verdict: Verdict) -> None:
    story = told(late_after_ns=5 * SECOND)
    assert story.do(LateHold("m", 0, DUE + late)) is verdict
    assert story.message().condition == (Held("LATE", Scheduled()) if verdict is Verdict.TAKEN else Scheduled())


def test_lateness_is_judged_once_per_generation() -> None:
    story = told(late_after_ns=5 * SECOND)
    late = LateHold("m", 0, DUE + 6 * SECOND)
    assert story.do(late) is Verdict.TAKEN
    story.say(Release("m"))
    assert story.do(late) is Verdict.STALE
    assert story.message().state is State.SCHEDULED
    story.say(Reschedule("m", Now()))
    again = story.message().deliver_at + 6 * SECOND
    assert story.do(LateHold("m", 0, again)) is Verdict.STALE
    assert story.do(LateHold("m", 1, again)) is Verdict.TAKEN


def test_lateness_is_judged_before_the_first_admission_only_and_where_a_policy_asks_for_it() -> None:
    late = NOW + 3600 * SECOND
    assert retry_wait().do(LateHold("m", 0, late)) is Verdict.STALE
    assert told().do(LateHold("m", 0, late)) is Verdict.STALE
    assert told().do(LateHold("unknown", 0, late)) is Verdict.STALE
