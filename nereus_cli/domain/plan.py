"""What to do next with what is due: ``choose`` returns decisions and when to look again. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nereus_cli.domain.instant import Reading
from nereus_cli.domain.message import Message, RetryWait, Scheduled


class Admit(msgspec.Struct, frozen=True):
    """Ask the log for permission to attempt this message."""

    message: Message


class LetExpire(msgspec.Struct, frozen=True):
    """Its last instant has surely passed."""

    message: Message


class HoldLate(msgspec.Struct, frozen=True):
    """Later than its policy allows, before its first attempt."""

    message: Message


class Plan(msgspec.Struct, frozen=True):
    """Decisions in the order to append them; ``waiting`` are those to look at again: due without room, or not yet
    surely due."""

    decisions: tuple[Admit | LetExpire | HoldLate, ...]
    waiting: tuple[Message, ...]


def order(message: Message) -> tuple[int, int, int, str]:
    """Oldest first: by priority, delivery time, position of the schedule or reschedule, and id."""
    return -message.priority, message.deliver_at, message.order_position, message.message_id


def choose(due: Iterable[Message], reading: Reading, room: int) -> Plan:
    """Judges each candidate alone; at most ``room`` of them are admitted."""
    decisions: list[Admit | LetExpire | HoldLate] = []
    waiting: list[Message] = []
    for message in sorted(due, key=order):
        if message.expire_at is not None and reading.surely_reached(message.expire_at):
            decisions.append(LetExpire(message))
        elif not ready(message, reading):
            waiting.append(message)
        elif _too_late(message, reading):
            decisions.append(HoldLate(message))
        elif room > 0:
            decisions.append(Admit(message))
            room -= 1
        else:
            waiting.append(message)
    return Plan(tuple(decisions), tuple(waiting))


def ready(message: Message, reading: Reading) -> bool:
    """Whether an admission with this reading would be taken, as far as time goes."""
    match message.waits:
        case Scheduled():
            reached = reading.surely_reached(message.deliver_at)
        case RetryWait(since=since, delay_ns=delay):
            reached = reading.surely_reached(since + delay)
        case _:
            return False
    return reached and (message.expire_at is None or reading.surely_before(message.expire_at))


def _too_late(message: Message, reading: Reading) -> bool:
    limit = message.late_after_ns
    if limit is None or message.late_judged or message.first_admitted_at is not None:
        return False
    return reading.earliest - message.deliver_at > limit
