"""One message for people: a sheet of named lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nereus_cli.render.human import both_clocks

if TYPE_CHECKING:
    from nereus_cli.domain.message import Message
    from nereus_cli.render.machine import Document


def message_sheet(document: Document, message: Message, daemon: str) -> list[str]:
    """What ``show`` prints, line by line."""
    target = document["destination"]
    reason = f" ({document['reason']})" if document["reason"] else ""
    facts: list[tuple[str, object]] = [
        ("message", document["message_id"]),
        ("state", f"{document['state']}{reason}, work {document['work']}"),
        ("due", both_clocks(message.deliver_at, _zone(document["when"]))),
        ("wished", _wish(document["when"])),
        ("next", document["next_attempt_at"]),
        ("expires", document["expire_at"]),
        ("generation", f"{document['generation']}, version {document['state_version']}"),
        ("command", target.get("command")),
        ("directory", _text(target.get("cwd"))),
        ("variables", _variables(target.get("env", []))),
        ("secrets", " ".join(f"{_text(s['name'])}={s['reference']}" for s in target.get("secrets", []))),
        ("stdin", _bytes(target.get("stdin_bytes"))),
        ("tags", " ".join(f"{name}={value}" for name, value in document["tags"].items())),
        ("reason", document["request_reason"]),
        ("by", f"{document['requested_by']} at {document['requested_at']}"),
        ("duplicates", document["duplicate_risk"]),
        ("seen off", "yes" if document["given_up"] else None),
        ("daemon", daemon),
        ("as of", f"position {document['as_of']}"),
    ]
    lines = [f"{name:<11} {value}" for name, value in facts if value not in (None, "")]
    for attempt in document["attempts"]:
        lines += [_attempt(attempt), *_settled(attempt)]
    return lines + [_event(line) for line in document["history"]]


def _zone(when: Document | None) -> str | None:
    return when.get("zone") if when else None


def _wish(when: Document | None) -> str | None:
    if not when:
        return None
    data = f", zone data {when['zone_data']}" if when.get("zone_data") else ""
    zone = f" --tz {when['zone']}" if when.get("zone") else ""
    return f"--{when['kind']} {when['text']}{zone}{data}" if "text" in when else when["kind"]


def _variables(pairs: list[dict[str, Any]]) -> str:
    return " ".join(f"{_text(pair['name'])}={_text(pair['value'])}" for pair in pairs)


def _bytes(count: int | None) -> str | None:
    return None if count is None else f"{count} bytes"


def _attempt(attempt: Document) -> str:
    ended = {"exit": attempt["exit_code"], "signal": attempt["signal"], "http": attempt["http_status"]}
    how = " ".join(f"{name} {value}" for name, value in ended.items() if value is not None)
    verdict = attempt["side_effect"] or "in progress"
    basis = f" ({attempt['basis']})" if attempt["basis"] else ""
    detail = attempt["evidence"]["detail"]
    parts = [
        f"attempt {attempt['number']:<3} {attempt['attempt_id']}",
        f"admitted {attempt['admitted_at']}, {attempt['lateness_ms']} ms late",
        f"{verdict}{basis}",
        " ".join(filter(None, (attempt["code"], how))),
        detail,
    ]
    return "  ".join(filter(None, parts))


def _settled(attempt: Document) -> list[str]:
    said = attempt["resolution"]
    if said is None:
        return []
    words = f"attempt {attempt['number']:<3} {said['verdict']}, says {said['by']} at {said['at']}: {said['evidence']}"
    return [words]


def _event(line: Document) -> str:
    detail = f"  {line['detail']}" if line["detail"] else ""
    return f"{line['position']:>11} {line['persisted_at']}  {line['event']}, generation {line['generation']}{detail}"


def _text(value: object) -> str:
    """Bytes that are no text are shown as the document writes them."""
    return str(value["b64"]) + " (base64)" if isinstance(value, dict) else str(value)
