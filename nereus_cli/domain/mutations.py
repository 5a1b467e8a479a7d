"""What owner records do. Each is judged alone against the state at its own position."""

from __future__ import annotations

from typing import assert_never

import msgspec

from nereus_cli.domain import retry
from nereus_cli.domain.facts import Change, Facts, History, Place, Verdict
from nereus_cli.domain.instant import MILLISECOND
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import (
    Attempt,
    Cell,
    Condition,
    DeadLetter,
    Expired,
    Held,
    Kind,
    Message,
    Published,
    Publishing,
    RetryWait,
    Scheduled,
    Uncertain,
    cell,
)
from nereus_cli.domain.outcome import Disposition, Ending, Risk, SideEffect
from nereus_cli.domain.records import (
    Admission,
    Catalog,
    ClockStep,
    Evidence,
    Expire,
    Floor,
    LateHold,
    Mutation,
    Outcome,
    OwnerAcquired,
    Retire,
    TimeFence,
)


def decide(facts: Facts, mutation: Mutation, place: Place, limits: Limits) -> Change:
    """The change that an owner record of the current epoch makes."""
    match mutation:
        case Admission():
            return _admit(facts, mutation, place)
        case Outcome():
            return _settle(facts, mutation, place, limits)
        case Expire():
            return _expire(facts, mutation, place)
        case LateHold():
            return _hold_late(facts, mutation, place)
        case TimeFence(through=through):
            head = msgspec.structs.replace(facts.head, fence=max(facts.head.fence, through))
            return Change(head, verdict=Verdict.TAKEN)
        case ClockStep(before=before, after=after):
            step = (place.position, before, after)
            head = msgspec.structs.replace(facts.head, clock_steps=facts.head.clock_steps + 1, clock_step=step)
            return Change(head, verdict=Verdict.TAKEN)
        case OwnerAcquired() | Evidence() | Catalog() | Floor() | Retire():
            return Change(facts.head, verdict=Verdict.TAKEN)
        case _:
            assert_never(mutation)


def _admit(facts: Facts, admission: Admission, place: Place) -> Change:
    """ADMITTED only if nothing at a lower position forbids it; otherwise no attempt, no count, no effect."""
    message = facts.message
    if message is None or not _admissible(message, admission):
        return Change(facts.head, verdict=Verdict.STALE)
    attempt = Attempt(
        attempt_id=admission.attempt_id,
        number=message.attempts + 1,
        generation=message.generation,
        admitted_position=place.position,
        admitted_at=place.persisted_at,
        lateness_ns=max(admission.latest - message.deliver_at, 0),
        grace_ns=admission.grace_ns,
        timeout_ns=message.policy.timeout_ns,
        boot_id=place.boot_id,
        admitted_monotonic_ns=place.monotonic_ns,
        clock_mode=admission.clock_mode,
        earliest=admission.earliest,
        latest=admission.latest,
    )
    first = place.persisted_at if message.first_admitted_at is None else message.first_admitted_at
    changed = msgspec.structs.replace(
        message,
        condition=Publishing(),
        attempts=attempt.number,
        counted=message.counted + 1,
        open_attempts=(*message.open_attempts, attempt),
        last_attempt=(attempt.attempt_id, attempt.number),
        first_admitted_at=first,
    )
    return Change(
        facts.head,
        message=changed,
        history=_line(message, place, "Admission", f"attempt {attempt.number}"),
        attempts=(attempt,),
        verdict=Verdict.ADMITTED,
    )


def _admissible(message: Message, admission: Admission) -> bool:
    if cell(Kind.ADMISSION, message.state) is not Cell.ADMIT or message.generation != admission.generation:
        return False
    if message.descriptor_hash != admission.descriptor_hash:
        return False
    # A retry follows the length of its back-off, not the wall clock; only the first admission waits for the instant.
    if message.first_admitted_at is None and admission.earliest < message.deliver_at:
        return False
    return message.expire_at is None or admission.latest < message.expire_at


