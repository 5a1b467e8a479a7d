"""What client commands do. Each gives exactly one result, applied or rejected for a stable reason."""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from nereus_cli.domain import identity
from nereus_cli.domain.checks import exceeds
from nereus_cli.domain.facts import Change, Descriptor, Facts, History, Place, Result
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import (
    Canceled,
    Cell,
    Condition,
    Held,
    Kind,
    Message,
    Publishing,
    RetryWait,
    Scheduled,
    Uncertain,
    cell,
)
from nereus_cli.domain.outcome import Decision, Ending, Reason
from nereus_cli.domain.records import (
    At,
    Cancel,
    Command,
    Expiry,
    Hold,
    In,
    Named,
    Release,
    Reschedule,
    Schedule,
    Shell,
    Stated,
    Stop,
    Target,
    Webhook,
    When,
)

_KINDS: Final[dict[type, Kind]] = {
    Cancel: Kind.CANCEL,
    Reschedule: Kind.RESCHEDULE,
    Hold: Kind.HOLD,
    Release: Kind.RELEASE,
    Stop: Kind.STOP,
}
_TAKES_EFFECT: Final = frozenset({Cell.CANCEL, Cell.NEW_GENERATION, Cell.HOLD, Cell.RELEASE, Cell.CLOSE, Cell.ALREADY})


class Refused(Exception):  # noqa: N818 -- a value that unwinds one decision, not an error
    """Carries the stable reason to the one place that makes it a result."""

    def __init__(self, reason: Reason) -> None:
        """``reason`` is what the person is told."""
        super().__init__(reason)
        self.reason = reason


def decide(facts: Facts, command: Command, place: Place, limits: Limits) -> Change:
    """The change a first command makes; the result says what was decided and why."""
    try:
        _check_identity(facts, command, place, limits)
        if isinstance(command.stated, Schedule):
            return _schedule(facts, command, command.stated, place, limits)
        return _control(facts, command, place, limits)
    except Refused as refusal:
        return _rejected(facts, command, place, refusal.reason)


def target_message(stated: Stated) -> str:
    """The message a command names, or the empty string."""
    return getattr(stated, "message_id", "")


def _check_identity(facts: Facts, command: Command, place: Place, limits: Limits) -> None:
    """A generated id is good for its window only, so that a fence may let its result be forgotten. That goes for
    the message a Schedule brings into being too, when another command id stands beside it."""
    ids = [(command.command_id, identity.COMMAND_PREFIX)]
    if isinstance(command.stated, Schedule):
        ids.append((command.stated.message_id, identity.MESSAGE_PREFIX))
    for made in (identity.made_at(name) for name, prefix in ids if identity.is_generated(name, prefix)):
        if made + limits.retry_window_ns <= max(facts.head.fence, place.persisted_at):
            raise Refused(Reason.OUTSIDE_HORIZON)
        if made > place.persisted_at + limits.id_ahead_ns:
            raise Refused(Reason.ID_FROM_FUTURE)


def _schedule(facts: Facts, command: Command, stated: Schedule, place: Place, limits: Limits) -> Change:
    if facts.message is not None:
        raise Refused(Reason.MESSAGE_CONFLICT)
    _check_content(command, stated.target, limits)
    deliver_at = _resolve(stated.when, command, place, limits, allow_past=stated.allow_past)
    message = Message(
        message_id=stated.message_id,
        created_position=place.position,
        order_position=place.position,
        descriptor_position=place.position,
        descriptor_hash=command.command_hash,
        generation=0,
        state_version=1,
        deliver_at=deliver_at,
        condition=Scheduled(),
        lane="shell",
        policy=stated.policy,
        expiry=stated.expiry,
        expire_at=_expiry(stated.expiry, command, deliver_at, limits),
        late_after_ns=stated.late_after_ns,
        key=stated.key,
        priority=stated.priority,
        tags=stated.tags,
        requested_by=command.context.requested_by,
        requested_at=command.context.requested_at,
        reason=command.context.reason,
        correlation=command.context.correlation,
    )
    return _applied(facts, command, place, message, event="Schedule", carries=True)


def _control(facts: Facts, command: Command, place: Place, limits: Limits) -> Change:
    stated, message = command.stated, facts.message
    kind = _KINDS.get(type(stated))
    if kind is None:
        raise Refused(Reason.LIMIT)
    _check_content(command, stated.target if isinstance(stated, Reschedule) else None, limits)
    if message is None:
        raise Refused(Reason.NOT_FOUND)
    wanted = getattr(stated, "if_version", None)
    if wanted is not None and wanted != message.state_version:
        raise Refused(Reason.VERSION_CONFLICT)
    what = cell(kind, message.state)
    if what not in _TAKES_EFFECT:
        raise Refused(Reason(what.value))
    if isinstance(stated, Reschedule):
        return _next_generation(facts, command, stated, message, place, limits)
    if what is Cell.ALREADY:
        return _applied(facts, command, place, message, event=kind.value, already=True)
    changed = _moved(msgspec.structs.replace(message, state_version=message.state_version + 1), what)
    change = _applied(facts, command, place, changed, event=kind.value)
    return _killed(change, changed) if isinstance(stated, Stop) and stated.kill else change


