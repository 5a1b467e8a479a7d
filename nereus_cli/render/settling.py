"""What a person decided about an attempt or a dead letter, in words: receipts, and the lines that can be pasted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from nereus_cli.domain.message import GIVE_UP, NOT_PUBLISHED, PUBLISHED, RETRY, TERMINAL, Message, State
from nereus_cli.domain.outcome import SideEffect
from nereus_cli.render.text import shell_line

if TYPE_CHECKING:
    from nereus_cli.domain.records import Command, Replay, Resolve

EVIDENCE: Final = '--evidence "$EVIDENCE"'
"""How a line that can be pasted takes its evidence: until somebody said what shows it, the line is refused."""

_SAID: Final = {PUBLISHED: "published", NOT_PUBLISHED: "not published", RETRY: "uncertain", GIVE_UP: "given up"}
_FOLLOWS: Final = {
    State.RETRY_WAIT: "tried again now",
    State.UNCERTAIN: "another attempt is still uncertain",
    State.PUBLISHING: "another attempt is in progress",
    State.DEAD_LETTER: "the message is a dead letter",
    State.EXPIRED: "the message has expired",
    State.CANCELED: "the message was cancelled",
}


def verdict_facts(stated: Resolve, command: Command, message: Message | None) -> list[str]:
    """What was decided, by whom, and what follows, as parts of a receipt's line. ``message`` is how it stands now."""
    by = stated.by or command.context.requested_by
    if not stated.attempt:
        return [f"the dead letter was seen off by {by}: it asks for nobody any more"]
    facts = [f"attempt {stated.attempt} {_SAID[stated.verdict]}: settled by {by}"]
    if stated.verdict == RETRY:
        facts = [f"attempt {stated.attempt} stays uncertain: one more attempt, allowed by {by}"]
    elif message is not None and message.state in _FOLLOWS:
        facts.append(_FOLLOWS[message.state])
    return facts


def replay_facts(stated: Replay) -> list[str]:
    """Which key the receiver sees."""
    return ["with a new idempotency key" if stated.new_key else "with the idempotency key it had"]


def pasteable(*words: str, store: str | None, evidence: bool = False) -> str:
    """A line for a shell. ``store`` is what --store said, if anything did: the line then names it from the root."""
    line = shell_line([b"nereus", *(word.encode() for word in words)])
    if evidence:
        line = f"{line} {EVIDENCE}"
    return line if store is None else f"{line} {shell_line([b'--store', os.fsencode(os.path.abspath(store))])}"


def replay_line(message: Message, store: str | None) -> str:
    """What tries a dead letter once more; it accepts a possible duplicate by name."""
    unsure = message.published or any(one.side_effect is SideEffect.UNKNOWN for one in message.open_attempts)
    flags = ("--accept-duplicate",) if unsure else ()
    return pasteable("dead", "replay", message.message_id, *flags, store=store)


def seen_off_line(message: Message, store: str | None) -> str:
    """What takes a dead letter off ``status --check``."""
    return pasteable("resolve", message.message_id, f"--{GIVE_UP}", store=store, evidence=True)


def ended(message: Message) -> bool:
    """Whether a verdict changes only the risk and what is listed."""
    return message.state in TERMINAL
