"""``nereus wait``: until messages have ended, or nothing moves them any more."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from nereus_cli.cli import asking, opening, output
from nereus_cli.cli.exits import DONE, UNKNOWN, usage
from nereus_cli.domain.message import TERMINAL, Message, State, Work

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.render.machine import Document
    from nereus_cli.store import Store

ENDED: Final = 20
UNCERTAIN: Final = 21
TIMED_OUT: Final = 22
_POLL_S: Final = 1.0
_AIMS: Final = ("terminal", "published", "applied")
_WORDS: Final = {DONE: "DONE", ENDED: "ENDED", UNCERTAIN: "UNCERTAIN", TIMED_OUT: "TIMED_OUT", UNKNOWN: "NOT_FOUND"}


class Seen(msgspec.Struct, frozen=True):
    """How one message stands; ``status`` is None while it may still move."""

    message_id: str
    status: int | None
    message: Message | None


def wait(call: Call) -> int:
    """Polls the log's end; every look is a fresh fold of what is durable."""
    names = list(dict.fromkeys(asking.checked(word) for word in call.words("argument")))
    aim = call.text("for") or "terminal"
    if aim not in _AIMS:
        raise usage(f"--for takes {', '.join(_AIMS)}", field="for")
    timeout = call.duration("timeout")
    until = None if timeout is None else time.monotonic() + timeout / 1e9
    with opening.for_reading(call) as store:
        seen, as_of = _look(store, names, aim)
        _hint(call, store, seen)
        while any(one.status is None for one in seen) and not _over(until):
            store.log.wait(as_of, _POLL_S if until is None else min(_POLL_S, max(until - time.monotonic(), 0)))
            seen, as_of = _look(store, names, aim)
    seen = [one if one.status is not None else Seen(one.message_id, TIMED_OUT, one.message) for one in seen]
    return _tell(call, seen, as_of)


def worst(statuses: list[int]) -> int:
    """13 if one is not known at all, else 22 before 21 before 20 before 0."""
    return UNKNOWN if UNKNOWN in statuses else max(statuses, default=DONE)


def judged(message: Message, aim: str) -> int | None:
    """The status for one message, or None while waiting makes sense."""
    if aim == "applied" or message.state is State.PUBLISHED:
        return DONE
    if message.state in TERMINAL:
        return ENDED
    return UNCERTAIN if message.state is State.UNCERTAIN and message.work is Work.NONE else None


def _look(store: Store, names: list[str], aim: str) -> tuple[list[Seen], int]:
    store.forget_views()
    view = store.view()
    found = view.messages(names)
    if len(found) < len(names):
        view = asking.through_the_end(store, view)
        found = view.messages(names)
    seen = []
    for name in names:
        message = found.get(name)
        seen.append(Seen(name, UNKNOWN if message is None else judged(message, aim), message))
    return seen, view.head().applied


def _over(until: float | None) -> bool:
    return until is not None and time.monotonic() >= until


def _hint(call: Call, store: Store, seen: list[Seen]) -> None:
    if not call.json and any(one.status is None for one in seen) and store.presence().state == "none":
        output.note("no daemon: nothing moves until `nereus run` is started")


def _tell(call: Call, seen: list[Seen], as_of: int) -> int:
    status = worst([one.status or DONE for one in seen])
    if call.json:
        items = [_item(one) for one in seen]
        output.document({"schema": "nereus.wait/1", "as_of": as_of, "exit": status, "items": items})
        return status
    for one in seen:
        state = one.message.state.value if one.message else "unknown"
        late = " (timed out)" if one.status == TIMED_OUT else ""
        output.line(f"{one.message_id}  {state}{late}")
    return status


def _item(one: Seen) -> Document:
    status = one.status or DONE
    state = one.message.state.value if one.message else None
    return {"message_id": one.message_id, "state": state, "outcome": _WORDS[status], "exit": status}
