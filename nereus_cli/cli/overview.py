"""``nereus status``: how the store stands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from nereus_cli.cli import opening, output
from nereus_cli.cli.exits import DONE, NEEDS_A_PERSON
from nereus_cli.domain.instant import DAY
from nereus_cli.domain.message import State
from nereus_cli.ports import Selection
from nereus_cli.render.overview import Standing, attention, status_document, status_sheet
from nereus_cli.render.unsettled import unsettled

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
        uncertain=_uncertain(view),
        dead=_dead(view),
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


def _uncertain(view: Views) -> int:
    """Messages with an attempt that somebody has to settle; dead letters are counted by themselves."""
    if not view.counts().get(State.UNCERTAIN):
        return 0
    found = unsettled(message for message in view.open_messages() if message.state is State.UNCERTAIN)
    return len({message.message_id for message, _ in found})


def _dead(view: Views) -> int:
    """Dead letters that nobody has seen off."""
    if not view.counts().get(State.DEAD_LETTER):
        return 0
    return sum(not message.given_up for message in view.select(Selection(states=(State.DEAD_LETTER,))))


def _held_late(view: Views) -> int:
    if not view.counts().get(State.HELD):
        return 0
    return sum(getattr(m.condition, "by", "") == "LATE" for m in view.select(Selection(states=(State.HELD,))))
