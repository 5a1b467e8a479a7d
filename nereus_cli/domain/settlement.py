"""What an outcome makes of an attempt, and of the message it belongs to: published, another attempt, or an end."""

from __future__ import annotations

import msgspec

from nereus_cli.domain import retry
from nereus_cli.domain.facts import Place
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import (
    Attempt,
    Cell,
    Condition,
    DeadLetter,
    Expired,
    Kind,
    Message,
    Published,
    Publishing,
    RetryWait,
    Uncertain,
    cell,
)
from nereus_cli.domain.outcome import Code, Disposition, Ending, Risk, SideEffect
from nereus_cli.domain.records import Outcome


def settle(
    message: Message, attempt: Attempt, outcome: Outcome, place: Place, limits: Limits
) -> tuple[Message, Attempt]:
    """Both as they stand afterwards. The message moves, and its budget changes, only by an attempt of its current
    generation (I6)."""
    current = attempt.generation == message.generation
    spared = current and outcome.code in retry.NOT_BEGUN and message.uncounted < limits.uncounted_attempts_max
    settled = _settled(attempt, outcome, counted=not spared)
    still_open = tuple(
        settled if a.attempt_id == attempt.attempt_id else a
        for a in message.open_attempts
        if outcome.side_effect is SideEffect.UNKNOWN or a.attempt_id != attempt.attempt_id
    )
    changed = msgspec.structs.replace(
        message,
        open_attempts=still_open,
        published=message.published + int(outcome.side_effect is SideEffect.PUBLISHED),
        risk=risk_of(message.published + int(outcome.side_effect is SideEffect.PUBLISHED), still_open),
        counted=message.counted - int(spared),
        uncounted=message.uncounted + int(spared),
    )
    if current and cell(Kind.OUTCOME, message.state) is Cell.SETTLE:
        changed = msgspec.structs.replace(changed, condition=_after(changed, attempt, outcome, place))
    return changed, settled


def _settled(attempt: Attempt, outcome: Outcome, *, counted: bool) -> Attempt:
    return msgspec.structs.replace(
        attempt,
        side_effect=outcome.side_effect,
        basis=outcome.basis,
        disposition=outcome.disposition,
        code=outcome.code,
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        http_status=outcome.http_status,
        errno=outcome.errno,
        started_at=outcome.started_at,
        ended_at=outcome.ended_at,
        detail=outcome.detail,
        usage=outcome.usage,
        counted=counted,
    )


def risk_of(published: int, still_open: tuple[Attempt, ...]) -> Risk:
    """Two known effects are a duplicate; an effect that is unknown beside another one may be."""
    if published > 1:
        return Risk.CONFIRMED
    unknown = sum(a.side_effect is SideEffect.UNKNOWN for a in still_open)
    return Risk.POSSIBLE if published + unknown > 1 else Risk.NONE


def ended(closing: str) -> DeadLetter | Expired:
    """How a message ends that was to have no further admission."""
    return DeadLetter(Ending.STOPPED) if closing == Ending.STOPPED else Expired()


def budget_left(message: Message, place: Place) -> bool:
    """Whether the policy allows one more attempt now."""
    if message.counted >= retry.max_attempts(message.policy):
        return False
    begun, allowed = message.first_admitted_at, message.policy.retry_for_ns
    return begun is None or allowed is None or place.persisted_at <= begun + allowed


def _after(message: Message, attempt: Attempt, outcome: Outcome, place: Place) -> Condition:
    """Where a message goes when an attempt of its current generation is settled. While another is UNKNOWN it stays
    uncertain, whatever its further attempts do short of publishing."""
    if outcome.side_effect is SideEffect.PUBLISHED:
        return Published()
    was = message.condition
    closing = was.closing if isinstance(was, Publishing | Uncertain) else ""
    unknown = [a for a in message.open_attempts if a.generation == message.generation]
    if closing:
        return ended(closing) if all(a.given_up for a in unknown) else Uncertain(closing)
    if not unknown:
        return _next(message, outcome, place)
    if all(a.given_up for a in unknown):
        return DeadLetter(Ending.GIVEN_UP)
    wait = _seemly_wait(attempt, outcome, place)
    if wait is None or not retry.despite_uncertainty(message.policy, message.key):
        return Uncertain()
    further = _next(message, outcome, place, at_least=wait)
    return Uncertain(again=further) if isinstance(further, RetryWait) else DeadLetter(Ending.UNCERTAIN_EXHAUSTED)


def _seemly_wait(attempt: Attempt, outcome: Outcome, place: Place) -> int | None:
    """How long a child without evidence may still run on this boot: as long as its timeout and grace leave. None:
    without a timeout there is no telling, and a person has to."""
    if outcome.code is not Code.NO_EVIDENCE or attempt.boot_id != place.boot_id:
        return 0
    if attempt.timeout_ns is None:
        return None
    length = attempt.timeout_ns + attempt.grace_ns
    return min(max(attempt.admitted_at + length - place.persisted_at, 0), length)


def _next(message: Message, outcome: Outcome, place: Place, *, at_least: int = 0) -> RetryWait | DeadLetter:
    """The wait before one more attempt, if the outcome and the budget allow one."""
    policy = message.policy
    if outcome.disposition is Disposition.PERMANENT:
        return DeadLetter(Ending.PERMANENT)
    if message.counted >= retry.max_attempts(policy):
        return DeadLetter(Ending.EXHAUSTED)
    wait = max(retry.delay_ns(policy, message.counted + message.uncounted, outcome.attempt_id), at_least)
    asked = min(outcome.retry_after_ns or 0, retry.RETRY_AFTER_MAX_NS)
    if policy.retry_for_ns is not None:
        begun = place.persisted_at if message.first_admitted_at is None else message.first_admitted_at
        left = begun + policy.retry_for_ns - place.persisted_at
        if wait > left:
            return DeadLetter(Ending.EXHAUSTED)
        asked = min(asked, left)
    return RetryWait(place.persisted_at, max(wait, asked))
