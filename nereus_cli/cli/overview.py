"""How the store stands: status, and the attempts whose effect is not known."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from nereus_cli.cli import opening, output
from nereus_cli.cli.exits import DONE, NEEDS_A_PERSON
from nereus_cli.domain.instant import DAY
from nereus_cli.domain.message import State
from nereus_cli.domain.outcome import SideEffect
from nereus_cli.ports import Selection
from nereus_cli.render.overview import Standing, attention, status_document, status_sheet, uncertain_item

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.ports import Views
    from nereus_cli.store import Store

_EVER: Final = (1 << 63) - 1
_COUNTED_MAX: Final = 10_000_000
_TORN: Final = "torn-"


def status(call: Call) -> int:
    """One document; with ``--check`` exit 30 if something in it needs a person."""
    with opening.for_reading(call) as store:
        standing = _standing(store)
        document = status_document(standing)
    if call.json:
        output.document(document)
    else:
        for line in status_sheet(document, standing):
            output.line(line)
    urgent = any(one.urgent for one in attention(standing))
    return NEEDS_A_PERSON if call.flag("check") and urgent else DONE


def uncertain(call: Call) -> int:
    """Every attempt of unknown effect; exit 30 when there is one."""
    with opening.for_reading(call) as store:
        view = store.view()
        now = store.clock.read().latest
        items = [
            uncertain_item(message, attempt, now)
            for message in view.open_messages()
            for attempt in message.open_attempts
            if attempt.side_effect is SideEffect.UNKNOWN
            and (call.flag("all") or (message.state is State.UNCERTAIN and attempt.generation == message.generation))
        ]
        as_of = view.head().applied
    if call.json:
        output.document({"schema": "nereus.uncertain/1", "as_of": as_of, "items": items})
    else:
        for item in items:
            output.line(
                f"{item['message_id']}  attempt {item['attempt']}  {item['attempt_id']}  admitted {item['admitted_at']}"
                f"  {item['evidence']['code']}  {item['evidence']['detail'] or ''}".rstrip()
            )
        if not items:
            output.note("nothing is uncertain")
    return NEEDS_A_PERSON if items else DONE


def _standing(store: Store) -> Standing:
    view, reading = store.view(), store.clock.read()
    head, presence = view.head(), store.presence()
    step = head.clock_step
    return Standing(
        head=head,
        presence=presence,
        bounds=store.log.bounds(),
        counts={state: count for state, count in view.counts().items() if count},
        overdue=_overdue(view, reading.earliest),
        next_due=next((timer for timer, _ in view.due(_EVER, 1)), None),
        reading=reading,
        held_late=_held_late(view),
        stepped=step is not None and abs(reading.latest - step[2]) < DAY,
        torn=sum(name.startswith(_TORN) for name in os.listdir(os.path.join(store.path, "log"))),
    )


def _overdue(view: Views, now: int) -> int:
    """Those whose time has come; a held message whose expiry has come is not one of them."""
    due = view.due(now, _COUNTED_MAX)
    if not view.counts().get(State.HELD):
        return len(due)
    waiting = (State.SCHEDULED, State.RETRY_WAIT, State.UNCERTAIN)
    return sum(message.state in waiting for message in view.messages([name for _, name in due]).values())


def _held_late(view: Views) -> int:
    if not view.counts().get(State.HELD):
        return 0
    return sum(getattr(m.condition, "by", "") == "LATE" for m in view.select(Selection(states=(State.HELD,))))
