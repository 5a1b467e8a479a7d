"""How the store stands, and what in it needs somebody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from nereus_cli.domain.facts import Head
from nereus_cli.domain.instant import Reading
from nereus_cli.domain.message import State
from nereus_cli.ports import Bounds
from nereus_cli.presence import Presence
from nereus_cli.render.human import both_clocks
from nereus_cli.render.machine import Document, instant

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = 11


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What was found when a person asked: one look, as of ``head.applied``."""

    head: Head
    presence: Presence
    bounds: Bounds
    counts: Mapping[State, int]
    overdue: int
    next_due: int | None
    reading: Reading
    held_late: int
    uncertain: int
    dead: int
    stepped: bool
    torn: int


class Attention(msgspec.Struct, frozen=True):
    """Something worth knowing; ``urgent`` when it does not pass by itself and ``status --check`` must say so."""

    code: str
    count: int
    command: str | None
    urgent: bool
    text: str


def attention(standing: Standing) -> list[Attention]:
    """Everything worth knowing, the most pressing first."""
    return [one for one in _all(standing) if one.count]


def _all(standing: Standing) -> Iterator[Attention]:
    counts, head, beat = standing.counts, standing.head, standing.presence.beat
    alone = standing.presence.state == "none"
    yield Attention(
        "OVERDUE_NO_DAEMON", standing.overdue if alone else 0, "nereus run", urgent=True, text="due, and no daemon runs"
    )
    stale = standing.presence.state == "stale"
    yield Attention("OWNER_STALE", int(stale), None, urgent=stale, text="the daemon does not answer")
    trouble = beat.trouble if beat and not alone else ""
    yield Attention("DAEMON_TROUBLE", int(bool(trouble)), None, urgent=True, text=f"nothing is started: {trouble}")
    yield Attention("QUARANTINED", head.quarantined, "nereus verify", urgent=True, text="records that cannot be read")
    unsure = standing.uncertain
    yield Attention("UNCERTAIN", unsure, "nereus uncertain report", urgent=True, text="effect not known")
    yield Attention("DEAD_LETTER", standing.dead, "nereus dead list --open", urgent=True, text="gave up")
    late = counts.get(State.EXPIRED, 0)
    yield Attention("EXPIRED", late, "nereus list --state EXPIRED", urgent=True, text="too late to be delivered")
    held = counts.get(State.HELD, 0)
    yield Attention("HELD", held, "nereus list --state HELD", urgent=standing.held_late > 0, text="wait for a release")
    yield Attention("CLOCK_STEP", int(standing.stepped), None, urgent=False, text="the wall clock was set")
    yield Attention("TORN_TAIL", standing.torn, "nereus verify", urgent=False, text="unproven ends were cut off, kept")


def status_document(standing: Standing) -> Document:
    """The shape of ``nereus.status/1``."""
    head, reading, presence = standing.head, standing.reading, standing.presence
    gated = presence.beat is not None and presence.state == "alive" and presence.beat.gated_ns > 0
    return {
        "schema": "nereus.status/1",
        "owner": _owner(standing),
        "daemon": presence.state,
        "log": {"first": standing.bounds.first, "last": standing.bounds.last, "durable": standing.bounds.durable},
        "applied": head.applied,
        "floor": 0,
        "counts": {state.value: count for state, count in standing.counts.items()},
        "overdue": standing.overdue,
        "next_due": instant(standing.next_due),
        "clock": {
            "mode": "host",
            "trusted": not gated,
            "earliest": instant(reading.earliest),
            "latest": instant(reading.latest),
            "reason": "CLOCK_STEP" if gated else None,
        },
        "attention": [
            {"code": one.code, "count": one.count, "command": one.command, "text": one.text}
            for one in attention(standing)
        ],
    }


def _owner(standing: Standing) -> Document | None:
    owner = standing.head.owner
    if owner is None or standing.presence.state == "none":
        return None
    running = standing.presence.beat.running if standing.presence.beat else None
    return {
        "epoch": owner.epoch,
        "pid": owner.pid,
        "since": instant(owner.since),
        "host": owner.host,
        "running": running,
    }


def status_sheet(document: Document, standing: Standing) -> list[str]:
    """The same for people."""
    owner = document["owner"]
    who = f"{document['daemon']}, pid {owner['pid']} since {owner['since']}" if owner else "none"
    counts = "  ".join(f"{state} {count}" for state, count in document["counts"].items()) or "none"
    due = "nothing" if standing.next_due is None else both_clocks(standing.next_due)
    facts = (
        ("daemon", who),
        ("log", f"positions {document['log']['first']} to {document['log']['durable']}, applied {document['applied']}"),
        ("messages", counts),
        ("overdue", document["overdue"]),
        ("next due", due),
    )
    lines = [f"{name:<{_NAME}} {value}" for name, value in facts]
    for one in attention(standing):
        hint = f": {one.command}" if one.command else ""
        lines.append(f"{'attention':<{_NAME}} {one.code} {one.count} ({one.text}){hint}")
    return lines
