"""Attempts whose effect is not known: which are listed, what can be said of each, and the lines that say it."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Final

from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.message import GIVE_UP, NOT_PUBLISHED, PUBLISHED, RETRY, Attempt, Message, State, Uncertain
from nereus_cli.domain.outcome import Code, SideEffect
from nereus_cli.render.machine import Document, instant
from nereus_cli.render.messages import attempt_document
from nereus_cli.render.settling import ended, pasteable

if TYPE_CHECKING:
    from collections.abc import Iterable

_PID: Final = re.compile(r"; pid (\d+)$")
_KNOWN: Final = {
    Code.SIGNALED_IN_SHELL: "the shell reported that a command in it was ended by a signal",
    Code.TIMED_OUT: "its timeout ended it",
    Code.STOPPED: "a stop ended it",
    Code.NO_EVIDENCE: "it was begun, and nothing tells how it ended",
}
_MEANS: Final = {
    PUBLISHED: "it took effect: the message is published",
    NOT_PUBLISHED: "it did not take effect: tried again if an attempt is left, else a dead letter",
    RETRY: "nobody knows: exactly one more attempt, which may be a duplicate",
    GIVE_UP: "nobody will know: it is no longer listed, and the message gives up",
}
_MEANS_ENDED: Final = {
    PUBLISHED: "it took effect: only the risk of a duplicate changes, for the message has moved on",
    NOT_PUBLISHED: "it did not take effect: only the risk of a duplicate changes, for the message has moved on",
    GIVE_UP: "nobody will know: it is no longer listed",
}


def listed(message: Message, attempt: Attempt, *, everything: bool = False) -> bool:
    """Whether an attempt asks for a person. ``everything``: also those of older generations and of messages that have
    ended well; what a person gave up on is in no list."""
    if attempt.side_effect is not SideEffect.UNKNOWN or attempt.given_up:
        return False
    if everything:
        return True
    pages = message.state is State.UNCERTAIN or (message.state is State.DEAD_LETTER and not message.given_up)
    return pages and attempt.generation == message.generation


def unsettled(messages: Iterable[Message], *, everything: bool = False) -> list[tuple[Message, Attempt]]:
    """The listed attempts of these messages."""
    return [(one, a) for one in messages for a in one.open_attempts if listed(one, a, everything=everything)]


def verdicts(message: Message, attempt: Attempt) -> tuple[str, ...]:
    """What can be said of an attempt now. One more attempt is for a message that may have one, and asked for once."""
    moving = any(one.side_effect is None for one in message.open_attempts)
    closing = isinstance(message.condition, Uncertain) and message.condition.closing
    asked = attempt.resolution is not None and attempt.resolution.verdict == RETRY
    if ended(message) or attempt.generation != message.generation or moving or closing or asked:
        return (PUBLISHED, NOT_PUBLISHED, GIVE_UP)
    return (PUBLISHED, NOT_PUBLISHED, RETRY, GIVE_UP)


def choices(message: Message, attempt: Attempt, store: str | None) -> list[Document]:
    """Each possible verdict: what it means, and the line that says it."""
    current = not ended(message) and attempt.generation == message.generation
    means = _MEANS if current else _MEANS_ENDED
    number = str(attempt.number)
    return [
        {
            "verdict": verdict,
            "means": means[verdict],
            "command": pasteable(
                "resolve", message.message_id, "--attempt", number, f"--{verdict}", store=store, evidence=True
            ),
        }
        for verdict in verdicts(message, attempt)
    ]


def look(message: Message, attempt: Attempt, store: str | None) -> list[str]:
    """Lines that show more."""
    name = message.message_id
    return [
        pasteable("show", name, store=store),
        pasteable("logs", name, "--attempt", str(attempt.number), store=store),
    ]


def known(attempt: Attempt) -> str:
    """What is known of how it ended, in one sentence."""
    if attempt.code is Code.SIGNALED:
        return f"signal {_signal(attempt.signal)} ended it"
    said = _KNOWN.get(attempt.code) if attempt.code else None
    return said or f"it ended with {attempt.code or 'no word'}"


def pid(attempt: Attempt) -> int | None:
    """The process it may still run under, where evidence names one."""
    found = _PID.search(attempt.detail)
    return int(found[1]) if found else None


def uncertain_item(message: Message, attempt: Attempt, now: int, store: str | None) -> Document:
    """One attempt whose effect is not known, with all that is known of it."""
    document = attempt_document(attempt)
    shown = {name: document[name] for name in ("code", "exit_code", "signal", "started_at", "ended_at")}
    return {
        "message_id": message.message_id,
        "generation": attempt.generation,
        "attempt": attempt.number,
        "attempt_id": attempt.attempt_id,
        "admitted_at": instant(attempt.admitted_at),
        "age_s": max(now - attempt.admitted_at, 0) // SECOND,
        "evidence": shown | document["evidence"],
        "work": message.work.value,
        "can": ["resolve"],
        "commands": [choice["command"] for choice in choices(message, attempt, store)],
        "look": look(message, attempt, store),
        "resolution": document["resolution"],
    }


def _signal(number: int | None) -> str:
    try:
        return f"{number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return str(number)
