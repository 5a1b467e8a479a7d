"""What client commands do. Each gives exactly one result, applied or rejected for a stable reason."""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from nereus_cli.domain import identity, resolving
from nereus_cli.domain.answering import Refused, applied, rejected
from nereus_cli.domain.checks import exceeds
from nereus_cli.domain.facts import Change, Facts, Place
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
from nereus_cli.domain.outcome import Ending, Reason, SideEffect
from nereus_cli.domain.records import (
    At,
    Cancel,
    Command,
    Expiry,
    Hold,
    In,
    Named,
    Release,
    Replay,
    Reschedule,
    Resolve,
    Schedule,
    Shell,
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
    Resolve: Kind.RESOLVE,
    Replay: Kind.REPLAY,
}
_TAKES_EFFECT: Final = frozenset(
    {Cell.CANCEL, Cell.NEW_GENERATION, Cell.HOLD, Cell.RELEASE, Cell.CLOSE, Cell.ALREADY, Cell.VERDICT}
)


def decide(facts: Facts, command: Command, place: Place, limits: Limits) -> Change:
    """The change a first command makes; the result says what was decided and why."""
    try:
        _check_identity(facts, command, place, limits)
        if isinstance(command.stated, Schedule):
            return _schedule(facts, command, command.stated, place, limits)
        return _control(facts, command, place, limits)
    except Refused as refusal:
        return rejected(facts, command, place, refusal.reason)


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
    return applied(facts, command, place, message, event="Schedule", carries=True)


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
    match stated:
        case Reschedule():
            return _next_generation(facts, command, stated, message, place, limits)
        case Replay():
            return _replay(facts, command, stated, message, place, limits)
        case Resolve():
            return resolving.resolve(facts, command, stated, message, place)
    if what is Cell.ALREADY:
        return applied(facts, command, place, message, event=kind.value, already=True)
    changed = _moved(msgspec.structs.replace(message, state_version=message.state_version + 1), what)
    change = applied(facts, command, place, changed, event=kind.value)
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
        given_up=False,
        key_generation=old.generation + 1,
    )
    carries = stated.target is not None
    if carries:
        message = msgspec.structs.replace(
            message,
            descriptor_position=place.position,
            descriptor_hash=command.command_hash,
        )
    event = "Replay" if isinstance(command.stated, Replay) else "Reschedule"
    return applied(facts, command, place, message, event=event, carries=carries)


def _replay(facts: Facts, command: Command, stated: Replay, old: Message, place: Place, limits: Limits) -> Change:
    """A dead letter once more. Its effect may have happened already: that has to be accepted by name. The receiver
    sees the old idempotency key again, unless a new one was asked for."""
    unsure = old.published or any(a.side_effect is SideEffect.UNKNOWN for a in old.open_attempts)
    if unsure and not stated.accept_duplicate:
        raise Refused(Reason.DUPLICATE_NOT_ACCEPTED)
    change = _next_generation(facts, command, Reschedule(old.message_id, stated.when), old, place, limits)
    if change.message is None or stated.new_key:
        return change
    return msgspec.structs.replace(
        change, message=msgspec.structs.replace(change.message, key_generation=old.key_generation)
    )


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
