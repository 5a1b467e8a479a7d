"""The verbs that show messages: show, list and the list of dead letters."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import msgspec

from nereus_cli.cli import asking, opening, output
from nereus_cli.cli.exits import DONE, usage
from nereus_cli.codec import as_json
from nereus_cli.domain.message import State
from nereus_cli.ports import Selection
from nereus_cli.render.messages import message_document, message_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nereus_cli.cli.call import Call
    from nereus_cli.domain.message import Message
    from nereus_cli.domain.records import Command
    from nereus_cli.ports import Views


def show(call: Call) -> int:
    """One message with its attempts and its history."""
    name = asking.one_id(call)
    with opening.for_reading(call) as store:
        view, message = asking.known(store, store.view(), name)
        timing = store.command_at(message.order_position)
        document = message_document(message, view, timing, unmask=call.flag("show-secrets"))
        daemon = store.presence().state
    if call.json:
        output.document(document)
        return DONE
    from nereus_cli.render.sheet import message_sheet

    for line in message_sheet(document, message, daemon):
        output.line(line)
    return DONE


def list_messages(call: Call) -> int:
    """The chosen messages, in the order of their delivery time."""
    chosen, limit = _selection(call)
    with opening.for_reading(call) as store:
        view = store.view()
        shown = _print_page(call, view, view.select(chosen), limit)
        if not shown and not chosen.states and not call.json and output.on_terminal():
            output.note("nothing waits; --state PUBLISHED and the like show what has ended")
    return DONE


def list_dead(call: Call) -> int:
    """As ``list``, of dead letters; with ``--open`` of those that nobody has seen off."""
    chosen, limit = _selection(call)
    chosen = msgspec.structs.replace(chosen, states=(State.DEAD_LETTER,))
    with opening.for_reading(call) as store:
        view = store.view()
        if call.flag("open"):
            # The limit counts what is shown, so it cannot be the limit of what is looked at.
            everyone = view.select(msgspec.structs.replace(chosen, limit=None))
            _print_page(call, view, (one for one in everyone if not one.given_up), limit, reasons=True)
        else:
            _print_page(call, view, view.select(chosen), limit, reasons=True)
    return DONE


def _print_page(
    call: Call, view: Views, messages: Iterator[Message], limit: int | None, *, reasons: bool = False
) -> int:
    """At most ``limit`` messages, and how to go on where there are more; how many were shown. ``reasons``: people
    see beside the state why it is that."""
    page = _Page(messages, limit)
    if call.json:
        as_of = view.head().applied
        for message in page:
            command = _command(view, message)
            output.document(message_line(message, command, as_of, unmask=call.flag("show-secrets")))
        output.document({"schema": "nereus.end/1", "as_of": as_of, "next": page.next})
        return page.shown
    from nereus_cli.render.table import print_messages

    rows = ((message, _command(view, message)) for message in page)
    print_messages(rows, output.write, encoding=output.encoding(), terminal=output.on_terminal(), reasons=reasons)
    if page.next is not None:
        output.note(f"there are more: --cursor {page.next}")
    return page.shown


class _Page:
    """At most ``limit`` messages, and the cursor of the next page once they were read."""

    def __init__(self, messages: Iterator[Message], limit: int | None) -> None:
        self._messages = messages
        self._limit = limit
        self.next: str | None = None
        self.shown = 0

    def __iter__(self) -> Iterator[Message]:
        last: Message | None = None
        for count, message in enumerate(self._messages):
            if count == self._limit:
                self.next = _cursor(last) if last else None
                return
            self.shown += 1
            yield message
            last = message


def _command(view: Views, message: Message) -> Command | None:
    described = view.descriptor(message.descriptor_position)
    return described.command if described else None


def _selection(call: Call) -> tuple[Selection, int | None]:
    """What a list was asked for, and the limit of a page; one more is looked for, to know whether there is more."""
    limit = call.whole("limit", least=1)
    chosen = Selection(
        states=tuple(_state(text) for text in call.texts("state")),
        tags=tuple(_tag(text) for text in call.texts("tag")),
        lane=call.text("lane"),
        key=call.text("key"),
        due_before=asking.instant_option(call, "due-before"),
        after=_after(call.text("cursor")),
        limit=None if limit is None else limit + 1,
    )
    return chosen, limit


def _state(text: str) -> State:
    name = text.upper().replace("-", "_")
    if name not in State.__members__:
        raise usage(f"--state takes one of {', '.join(State)}", field="state")
    return State(name)


def _tag(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise usage("--tag takes NAME=VALUE", field="tag")
    return name, value


def _cursor(message: Message) -> str:
    place = as_json([message.deliver_at, message.message_id])
    return base64.urlsafe_b64encode(place).decode("ascii").rstrip("=")


def _after(cursor: str | None) -> tuple[int, str] | None:
    if cursor is None:
        return None
    try:
        data = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        return msgspec.json.decode(data, type=tuple[int, str])
    except (binascii.Error, UnicodeError, msgspec.DecodeError, RecursionError):
        raise usage("--cursor takes what a list ended with", field="cursor") from None
