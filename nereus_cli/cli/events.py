"""``nereus events``: the log as it stands, one line a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nereus_cli.cli import opening, output
from nereus_cli.cli.exits import DONE
from nereus_cli.codec import NewerRecordError, UndecodableError, decode_command, decode_mutation
from nereus_cli.domain.records import Command, Replay, Resolve
from nereus_cli.render.machine import Document, instant, verb_of

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.domain.records import Record
    from nereus_cli.ports import LogRecord

_POLL_S = 1.0
_MUTATION_FACTS = ("attempt_id", "generation", "code", "side_effect", "basis", "disposition", "exit_code", "signal")
_DECISION_FACTS = ("attempt", "verdict", "by", "evidence", "accept_duplicate", "new_key")


def events(call: Call) -> int:
    """Everything durable behind a position; with ``--follow`` also what comes, until interrupted."""
    since = call.whole("since", least=0) or 0
    with opening.for_reading(call) as store:
        while True:
            for record in store.log.read(since):
                _print(call, record)
                since = record.position
            if not call.flag("follow"):
                return DONE
            call.status = DONE
            store.log.wait(since, _POLL_S)


def _print(call: Call, record: LogRecord) -> None:
    event = _event(record)
    if call.json:
        output.document(event)
        return
    shown = ("position", "persisted_at", "event", "message_id", *_MUTATION_FACTS, *_DECISION_FACTS)
    output.line("  ".join(_shown(name, event[name]) for name in shown if event.get(name) not in (None, "", False)))


def _shown(name: str, value: object) -> str:
    """A number or a flag says nothing without its name."""
    if value is True:
        return name.replace("_", "-")
    return f"{name} {value}" if name in ("attempt", "by") else str(value)


def _event(record: LogRecord) -> Document:
    event: Document = {
        "schema": "nereus.event/1",
        "position": record.position,
        "persisted_at": instant(record.persisted_at),
        "kind": record.kind.name,
    }
    try:
        decoded: Record = decode_command(record.payload) if record.link is None else decode_mutation(record.payload)
    except UndecodableError as error:
        return event | {"event": "quarantined", "message_id": None, "detail": str(error)}
    except NewerRecordError as error:
        return event | {"event": "newer", "message_id": None, "detail": str(error)}
    if isinstance(decoded, Command):
        asked = {"command_id": decoded.command_id, "requested_by": decoded.context.requested_by}
        named = {"event": verb_of(decoded), "message_id": getattr(decoded.stated, "message_id", None)}
        return event | named | asked | _decided(decoded)
    facts = {name: getattr(decoded, name) for name in _MUTATION_FACTS if hasattr(decoded, name)}
    tag = str(type(decoded).__struct_config__.tag)
    epoch = record.link.epoch if record.link else None
    return event | {"event": tag, "message_id": getattr(decoded, "message_id", None), "epoch": epoch} | facts


def _decided(command: Command) -> Document:
    """What a person decided: a verdict with who gave it and why, or on which terms a dead letter is tried again."""
    match command.stated:
        case Resolve() as said:
            by = said.by or command.context.requested_by
            return {"attempt": said.attempt, "verdict": said.verdict, "by": by, "evidence": said.evidence}
        case Replay() as said:
            return {"accept_duplicate": said.accept_duplicate, "new_key": said.new_key}
        case _:
            return {}
