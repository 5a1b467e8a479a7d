"""Lines for people: the same facts as the documents, in words; instants in UTC and on the reader's own clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from nereus_cli.domain.identity import retry_until
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.message import State
from nereus_cli.domain.outcome import Reason
from nereus_cli.domain.records import At, Replay, Reschedule, Resolve, Schedule
from nereus_cli.render import machine, settling
from nereus_cli.wish.show import local_text, offset_text, rfc3339

if TYPE_CHECKING:
    from nereus_cli.answers import Answer

_SECOND: Final = 1_000_000_000
_STATES: Final = {
    State.SCHEDULED: "scheduled",
    State.RETRY_WAIT: "waits for its next attempt",
    State.HELD: "held",
    State.PUBLISHING: "in progress",
    State.UNCERTAIN: "uncertain",
    State.PUBLISHED: "published",
    State.EXPIRED: "expired",
    State.CANCELED: "cancelled",
    State.DEAD_LETTER: "dead letter",
}
_DONE: Final = {
    "schedule": "scheduled",
    "cancel": "cancelled",
    "reschedule": "rescheduled",
    "hold": "held",
    "release": "released",
    "replay": "replayed",
    "resolve": "settled",
    "stop": "stopped",
}
_WHY: Final = {
    Reason.TOO_LATE_PUBLISHING: "too late: an attempt is in progress",
    Reason.TOO_LATE_UNCERTAIN: "too late: the effect of an attempt is not known",
    Reason.TOO_LATE_PUBLISHED: "too late: already published",
    Reason.TOO_LATE_CANCELED: "too late: already cancelled",
    Reason.TOO_LATE_EXPIRED: "too late: already expired",
    Reason.TOO_LATE_DEAD_LETTER: "too late: already a dead letter",
    Reason.NOT_FOUND: "no message has this id",
    Reason.VERSION_CONFLICT: "its version is another by now",
    Reason.OUTSIDE_HORIZON: "its retry window has closed",
    Reason.PAST: "that time is past; --allow-past delivers it at once",
    Reason.TOO_FAR: "that time is more than 10 years (3653 days) ahead",
    Reason.ID_FROM_FUTURE: "its id was made more than an hour ahead of this clock",
    Reason.EXPIRES_BEFORE_DELIVERY: "it would expire before its delivery time",
    Reason.LIMIT: "a part of it is outside its limits",
    Reason.NO_SUCH_ATTEMPT: "it has no such attempt to judge: nereus show lists them",
    Reason.ALREADY_SETTLED: "this attempt was settled before, and otherwise: nereus show says by whom",
    Reason.DUPLICATE_NOT_ACCEPTED: "it may have taken effect already: --accept-duplicate says that twice is acceptable",
    Reason.NOT_DEAD: "it is no dead letter",
}


def both_clocks(instant_ns: int, zone: str | None = None) -> str:
    """``2026-12-01T10:00:00.000Z (Tue 2026-12-01 11:00:00 +01:00 Europe/Berlin)``; without a zone the reader's."""
    local = local_text(instant_ns // _SECOND * _SECOND, zone) if zone else here(instant_ns)
    return f"{rfc3339(instant_ns)} ({local})"


def here(instant_ns: int) -> str:
    """The instant on the clock of this process, with weekday and offset."""
    try:
        local = time.localtime(instant_ns // _SECOND)
    except (OverflowError, OSError, ValueError):
        return "beyond this system's calendar"
    name = f" {local.tm_zone}" if local.tm_zone and local.tm_zone[0].isalpha() else ""
    return f"{time.strftime('%a %Y-%m-%d %H:%M:%S', local)} {offset_text(local.tm_gmtoff)}{name}"


def receipt_line(answer: Answer) -> str:
    """One line that says what became of a command."""
    name = getattr(answer.prepared.command.stated, "message_id", "")
    match machine.outcome(answer):
        case "UNCERTAIN":
            return f"uncertain {name}: it may be in the log; command id {answer.prepared.command.command_id}"
        case "REJECTED":
            return f"refused {name}: {_refusal(answer)}"
        case word:
            return f"{_verb(answer, word)} {name}  {'  '.join(_facts(answer))}"


def _verb(answer: Answer, word: str) -> str:
    result = answer.result
    if answer.duplicate or (result is not None and result.already):
        return f"already: {_stands(answer)} "
    if word == "QUEUED":
        return "queued"
    return _DONE[machine.verb_of(answer.prepared.command)]


def _stands(answer: Answer) -> str:
    """How the message stands now, for somebody who repeats a command."""
    message = answer.message
    if message is None:
        return "known"
    if message.state is State.SCHEDULED:
        return f"due {both_clocks(message.deliver_at)}"
    return _STATES[message.state]


def _facts(answer: Answer) -> list[str]:
    command, result = answer.prepared.command, answer.result
    place = result or answer.appended
    generation = result.generation if result else 0 if isinstance(command.stated, Schedule) else None
    facts = _decided(answer) if result and not answer.duplicate and not result.already else []
    facts += [] if generation is None else [f"generation {generation}"]
    if place is not None:
        facts.append(f"position {place.position}")
    due = machine.deliver_at(answer)
    if due is not None and not answer.duplicate:
        facts.append(f"due {both_clocks(due, _zone(command.stated))}")
    until = retry_until(command.command_id, PRODUCTION.retry_window_ns)
    facts.append("repeats recognised for ever" if until is None else f"repeats recognised until {rfc3339(until)}")
    if until is not None:
        facts.append(f"command id {command.command_id}")
    return facts


def _decided(answer: Answer) -> list[str]:
    """For verdicts and replays: what was decided, and what follows."""
    command = answer.prepared.command
    match command.stated:
        case Resolve() as stated:
            return settling.verdict_facts(stated, command, answer.message)
        case Replay() as stated:
            return settling.replay_facts(stated)
        case _:
            return []


def _zone(stated: object) -> str | None:
    when = stated.when if isinstance(stated, Schedule | Reschedule | Replay) else None
    return when.zone if isinstance(when, At) else None


def _refusal(answer: Answer) -> str:
    reason = answer.why
    if reason in (Reason.COMMAND_CONFLICT, Reason.MESSAGE_CONFLICT):
        return _conflict(answer)
    text = _WHY.get(reason, reason.value) if reason else "refused"
    attempt = answer.result.attempt if answer.result else None
    told = f" (attempt {attempt[1]}, {attempt[0]})" if attempt else ""
    until = retry_until(answer.prepared.command.command_id, PRODUCTION.retry_window_ns)
    closed = f" at {rfc3339(until)}" if reason is Reason.OUTSIDE_HORIZON and until is not None else ""
    return f"{text}{closed}{told}"


def _conflict(answer: Answer) -> str:
    text = "conflict: this id already means something else"
    if answer.differing:
        text += f"; they differ in {', '.join(answer.differing)}"
    clash = machine.receipt(answer, daemon="", durability="")
    existing = answer.original_deliver_at
    if existing is None and answer.message is not None:
        existing = answer.message.deliver_at
    if existing is not None:
        text += f"; the one that stands is due {both_clocks(existing)}"
    mine = clash["deliver_at"]
    return text if mine is None else f"{text}; this one asked for {mine}"