def _settle(facts: Facts, outcome: Outcome, place: Place, limits: Limits) -> Change:
    """An outcome settles the attempt it names, and moves the message only within the same generation (I6)."""
    message = facts.message
    attempt = next((a for a in message.open_attempts if a.attempt_id == outcome.attempt_id), None) if message else None
    if message is None or attempt is None or attempt.side_effect is not None:
        return Change(facts.head, verdict=Verdict.STALE)
    never_begun = outcome.code in retry.NOT_BEGUN and message.uncounted < limits.uncounted_attempts_max
    settled = _settled(attempt, outcome, counted=not never_begun)
    unknown = outcome.side_effect is SideEffect.UNKNOWN
    still_open = tuple(
        settled if a.attempt_id == attempt.attempt_id else a
        for a in message.open_attempts
        if unknown or a.attempt_id != attempt.attempt_id
    )
    changed = msgspec.structs.replace(
        message,
        open_attempts=still_open,
        risk=_risk(message, outcome, still_open),
        counted=message.counted - (1 if never_begun else 0),
        uncounted=message.uncounted + (1 if never_begun else 0),
    )
    if cell(Kind.OUTCOME, message.state) is Cell.SETTLE and attempt.generation == message.generation:
        changed = msgspec.structs.replace(changed, condition=_after(changed, outcome, place))
    return Change(
        facts.head,
        message=changed,
        history=_line(message, place, "Outcome", f"attempt {attempt.number}: {outcome.side_effect} {outcome.code}"),
        attempts=(settled,),
        verdict=Verdict.TAKEN,
    )


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


def _after(message: Message, outcome: Outcome, place: Place) -> Condition:
    """Where a message goes when an attempt of its current generation is settled."""
    was = message.condition
    closing = was.closing if isinstance(was, Publishing | Uncertain) else ""
    if outcome.side_effect is SideEffect.PUBLISHED:
        return Published()
    if any(a.generation == message.generation for a in message.open_attempts):
        return Uncertain(closing)
    if closing == Ending.STOPPED:
        return DeadLetter(Ending.STOPPED)
    if closing:
        return Expired()
    if outcome.disposition is Disposition.PERMANENT:
        return DeadLetter(Ending.PERMANENT)
    return _retry(message, outcome, place)


def _retry(message: Message, outcome: Outcome, place: Place) -> Condition:
    policy = message.policy
    if message.counted >= retry.max_attempts(policy):
        return DeadLetter(Ending.EXHAUSTED)
    failures = message.counted + message.uncounted
    wait = retry.delay_ns(policy, failures, outcome.attempt_id)
    if outcome.retry_after_ns is not None:
        wait = max(wait, outcome.retry_after_ns)
    begun = place.persisted_at if message.first_admitted_at is None else message.first_admitted_at
    if policy.retry_for_ns is not None and place.persisted_at + wait > begun + policy.retry_for_ns:
        return DeadLetter(Ending.EXHAUSTED)
    return RetryWait(place.persisted_at, wait)


def _risk(message: Message, outcome: Outcome, still_open: tuple[Attempt, ...]) -> Risk:
    """An effect beside another that is unknown is a possible duplicate; nothing here ever confirms one."""
    others = any(a.attempt_id != outcome.attempt_id and a.side_effect is SideEffect.UNKNOWN for a in still_open)
    effect = outcome.side_effect is not SideEffect.NOT_PUBLISHED
    return Risk.POSSIBLE if others and effect and message.risk is Risk.NONE else message.risk


def _expire(facts: Facts, expire: Expire, place: Place) -> Change:
    message = facts.message
    if message is None or message.generation != expire.generation:
        return Change(facts.head, verdict=Verdict.STALE)
    what = cell(Kind.EXPIRE, message.state)
    if message.expire_at is None or expire.earliest < message.expire_at or what is Cell.STALE:
        return Change(facts.head, verdict=Verdict.STALE)
    condition: Condition = Expired()
    if what is Cell.CLOSE:
        uncertain = isinstance(message.condition, Uncertain)
        condition = Uncertain("EXPIRED") if uncertain else Publishing("EXPIRED")
    changed = msgspec.structs.replace(message, condition=condition)
    return Change(facts.head, changed, history=_line(message, place, "Expire", ""), verdict=Verdict.TAKEN)


def _hold_late(facts: Facts, late: LateHold, place: Place) -> Change:
    message = facts.message
    if message is None or message.generation != late.generation or message.late_judged:
        return Change(facts.head, verdict=Verdict.STALE)
    was = message.condition
    limit = message.late_after_ns
    if not isinstance(was, Scheduled) or limit is None or late.earliest - message.deliver_at <= limit:
        return Change(facts.head, verdict=Verdict.STALE)
    changed = msgspec.structs.replace(message, condition=Held("LATE", was), late_judged=True)
    late_ms = (late.earliest - message.deliver_at) // MILLISECOND
    return Change(
        facts.head, changed, history=_line(message, place, "LateHold", f"{late_ms} ms late"), verdict=Verdict.TAKEN
    )


def _line(message: Message, place: Place, event: str, detail: str) -> History:
    return History(message.message_id, place.position, place.persisted_at, event, message.generation, detail)
