"""Dead letters: why each died, and the lines that try it once more or see it off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nereus_cli.domain.message import DeadLetter, Message
from nereus_cli.domain.outcome import Ending
from nereus_cli.render.messages import attempt_document, reason_of
from nereus_cli.render.settling import replay_line, seen_off_line
from nereus_cli.render.unsettled import choices, known, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nereus_cli.domain.message import Attempt
    from nereus_cli.render.machine import Document

_WHY: Final = {
    Ending.PERMANENT: "its last attempt was refused for good",
    Ending.EXHAUSTED: "no attempt was left",
    Ending.UNCERTAIN_EXHAUSTED: "no attempt was left, and the effect of one is not known",
    Ending.STOPPED: "it was stopped",
    Ending.GIVEN_UP: "a person gave up on an attempt whose effect is not known",
}


def dead_document(message: Message, attempts: Sequence[Attempt], store: str | None) -> Document:
    """What ``dead show`` adds to a message: why, how the last attempt ended, and what can be done."""
    last = attempts[-1] if attempts else None
    unknown = [one for one in message.open_attempts if listed(message, one, everything=True)]
    resolve = [choice["command"] for attempt in unknown for choice in choices(message, attempt, store)]
    return {
        "reason": reason_of(message),
        "why": why(message),
        "given_up": message.given_up,
        "last_attempt": None if last is None else last.number,
        "last_attempt_said": None if last is None else _said(last),
        "unknown_attempts": [one.number for one in unknown],
        "replay": replay_line(message, store),
        "commands": [*resolve, *([] if message.given_up else [seen_off_line(message, store)])],
    }


def why(message: Message) -> str:
    """In one sentence."""
    return _WHY[message.condition.ending] if isinstance(message.condition, DeadLetter) else ""


def dead_sheet(document: Document) -> list[str]:
    """The same for people, as lines beneath the sheet of the message."""
    last = document["last_attempt_said"]
    lines = [f"{'died':<11} {document['why']}{f'; {last}' if last else ''}"]
    if document["given_up"]:
        lines.append(f"{'seen off':<11} yes: status --check passes over it")
    lines.append(f"{'once more':<11} {document['replay']}")
    return [*lines, *(f"{'or':<11} {command}" for command in document["commands"])]


def _said(attempt: Attempt) -> str:
    shown = attempt_document(attempt)
    if shown["side_effect"] == "UNKNOWN":
        return f"attempt {attempt.number}: {known(attempt)}"
    exit_code = "" if attempt.exit_code is None else f" {attempt.exit_code}"
    detail = f": {attempt.detail}" if attempt.detail else ""
    return f"attempt {attempt.number} ended with {shown['code']}{exit_code}{detail}"
