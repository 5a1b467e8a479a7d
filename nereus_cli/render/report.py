"""``uncertain report`` as a document: every attempt that is not settled, what is known of it, what can be done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nereus_cli.render.machine import Document, instant
from nereus_cli.render.messages import destination, next_attempt_at, reason_of
from nereus_cli.render.unsettled import choices, known, pid, uncertain_item

if TYPE_CHECKING:
    from nereus_cli.domain.message import Attempt, Message
    from nereus_cli.domain.records import Command

TITLE: Final = "Attempts whose effect is not known"
EXPLANATION: Final = (
    "Each of these attempts was begun, and nothing proves whether it took effect. Nereus never decides that by itself.",
    "Look where the effect would be: the file, the ledger, the receiver's log.",
    "Say in EVIDENCE what shows it, then run one of the lines: without evidence each is refused.",
)
EXAMPLE: Final = "EVIDENCE='the transfer stands in the ledger, line 4711'"
NOTHING: Final = "Nothing is uncertain."

Found = tuple["Message", "Attempt", "Command | None"]


def report_document(
    found: Sequence[Found], *, as_of: int, now: int, store: str | None, daemon: str, everything: bool
) -> Document:
    """The shape of ``nereus.uncertain-report/1``. ``store`` is what --store said, if anything did; instants in ns."""
    items = [_item(message, attempt, command, now, store) for message, attempt, command in found]
    return {
        "schema": "nereus.uncertain-report/1",
        "as_of": as_of,
        "made_at": instant(now),
        "daemon": daemon,
        "all": everything,
        "explanation": list(EXPLANATION),
        "summary": {
            "attempts": len(items),
            "messages": len({item["message_id"] for item in items}),
            "oldest_age_s": max((item["age_s"] for item in items), default=None),
        },
        "items": items,
    }


def _item(message: Message, attempt: Attempt, command: Command | None, now: int, store: str | None) -> Document:
    return uncertain_item(message, attempt, now, store) | {
        "state": message.state.value,
        "reason": reason_of(message),
        "duplicate_risk": message.risk.value,
        "deliver_at": instant(message.deliver_at),
        "next_attempt_at": instant(next_attempt_at(message)),
        "destination": destination(command, unmask=False),
        "known": known(attempt),
        "pid": pid(attempt),
        "requested_by": message.requested_by,
        "request_reason": message.reason,
        "choices": choices(message, attempt, store),
    }


def summary(document: Document) -> str:
    """How many, as of when."""
    counted = document["summary"]
    parts = [f"{counted[name]} {name[:-1] if counted[name] == 1 else name}" for name in ("attempts", "messages")]
    when = f"as of position {document['as_of']}, {document['made_at']}"
    return f"{' of '.join(parts)}; {when}; daemon: {document['daemon']}"


def facts(item: Document) -> list[tuple[str, str]]:
    """What is known of one attempt, as pairs of a name and a text that has yet to be escaped."""
    evidence, target = item["evidence"], item["destination"]
    reason = f" ({item['reason']})" if item["reason"] else ""
    again = f", next attempt {item['next_attempt_at']}" if item["next_attempt_at"] else ""
    process = f"; it may still run as pid {item['pid']}" if item["pid"] else ""
    said = item["resolution"]
    pairs = (
        ("message", f"{item['message_id']}, generation {item['generation']}"),
        ("attempt", f"{item['attempt']}, {item['attempt_id']}"),
        ("state", f"{item['state']}{reason}, work {item['work']}{again}"),
        ("command", _text(target.get("command"))),
        ("directory", _text(target.get("cwd"))),
        ("asked for by", item["requested_by"]),
        ("because", item["request_reason"]),
        ("due", item["deliver_at"]),
        ("admitted", f"{item['admitted_at']}, {_age(item['age_s'])} ago"),
        ("started", evidence["started_at"]),
        ("ended", evidence["ended_at"]),
        ("known", f"{item['known']}{process}"),
        ("code", " ".join(_code(evidence))),
        ("detail", evidence["detail"]),
        ("duplicates", item["duplicate_risk"]),
        ("said so far", f"{said['verdict']}, by {said['by']} at {said['at']}: {said['evidence']}" if said else None),
    )
    return [(name, str(text)) for name, text in pairs if text not in (None, "")]


def _code(evidence: Document) -> list[str]:
    named = (("exit", "exit_code"), ("signal", "signal"), ("errno", "errno"))
    more = [f"{name} {evidence[field]}" for name, field in named if evidence[field] is not None]
    return [evidence["code"] or "", *more]


def _age(seconds: int) -> str:
    """In its two largest units: ``3d 4h``, ``12s``."""
    units = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
    parts: list[str] = []
    for name, size in units:
        count, seconds = divmod(seconds, size)
        if count or parts:
            parts.append(f"{count}{name}")
    return " ".join(parts[:2]) or "0s"


def _text(value: object) -> str | None:
    """Bytes that are no text are shown as the document writes them."""
    if value is None:
        return None
    return f"{value['b64']} (base64)" if isinstance(value, dict) else str(value)
