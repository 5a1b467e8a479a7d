"""``nereus dead show``: what gave up, why, and what can be done. Its list is in read, its replay in write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nereus_cli.cli import asking, opening, output
from nereus_cli.cli.exits import DONE, REASONS, Failure
from nereus_cli.domain.message import State
from nereus_cli.domain.outcome import Reason
from nereus_cli.render.messages import message_document

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call


def show_dead(call: Call) -> int:
    """One dead letter: all of it, why it died, and what can be done."""
    name = asking.one_id(call)
    with opening.for_reading(call) as store:
        view, message = asking.known(store, store.view(), name)
        if message.state is not State.DEAD_LETTER:
            details = {"message_id": name, "state": message.state.value}
            said = f"{name} is no dead letter: its state is {message.state.value}"
            raise Failure("NOT_DEAD", said, REASONS[Reason.NOT_DEAD], details)
        timing = store.command_at(message.order_position)
        document = message_document(message, view, timing, unmask=call.flag("show-secrets"))
        attempts = view.attempts_of(name)
        daemon = store.presence().state
    from nereus_cli.render.dead import dead_document, dead_sheet

    document["dead"] = dead_document(message, attempts, call.stated_store())
    if call.json:
        output.document(document)
        return DONE
    from nereus_cli.render.sheet import message_sheet

    for line in (*message_sheet(document, message, daemon), *dead_sheet(document["dead"])):
        output.line(line)
    return DONE
