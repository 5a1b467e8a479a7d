"""A person's verdict on one attempt whose effect is unknown: the only thing beside evidence that settles it (I8).

An attempt judged *retry* stays unknown and may be judged again; one that was given up stays unknown for good and leaves
the lists. A message moves only by an attempt of its current generation, and not when it has ended: then only its risk
and what is listed change.
"""

from __future__ import annotations

import msgspec

from nereus_cli.domain.answering import Refused, applied
from nereus_cli.domain.facts import Change, Facts, Place
from nereus_cli.domain.message import (
    GIVE_UP,
    NOT_PUBLISHED,
    PUBLISHED,
    RETRY,
    TERMINAL,
    Attempt,
    Condition,
    DeadLetter,
    Message,
    Published,
    Publishing,
    Resolution,
    RetryWait,
    State,
    Uncertain,
)
from nereus_cli.domain.outcome import Basis, Disposition, Ending, Reason, SideEffect
from nereus_cli.domain.records import Command, Resolve
from nereus_cli.domain.settlement import budget_left, ended, risk_of


def resolve(facts: Facts, command: Command, stated: Resolve, message: Message, place: Place) -> Change:
    """The change that a verdict makes. Raises Refused."""
    by = stated.by or command.context.requested_by
    if stated.attempt == 0:
        return _seen_off(facts, command, stated, message, place, by)
    attempt = _named(message, stated)
    if attempt is None:
        return applied(facts, command, place, message, event="Resolve", already=True)
    if stated.verdict == RETRY:
        _check_retry(message, attempt)
    judged = _judged(attempt, Resolution(stated.verdict, stated.evidence, by, place.persisted_at, place.position))
    still_open = tuple(
        judged if a.attempt_id == attempt.attempt_id else a
        for a in message.open_attempts
        if a.attempt_id != attempt.attempt_id or judged.side_effect is SideEffect.UNKNOWN
    )
    published = message.published + int(stated.verdict == PUBLISHED)
    changed = msgspec.structs.replace(
        message,
        state_version=message.state_version + 1,
        open_attempts=still_open,
        published=published,
        risk=risk_of(published, still_open),
        settled=(*(pair for pair in message.settled if pair[0] != attempt.number), (attempt.number, stated.verdict)),
    )
    if attempt.generation == message.generation and message.state is State.UNCERTAIN:
        changed = msgspec.structs.replace(changed, condition=_after(changed, stated.verdict, place))
    detail = f"attempt {attempt.number}: {stated.verdict}, by {by}: {stated.evidence}"
    return applied(facts, command, place, changed, event="Resolve", detail=detail, attempts=(judged,))


def _named(message: Message, stated: Resolve) -> Attempt | None:
    """The attempt that is judged, or None when the same was said of it before. Raises Refused."""
    before = dict(message.settled).get(stated.attempt)
    if not 1 <= stated.attempt <= message.attempts:
        raise Refused(Reason.NO_SUCH_ATTEMPT)
    attempt = next((a for a in message.open_attempts if a.number == stated.attempt), None)
    if attempt is not None and attempt.side_effect is None:
        raise Refused(Reason.TOO_LATE_PUBLISHING)
    if before == stated.verdict:
        return None
    if attempt is None or before == GIVE_UP:
        raise Refused(Reason.ALREADY_SETTLED)
    return attempt


def _check_retry(message: Message, attempt: Attempt) -> None:
    """One more admission is for a message that waits for it, and for one that may have one."""
    if message.state in TERMINAL:
        raise Refused(Reason(f"TOO_LATE_{message.state}"))
    if attempt.generation != message.generation:
        raise Refused(Reason.NO_SUCH_ATTEMPT)
    if any(a.side_effect is None for a in message.open_attempts):
        raise Refused(Reason.TOO_LATE_PUBLISHING)
    if isinstance(message.condition, Uncertain) and message.condition.closing:
        raise Refused(Reason.TOO_LATE_UNCERTAIN)


def _judged(attempt: Attempt, resolution: Resolution) -> Attempt:
    judged = msgspec.structs.replace(attempt, resolution=resolution)
    if resolution.verdict == PUBLISHED:
        return msgspec.structs.replace(judged, side_effect=SideEffect.PUBLISHED, disposition=Disposition.NONE)
    if resolution.verdict == NOT_PUBLISHED:
        absent = SideEffect.NOT_PUBLISHED
        return msgspec.structs.replace(
            judged, side_effect=absent, basis=Basis.PROVEN_ABSENT, disposition=Disposition.RETRIABLE
        )
    return judged


def _after(message: Message, verdict: str, place: Place) -> Condition:
    """Where an uncertain message goes; ``message`` has what is still open by now."""
    if verdict == PUBLISHED:
        return Published()
    if verdict == RETRY:
        return Uncertain(again=RetryWait(place.persisted_at, 0))
    was = message.condition
    closing = was.closing if isinstance(was, Uncertain) else ""
    current = [a for a in message.open_attempts if a.generation == message.generation]
    unknown = [a for a in current if a.side_effect is not None]
    if not all(a.given_up for a in unknown):
        return was
    if len(unknown) < len(current):
        # Another attempt is in progress: its end decides.
        return Uncertain(closing) if unknown else Publishing(closing)
    if closing:
        return ended(closing)
    if unknown:
        return DeadLetter(Ending.GIVEN_UP)
    return RetryWait(place.persisted_at, 0) if budget_left(message, place) else DeadLetter(Ending.EXHAUSTED)


def _seen_off(facts: Facts, command: Command, stated: Resolve, message: Message, place: Place, by: str) -> Change:
    """A dead letter that nobody has to look at any more."""
    if stated.verdict != GIVE_UP or message.state is not State.DEAD_LETTER:
        raise Refused(Reason.NO_SUCH_ATTEMPT)
    if message.given_up:
        return applied(facts, command, place, message, event="Resolve", already=True)
    changed = msgspec.structs.replace(message, given_up=True, state_version=message.state_version + 1)
    return applied(facts, command, place, changed, event="Resolve", detail=f"seen off by {by}: {stated.evidence}")
