"""What holds after every record of every log (design §14), against a ledger kept by hand."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given

from nereus_cli.domain.facts import Result, Verdict
from nereus_cli.domain.limits import TINY
from nereus_cli.domain.message import TERMINAL, Message, RetryWait, State, Work
from nereus_cli.domain.outcome import Decision, Reason, SideEffect
from nereus_cli.domain.records import Admission, Cancel, Command, Expire, LateHold, Outcome, Reschedule
from nereus_cli.fold import Applied, Fold, Nothing
from tests.domain.story import Story
from tests.fold.ledger import Ledger, Line
from tests.fold.scripts import stories

TIMELINE, NONE, PUBLISHING = Work.TIMELINE, Work.NONE, Work.PUBLISHING
ALLOWED = {
    (State.SCHEDULED, TIMELINE), (State.RETRY_WAIT, TIMELINE), (State.HELD, NONE), (State.PUBLISHING, PUBLISHING),
    (State.UNCERTAIN, NONE), (State.UNCERTAIN, TIMELINE), (State.UNCERTAIN, PUBLISHING), (State.PUBLISHED, NONE),
    (State.EXPIRED, NONE), (State.CANCELED, NONE), (State.DEAD_LETTER, NONE),
}  # fmt: skip


def told_again(story: Story) -> Iterator[tuple[Applied, Message | None, Ledger, Fold]]:
    """Each record with what it did, the message before it, and the ledger from before it."""
    fold, ledger = Fold(Nothing(), TINY), Ledger()
    for record in story.records:
        before = dict(fold.batch.messages)
        [applied] = fold.apply([record])
        item = applied.record
        name = getattr(item.stated if isinstance(item, Command) else item, "message_id", "")
        yield applied, before.get(name), ledger, fold
        ledger.write(applied)


@given(stories)
def test_every_message_has_one_state_and_one_work(story: Story) -> None:
    for applied, _, _, _ in told_again(story):
        message = applied.change.message
        if message is None:
            continue
        assert (message.state, message.work) in ALLOWED
        running = [a for a in message.open_attempts if a.side_effect is None]
        assert len(running) == (message.work is PUBLISHING)
        assert (message.waits is not None) is (message.work is TIMELINE)
        held_until = message.state is State.HELD and message.expire_at is not None
        assert (message.timer is not None) is (message.work is TIMELINE or held_until)
        assert message.timer is None or -(1 << 63) <= message.timer < 1 << 63
        unknown = [a for a in message.open_attempts if a.side_effect is SideEffect.UNKNOWN]
        current = any(a.generation == message.generation for a in unknown)
        assert (message.state is State.UNCERTAIN) <= current


@given(stories)
def test_cancel_and_reschedule_are_applied_exactly_when_the_ledger_is_clean(story: Story) -> None:
    """I9."""
    for applied, before, ledger, _ in told_again(story):
        item, result = applied.record, applied.change.result
        if not isinstance(item, Command) or not isinstance(item.stated, Cancel | Reschedule) or result is None:
            continue
        account = ledger.accounts.get(item.stated.message_id)
        assert (account is None) is (before is None) is (result.reason is Reason.NOT_FOUND)
        if account is None or before is None:
            continue
        if item.stated.if_version not in (None, account.version):
            assert result.reason is Reason.VERSION_CONFLICT
        elif before.state in TERMINAL:
            again = isinstance(item.stated, Cancel) and before.state is State.CANCELED
            assert (result.already, result.reason) == (again, None if again else f"TOO_LATE_{before.state}")
        else:
            _check_exactness(item.stated, result, clean=account.clean, last=account.lines[-1:])


def _check_exactness(stated: Cancel | Reschedule, result: Result, *, clean: bool, last: list[Line]) -> None:
    assert (result.decision is Decision.APPLIED) is clean, stated
    if not clean:
        assert result.reason in (Reason.TOO_LATE_PUBLISHING, Reason.TOO_LATE_UNCERTAIN)
        assert result.attempt is not None
        assert [result.attempt[0]] == [line.attempt_id for line in last]


@given(stories)
def test_what_was_cancelled_or_replaced_is_never_admitted(story: Story) -> None:
    """I9, its second half, and I2, I3."""
    for applied, before, ledger, _ in told_again(story):
        item = applied.record
        if not isinstance(item, Admission) or applied.change.verdict is not Verdict.ADMITTED:
            continue
        assert before is not None
        assert before.state not in TERMINAL
        assert item.generation == ledger.accounts[item.message_id].generation
        first = all(line.generation < item.generation for line in ledger.accounts[item.message_id].lines)
        assert not first or item.earliest >= before.deliver_at
        assert before.expire_at is None or item.latest < before.expire_at


@given(stories)
def test_effects_are_never_more_than_admissions_and_two_need_an_unknown_one(story: Story) -> None:
    """I7; and what is UNKNOWN stays so until somebody settles it (I8)."""
    ledger = Ledger()
    for applied, _, current, fold in told_again(story):
        ledger = current
        message = applied.change.message
        if message is not None:
            rows = [a for (name, _), a in fold.batch.attempts.items() if name == message.message_id]
            assert sorted(a.number for a in rows) == list(range(1, message.attempts + 1))
            open_rows = [a for a in rows if a.side_effect in (None, SideEffect.UNKNOWN)]
            assert sorted(open_rows, key=lambda a: a.number) == list(message.open_attempts)
    for account in ledger.accounts.values():
        published = account.effects(SideEffect.PUBLISHED)
        assert published <= len(account.lines)
        assert published <= 1 or account.effects(SideEffect.UNKNOWN)


@given(stories)
def test_a_terminal_decision_is_immutable_and_versions_are_moved_by_people_only(story: Story) -> None:
    for applied, before, ledger, _ in told_again(story):
        after = applied.change.message
        if before is None or after is None:
            continue
        if before.state in TERMINAL:
            assert after.condition == before.condition
        if not isinstance(applied.record, Command):
            assert (after.state_version, after.generation) == (before.state_version, before.generation)
        else:
            assert after.state_version == before.state_version + 1 == ledger.accounts[after.message_id].version + 1


@given(stories)
def test_an_attempt_counts_against_its_generation_once(story: Story) -> None:
    for applied, _, _, fold in told_again(story):
        message = applied.change.message
        if message is None:
            continue
        rows = [
            a for (name, _), a in fold.batch.attempts.items()
            if name == message.message_id and a.generation == message.generation
        ]  # fmt: skip
        assert message.counted == sum(a.counted for a in rows)
        assert message.uncounted == sum(not a.counted for a in rows) <= TINY.uncounted_attempts_max
        if message.state is State.RETRY_WAIT:
            assert isinstance(message.condition, RetryWait)
            assert message.counted < (message.policy.max_attempts or 1)


@given(stories)
def test_what_is_void_or_stale_changes_no_message(story: Story) -> None:
    """I11, I6."""
    chain = 0
    for applied, before, _, fold in told_again(story):
        change = applied.change
        assert change.head.applied == applied.position
        if change.verdict in (Verdict.VOID, Verdict.STALE):
            assert (change.message, change.attempts, change.history, change.descriptor) == (None, (), None, None)
        if isinstance(applied.record, Admission | Outcome | Expire | LateHold) and before is None:
            assert change.verdict in (Verdict.VOID, Verdict.STALE)
        links = change.verdict is not None and change.verdict is not Verdict.VOID
        chain = applied.position if links else chain
        assert fold.head.owner_position == chain
