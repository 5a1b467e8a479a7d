"""One message as a document: what was asked, how it stands, every attempt and everything that happened to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from nereus_cli.domain.message import (
    Attempt,
    DeadLetter,
    Held,
    Message,
    Publishing,
    RetryWait,
    Scheduled,
    Uncertain,
)
from nereus_cli.domain.records import At, Command, In, Shell
from nereus_cli.render.machine import Document, instant
from nereus_cli.render.text import MASK, from_bytes, looks_secret, shell_line

if TYPE_CHECKING:
    from nereus_cli.domain.facts import History
    from nereus_cli.ports import Views

_MS: Final = 1_000_000


def message_line(message: Message, command: Command | None, as_of: int, *, unmask: bool = False) -> Document:
    """A message without attempts and history, as ``list`` prints it."""
    return {
        "schema": "nereus.message/1",
        "message_id": message.message_id,
        "state": message.state.value,
        "work": message.work.value,
        "reason": reason_of(message),
        "generation": message.generation,
        "state_version": message.state_version,
        "deliver_at": instant(message.deliver_at),
        "expire_at": instant(message.expire_at),
        "next_attempt_at": instant(next_attempt_at(message)),
        "lane": message.lane,
        "key": message.key,
        "tags": dict(message.tags),
        "destination": destination(command, unmask=unmask),
        "duplicate_risk": message.risk.value,
        "as_of": as_of,
        "requested_by": message.requested_by,
        "requested_at": instant(message.requested_at),
        "priority": message.priority,
        "policy": policy(message),
        "request_reason": message.reason,
        "correlation": message.correlation,
        "given_up": message.given_up,
    }


def message_document(message: Message, view: Views, timing: Command | None, *, unmask: bool) -> Document:
    """All that is known; ``timing`` is the command that set the time of this generation."""
    described = view.descriptor(message.descriptor_position)
    command = described.command if described else None
    document = message_line(message, command, view.head().applied, unmask=unmask)
    document["when"] = wish(timing)
    document["captured"] = captured(command, unmask=unmask)
    document["attempts"] = [attempt_document(attempt) for attempt in view.attempts_of(message.message_id)]
    document["history"] = [history_line(line) for line in view.history_of(message.message_id)]
    return document


def reason_of(message: Message) -> str | None:
    """Why it stands where it stands, where that is more than its state says."""
    match message.condition:
        case Held(by=by):
            return by
        case DeadLetter(ending=ending):
            return ending.value
        case Publishing(closing=closing) | Uncertain(closing=closing):
            return closing or None
        case _:
            return None


def next_attempt_at(message: Message) -> int | None:
    """When an attempt comes next by itself."""
    match message.condition:
        case Scheduled():
            return message.deliver_at
        case RetryWait(since=since, delay_ns=delay) | Uncertain(again=RetryWait(since=since, delay_ns=delay)):
            return since + delay
        case _:
            return None


def destination(command: Command | None, *, unmask: bool) -> Document:
    """Where it goes; values that look secret are masked."""
    target = getattr(command.stated, "target", None) if command else None
    if not isinstance(target, Shell):
        return {"kind": "unknown"}
    return {
        "kind": "shell",
        "argv": [from_bytes(word) for word in target.argv],
        "shell": None if target.script is None else from_bytes(target.script),
        "command": command_line(target),
        "cwd": from_bytes(target.cwd),
        "env": variables(target.environment, unmask=unmask),
        "env_from_file": None if target.environment_file is None else from_bytes(target.environment_file),
        "secrets": [{"name": from_bytes(name), "reference": reference} for name, reference in target.secrets],
        "stdin_bytes": None if target.stdin is None else len(target.stdin),
        "ok": list(target.ok),
        "retry_on": list(target.retry_on),
        "fail_on": list(target.fail_on),
    }


def command_line(target: Shell) -> str:
    """What runs, as it can be pasted into a shell."""
    return shell_line(target.argv) if target.script is None else shell_line((b"sh", b"-c", target.script))


def variables(pairs: Sequence[tuple[bytes, bytes]], *, unmask: bool) -> list[Document]:
    """Environment variables; a masked one says so."""
    shown = []
    for name, value in pairs:
        masked = looks_secret(name) and not unmask
        shown.append({"name": from_bytes(name), "value": MASK if masked else from_bytes(value), "masked": masked})
    return shown


def captured(command: Command | None, *, unmask: bool) -> Document | None:
    """What the process that scheduled it knew of itself."""
    if command is None:
        return None
    context = command.context
    return {
        "host": context.host,
        "umask": f"{context.umask:04o}",
        "traceparent": context.traceparent or None,
        "decision": None if context.decision is None else msgspec.structs.asdict(context.decision),
        "env": variables(context.environment, unmask=unmask),
    }


def wish(command: Command | None) -> Document | None:
    """What was said about time, beside what it resolved to: text, zone, rule, zone data."""
    when = getattr(command.stated, "when", None) if command else None
    if command is None or when is None:
        return None
    match when:
        case In(text=text):
            return {"kind": "in", "text": text}
        case At(text=text, zone=zone, gap=gap, fold=fold):
            context = command.context
            return {
                "kind": "at",
                "text": text,
                "zone": zone,
                "gap": gap,
                "fold": fold,
                "rule": context.zone_rule or None,
                "zone_data": context.zone_data or None,
                "instant": instant(context.instant),
            }
        case _:
            return {"kind": "now"}


def policy(message: Message) -> Document:
    """How often and how long, as stated; null is the default of the destination."""
    stated = message.policy
    return {
        "timeout_ms": _ms(stated.timeout_ns),
        "max_attempts": stated.max_attempts,
        "retry_base_ms": _ms(stated.retry_base_ns),
        "retry_max_ms": _ms(stated.retry_max_ns),
        "retry_for_ms": _ms(stated.retry_for_ns),
        "on_uncertain": stated.on_uncertain,
        "late_after_ms": _ms(message.late_after_ns),
    }


def attempt_document(attempt: Attempt) -> Document:
    """One attempt with what proves its outcome."""
    return {
        "attempt_id": attempt.attempt_id,
        "number": attempt.number,
        "generation": attempt.generation,
        "admitted_position": attempt.admitted_position,
        "admitted_at": instant(attempt.admitted_at),
        "started_at": instant(attempt.started_at),
        "ended_at": instant(attempt.ended_at),
        "lateness_ms": attempt.lateness_ns // _MS,
        "side_effect": attempt.side_effect.value if attempt.side_effect else None,
        "basis": attempt.basis.value if attempt.basis else None,
        "disposition": attempt.disposition.value,
        "code": attempt.code.value if attempt.code else None,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "http_status": attempt.http_status,
        "evidence": evidence(attempt),
        "resolution": resolution(attempt),
    }


def resolution(attempt: Attempt) -> Document | None:
    """What a person said of it, and who."""
    said = attempt.resolution
    if said is None:
        return None
    return {"verdict": said.verdict, "evidence": said.evidence, "by": said.by, "at": instant(said.at)}


def evidence(attempt: Attempt) -> Document:
    """What is known beside the verdict: the error, resources, sizes, the clock at admission."""
    usage = attempt.usage
    return {
        "detail": attempt.detail or None,
        "errno": attempt.errno,
        "counted": attempt.counted,
        "grace_ms": attempt.grace_ns // _MS,
        "clock": {
            "mode": attempt.clock_mode,
            "earliest": instant(attempt.earliest),
            "latest": instant(attempt.latest),
        },
        "usage": None if usage is None else msgspec.structs.asdict(usage),
    }


def history_line(line: History) -> Document:
    """One thing that happened."""
    return {
        "position": line.position,
        "persisted_at": instant(line.persisted_at),
        "event": line.event,
        "generation": line.generation,
        "detail": line.detail or None,
    }


def _ms(duration_ns: int | None) -> int | None:
    return None if duration_ns is None else duration_ns // _MS
