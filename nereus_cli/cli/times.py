"""``nereus when``: how a time is understood."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nereus_cli.cli import output
from nereus_cli.cli.exits import DONE, REASONS, USAGE, Failure
from nereus_cli.domain.outcome import Reason
from nereus_cli.wish.duration import parse_duration
from nereus_cli.wish.instant import Resolved, parse_instant
from nereus_cli.wish.refusal import Refusal
from nereus_cli.wish.show import describe, local_text, rfc3339

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.render.machine import Document


def when(call: Call) -> int:
    """A duration or an instant, in all its forms."""
    text = call.words("argument")[0].decode("utf-8", "replace")
    now = time.time_ns()
    try:
        kind, resolved = _understood(call, text, now)
    except Refusal as refusal:
        raise refused(refusal, "text") from None
    if call.json:
        output.document(_document(kind, resolved, now))
    else:
        for line in describe(resolved, now):
            output.line(line)
    return DONE


def refused(refusal: Refusal, field: str) -> Failure:
    """A text without one meaning: usage, with the readings it could have had."""
    from nereus_cli.render.machine import candidates

    details = {"field": field, "code": refusal.code, "candidates": candidates(refusal)}
    if refusal.code == "TOO_FAR":
        return Failure("TOO_FAR", refusal.message, REASONS[Reason.TOO_FAR], details)
    return Failure("USAGE", refusal.message, USAGE, details)


def _understood(call: Call, text: str, now: int) -> tuple[str, Resolved]:
    zone = call.text("tz")
    if text[:1].isdigit() or text[:1] == "P":
        try:
            instant = now + parse_duration(text)
        except Refusal as refusal:
            if refusal.code == "TOO_FAR" or not _looks_absolute(text):
                raise
        else:
            return "duration", parse_instant(
                rfc3339(instant, "ns"), zone=zone, gap=None, fold=None, now_ns=now
            )._replace(text=text)
    return "instant", parse_instant(text, zone=zone, gap=call.text("gap"), fold=call.text("fold"), now_ns=now)


def _looks_absolute(text: str) -> bool:
    return "-" in text or ":" in text or "/" in text


def _document(kind: str, resolved: Resolved, now: int) -> Document:
    from nereus_cli.render.human import here

    instant_ns = resolved.instant_ns
    return {
        "schema": "nereus.when/1",
        "kind": kind,
        "text": resolved.text,
        "instant": rfc3339(instant_ns),
        "instant_ns": instant_ns,
        "zone": resolved.zone,
        "offset_s": resolved.offset_s,
        "rule": resolved.rule,
        "zone_data": resolved.zone_data_version,
        "local": local_text(instant_ns, resolved.zone) if resolved.zone else here(instant_ns),
        "distance_ms": (instant_ns - now) // 1_000_000,
        "past": instant_ns < now,
    }