def _check_content(command: Command, target: Target | None, limits: Limits) -> None:
    """The worker does not trust the log blindly: types and limits are looked at again, and only what some part
    can deliver is taken."""
    if exceeds(command, limits):
        raise Refused(Reason.LIMIT)
    match target:
        case Named():
            raise Refused(Reason.DESTINATION_UNKNOWN)
        case Webhook():
            raise Refused(Reason.LIMIT)
        case Shell() | None:
            return
        case _:
            assert_never(target)


def _moved(message: Message, what: Cell) -> Message:
    """The simple moves of people: the condition alone changes. Of two closings the first one counts."""
    condition: Condition = Canceled()
    match what, message.condition:
        case Cell.HOLD, (Scheduled() | RetryWait()) as was:
            condition = Held("PERSON", was)
        case Cell.RELEASE, Held(was=was):
            condition = was
        case Cell.CLOSE, Publishing(closing=closing):
            condition = Publishing(closing or Ending.STOPPED)
        case Cell.CLOSE, Uncertain(closing=closing):
            condition = Uncertain(closing or Ending.STOPPED)
    return msgspec.structs.replace(message, condition=condition)


def _killed(change: Change, message: Message) -> Change:
    """Attempts in progress bear that their end was asked for: the next owner has to know it, too."""
    marked = {
        a.attempt_id: msgspec.structs.replace(a, kill=True) for a in message.open_attempts if a.side_effect is None
    }
    still_open = tuple(marked.get(a.attempt_id, a) for a in message.open_attempts)
    return msgspec.structs.replace(
        change,
        message=msgspec.structs.replace(message, open_attempts=still_open),
        attempts=tuple(marked.values()),
    )


def _next_generation(
    facts: Facts, command: Command, stated: Reschedule, old: Message, place: Place, limits: Limits
) -> Change:
    deliver_at = _resolve(stated.when, command, place, limits, allow_past=stated.allow_past)
    expiry = old.expiry if stated.expiry == Expiry() else stated.expiry
    kept = old.expire_at if stated.expiry == Expiry() and expiry.at is not None else None
    message = msgspec.structs.replace(
        old,
        generation=old.generation + 1,
        state_version=old.state_version + 1,
        order_position=place.position,
        deliver_at=deliver_at,
        condition=Scheduled(),
        expiry=expiry,
        expire_at=_expiry(expiry, command, deliver_at, limits, kept=kept),
        policy=stated.policy or old.policy,
        counted=0,
        uncounted=0,
        last_attempt=None,
        first_admitted_at=None,
        late_judged=False,
    )
    carries = stated.target is not None
    if carries:
        message = msgspec.structs.replace(
            message,
            descriptor_position=place.position,
            descriptor_hash=command.command_hash,
        )
    return _applied(facts, command, place, message, event="Reschedule", carries=carries)


def _resolve(when: When, command: Command, place: Place, limits: Limits, *, allow_past: bool) -> int:
    match when:
        case In(delay_ns=delay):
            instant = place.persisted_at + delay
        case At():
            if command.context.instant is None:
                raise Refused(Reason.LIMIT)
            instant = command.context.instant
            if instant < command.context.requested_at and not allow_past:
                raise Refused(Reason.PAST)
        case _:
            instant = place.persisted_at
    if instant - place.persisted_at > limits.horizon_ns:
        raise Refused(Reason.TOO_FAR)
    return instant


def _expiry(
    expiry: Expiry, command: Command, deliver_at: int, limits: Limits, *, kept: int | None = None
) -> int | None:
    if expiry.after_ns is not None:
        return deliver_at + expiry.after_ns
    if expiry.at is None:
        return None
    instant = command.context.expiry_instant if kept is None else kept
    if instant is None:
        raise Refused(Reason.LIMIT)
    if instant <= deliver_at:
        raise Refused(Reason.EXPIRES_BEFORE_DELIVERY)
    if kept is None and instant - deliver_at > limits.horizon_ns:
        raise Refused(Reason.TOO_FAR)
    return instant


def _applied(
    facts: Facts,
    command: Command,
    place: Place,
    message: Message,
    *,
    event: str,
    already: bool = False,
    carries: bool = False,
) -> Change:
    names_time = isinstance(command.stated, Schedule | Reschedule)
    result = Result(
        command_id=command.command_id,
        command_hash=command.command_hash,
        position=place.position,
        persisted_at=place.persisted_at,
        message_id=message.message_id,
        decision=Decision.APPLIED,
        already=already,
        generation=message.generation,
        state_version=message.state_version,
        deliver_at=message.deliver_at if names_time else None,
    )
    return Change(
        facts.head,
        message=None if already else message,
        result=result,
        history=None if already else _line(message, place, event, command.context.reason),
        descriptor=Descriptor(place.position, message.message_id, command) if carries else None,
    )


def _line(message: Message, place: Place, event: str, detail: str) -> History:
    return History(message.message_id, place.position, place.persisted_at, event, message.generation, detail)


def _rejected(facts: Facts, command: Command, place: Place, reason: Reason) -> Change:
    message = facts.message
    too_late = reason.value.startswith("TOO_LATE") and message is not None
    result = Result(
        command_id=command.command_id,
        command_hash=command.command_hash,
        position=place.position,
        persisted_at=place.persisted_at,
        message_id=target_message(command.stated),
        decision=Decision.REJECTED,
        reason=reason,
        generation=message.generation if message else None,
        state_version=message.state_version if message else None,
        attempt=message.last_attempt if too_late and message else None,
    )
    return Change(facts.head, result=result)
