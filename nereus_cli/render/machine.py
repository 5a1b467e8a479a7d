"""Documents for machines: receipts and errors. Their shapes are a written contract, docs/json.md and docs/schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nereus_cli.domain.identity import retry_until
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.outcome import Decision, Reason
from nereus_cli.domain.records import At, Command, In, Replay, Reschedule, Schedule
from nereus_cli.wish.show import rfc3339

if TYPE_CHECKING:
    from nereus_cli.answers import Answer
    from nereus_cli.prepare.wishes import Prepared
    from nereus_cli.wish.refusal import Refusal

Document = dict[str, Any]
_MS = 1_000_000


def instant(moment: int | None) -> str | None:
    """RFC 3339 in UTC with milliseconds."""
    return None if moment is None else rfc3339(moment)


def error_document(code: str, message: str, status: int, details: Mapping[str, object]) -> Document:
    """Everything that fails without a command of its own in the log."""
    return {"schema": "nereus.error/1", "error": code, "message": message, "exit": status, "details": dict(details)}


def candidates(refusal: Refusal) -> list[Document]:
    """The readings that a text could have had."""
    return [{"rule": one.rule, "instant": instant(one.instant_ns), "text": one.text} for one in refusal.candidates]


def receipt(answer: Answer, *, daemon: str, durability: str) -> Document:
    """What became of one command. A repeat tells of the first: only duplicate, state, daemon tell of now."""
    command = answer.prepared.command
    own = answer.result is not None and answer.reason is not Reason.COMMAND_CONFLICT
    result = answer.result if own else None
    place = result or answer.appended
    document: Document = {
        "schema": "nereus.receipt/1",
        "outcome": outcome(answer),
        "reason": answer.why.value if answer.why else None,
        "duplicate": answer.duplicate,
        "already": bool(result and result.already),
        "command_id": command.command_id,
        "command_hash": f"sha256:{command.command_hash.hex()}",
        "message_id": getattr(command.stated, "message_id", ""),
        "generation": result.generation if result else None,
        "state_version": result.state_version if result else None,
        "shard": "0",
        "position": place.position if place else None,
        "persisted_at": instant(place.persisted_at) if place else None,
        "deliver_at": instant(deliver_at(answer)),
        "retry_until": instant(retry_until(command.command_id, PRODUCTION.retry_window_ns)),
        "durability": durability,
        "daemon": daemon,
        "timeout_ms": _timeout_ms(command),
        "state": answer.message.state.value if answer.message and answer.result else None,
        "verb": verb_of(command),
    }
    return document | _clash(answer) | _attempt(answer)


def outcome(answer: Answer) -> str:
    """The one word of a receipt."""
    if answer.rejected:
        return "REJECTED"
    if answer.result is not None:
        return "APPLIED"
    return "QUEUED" if answer.appended else "UNCERTAIN"


def deliver_at(answer: Answer) -> int | None:
    """The instant this command asks for, as far as it is known; None where it names no time."""
    if answer.result and answer.result.decision is Decision.APPLIED and answer.reason is None:
        return answer.result.deliver_at
    place = answer.appended
    if answer.result and answer.reason is None:
        return asked_for(answer.prepared.command, answer.result.persisted_at)
    return asked_for(answer.prepared.command, place.persisted_at if place else None)


def asked_for(command: Command, persisted_at: int | None) -> int | None:
    """What a command's time is if it is persisted then."""
    stated = command.stated
    if not isinstance(stated, Schedule | Reschedule | Replay):
        return None
    match stated.when:
        case In(delay_ns=delay):
            return None if persisted_at is None else persisted_at + delay
        case At():
            return command.context.instant
        case _:
            return persisted_at


def verb_of(command: Command) -> str:
    """The kind of a command, as the log calls it."""
    return str(type(command.stated).__struct_config__.tag)


def _timeout_ms(command: Command) -> int | None:
    timeout = command.stated.policy.timeout_ns if isinstance(command.stated, Schedule) else None
    return None if timeout is None else timeout // _MS


def _clash(answer: Answer) -> Document:
    """For a conflict: in what the commands differ, and when the one that stands is due; never a value."""
    if answer.why not in (Reason.COMMAND_CONFLICT, Reason.MESSAGE_CONFLICT):
        return {}
    due = answer.original_deliver_at
    if due is None and answer.message is not None:
        due = answer.message.deliver_at
    return {"differing": list(answer.differing), "existing_deliver_at": instant(due)}


def _attempt(answer: Answer) -> Document:
    attempt = answer.result.attempt if answer.result and answer.reason is None else None
    return {} if attempt is None else {"attempt": {"attempt_id": attempt[0], "number": attempt[1]}}


def not_queued(code: str, message: str, status: int, name: str | None, line: int | None) -> Document:
    """For one of several: the shape of a receipt, for a command that is certainly not in the log."""
    reason = code if code in Reason.__members__ else None
    return {
        "schema": "nereus.receipt/1",
        "outcome": "NOT_QUEUED",
        "reason": reason,
        "duplicate": False,
        "already": False,
        "command_id": None,
        "command_hash": None,
        "message_id": name,
        "generation": None,
        "state_version": None,
        "shard": "0",
        "position": None,
        "persisted_at": None,
        "deliver_at": None,
        "retry_until": None,
        "durability": "none",
        "daemon": "none",
        "timeout_ms": None,
        "state": None,
        "line": line,
        "error": {"error": code, "message": message, "exit": status},
    }


def dry(prepared: Prepared) -> Document:
    """What would be sent, if it were."""
    command = prepared.command
    due = asked_for(command, command.context.requested_at)
    return not_queued("", "", 0, getattr(command.stated, "message_id", None), None) | {
        "command_id": command.command_id,
        "command_hash": f"sha256:{command.command_hash.hex()}",
        "deliver_at": instant(due),
        "retry_until": instant(retry_until(command.command_id, PRODUCTION.retry_window_ns)),
        "timeout_ms": _timeout_ms(command),
        "verb": verb_of(command),
        "error": None,
        "dry_run": True,
    }
