"""What reading verbs share: checked ids, instants of options, and the answer to an id that nobody knows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from nereus_cli.cli.exits import PENDING, UNKNOWN, Failure, usage
from nereus_cli.domain.identity import is_id

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.domain.message import Message
    from nereus_cli.ports import Views
    from nereus_cli.store import Store

_SYNC_WAIT_S: Final = 2.0
_RULE: Final = "use 1 to 128 of A-Z a-z 0-9 _ : @ = + ~ -, not starting with -"


def checked(word: bytes) -> str:
    """An id as typed; raises a usage Failure."""
    text = word.decode("utf-8", "replace")
    if not is_id(text):
        raise usage(f"id: {_RULE}", field="id")
    return text


def one_id(call: Call) -> str:
    """The id a verb was given."""
    return checked(call.words("argument")[0])


def known(store: Store, view: Views, message_id: str) -> tuple[Views, Message]:
    """The message and the view it is in, or the Failure that says there is none."""
    message = view.messages([message_id]).get(message_id)
    if message is None:
        view = through_the_end(store, view)
        message = view.messages([message_id]).get(message_id)
    if message is None:
        raise unknown(message_id, view.head().applied)
    return view, message


def through_the_end(store: Store, view: Views) -> Views:
    """The view, or a newer one where it ends before the log does, as it may while something is not yet, or cannot now
    be, known to be durable: what nobody knows there, nobody knows. Raises a Failure where the end cannot be reached."""
    end = store.log.bounds().last
    if end <= view.head().applied:
        return view
    if store.log.wait(end - 1, _SYNC_WAIT_S) < end:
        details = {"as_of": view.head().applied, "last": end}
        raise Failure("PENDING", "what is at the log's end is not durable yet: ask again", PENDING, details)
    return store.view()


def unknown(message_id: str, as_of: int) -> Failure:
    """No message has this id, and the log was read to its end."""
    details = {"message_id": message_id, "as_of": as_of}
    return Failure("NOT_FOUND", f"no message has the id {message_id}", UNKNOWN, details)


def instant_option(call: Call, name: str) -> int | None:
    """The instant of an option, in nanoseconds."""
    text = call.text(name)
    if text is None:
        return None
    from nereus_cli.cli.times import refused
    from nereus_cli.wish.instant import parse_instant
    from nereus_cli.wish.refusal import Refusal

    try:
        return parse_instant(text, zone=call.text("tz"), gap=None, fold=None, now_ns=time.time_ns()).instant_ns
    except Refusal as refusal:
        raise refused(refusal, name) from None
