"""What owner records do. Each is judged alone against the state at its own position."""

from __future__ import annotations

from typing import assert_never

import msgspec

from nereus_cli.domain import settlement
from nereus_cli.domain.facts import Change, Facts, History, Place, Verdict
from nereus_cli.domain.instant import MILLISECOND
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import (
    Attempt,
    Cell,
    Condition,
    Expired,
    Held,
    Kind,
    Message,
    Publishing,
    Scheduled,
    Uncertain,
    cell,
)
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
        condition=Uncertain() if isinstance(message.condition, Uncertain) else Publishing(),
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
    if cell(Kind.ADMISSION, message.state) is Cell.STALE or message.waits is None:
        return False
    if message.generation != admission.generation:
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
    changed, settled = settlement.settle(message, attempt, outcome, place, limits)
    return Change(
        facts.head,
        message=changed,
        history=_line(message, place, "Outcome", f"attempt {attempt.number}: {outcome.side_effect} {outcome.code}"),
        attempts=(settled,),
        verdict=Verdict.TAKEN,
    )


def _expire(facts: Facts, expire: Expire, place: Place) -> Change:
    message = facts.message
    if message is None or message.generation != expire.generation:
        return Change(facts.head, verdict=Verdict.STALE)
    what = cell(Kind.EXPIRE, message.state)
    if message.expire_at is None or expire.earliest < message.expire_at or what is Cell.STALE:
        return Change(facts.head, verdict=Verdict.STALE)
    condition = _closed(message.condition) if what is Cell.CLOSE else Expired()
    if condition is None:
        return Change(facts.head, verdict=Verdict.STALE)
    changed = msgspec.structs.replace(message, condition=condition)
    return Change(facts.head, changed, history=_line(message, place, "Expire", ""), verdict=Verdict.TAKEN)


def _closed(was: Condition) -> Condition | None:
    """The first closing is the one that counts: None when there is one already."""
    match was:
        case Publishing(closing=""):
            return Publishing("EXPIRED")
        case Uncertain(closing=""):
            return Uncertain("EXPIRED")
        case _:
            return None


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
