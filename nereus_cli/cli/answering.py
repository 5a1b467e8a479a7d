"""``nereus result``: what became of a command, by its id or by the file it was prepared in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nereus_cli.answers import Answer, conflict
from nereus_cli.cli import asking, exits, opening, output
from nereus_cli.cli.exits import EXPIRED, UNKNOWN, Failure, usage
from nereus_cli.codec import encode_command
from nereus_cli.domain import identity
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.ports import Appended
from nereus_cli.prepare.wishes import Prepared

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.domain.facts import Result
    from nereus_cli.ports import Views
    from nereus_cli.store import Store


def result(call: Call) -> int:
    """Prints the receipt again and exits as the command did."""
    command_id, mine = _asked(call)
    with opening.for_reading(call) as store:
        view = store.view()
        found = view.results([command_id]).get(command_id)
        if found is None:
            view, found = _behind(store, view, command_id)
        answer = _answer(store, view, found, mine)
        _print(call, store, answer)
    return exits.REASONS[answer.why] if answer.why else exits.DONE


def _asked(call: Call) -> tuple[str, Prepared | None]:
    """An id cannot hold a slash or a full stop, so a path that does is a file; any other word may be either."""
    word = call.words("argument")[0]
    text = word.decode("utf-8", "replace")
    if identity.is_id(text) and not os.path.isfile(word):
        return text, None
    if not os.path.exists(word) and word != b"-":
        raise usage("neither a command id nor a file", field="command-id")
    from nereus_cli.cli.prepared import read_file

    prepared = read_file(word)
    return prepared.command.command_id, prepared


def _behind(store: Store, view: Views, command_id: str) -> tuple[Views, Result]:
    """Waits for what is written but not yet durable, looks once more, and says what is known if that fails too."""
    view = asking.through_the_end(store, view)
    found = view.results([command_id]).get(command_id)
    if found is not None:
        return view, found
    until = identity.retry_until(command_id, PRODUCTION.retry_window_ns)
    details = {"command_id": command_id, "as_of": view.head().applied}
    if until is not None and until <= view.head().fence:
        raise Failure("RESULT_EXPIRED", "its retry window has closed, the result is gone", EXPIRED, details)
    raise Failure("UNKNOWN", f"no command {command_id} is in the log", UNKNOWN, details)


def _answer(store: Store, view: Views, found: Result, mine: Prepared | None) -> Answer:
    command = store.command_at(found.position)
    place = Appended(found.position, found.persisted_at)
    name = found.message_id
    message = view.messages([name]).get(name) if name else None
    if mine is not None and mine.command.command_hash != found.command_hash:
        return conflict(mine, None, found, message)
    if command is not None:
        mine = Prepared(command, encode_command(command))
    if mine is None:
        raise Failure("RESULT_EXPIRED", "the command itself is no longer in the log", EXPIRED)
    return Answer(prepared=mine, appended=place, result=found, message=message)


def _print(call: Call, store: Store, answer: Answer) -> None:
    if call.json:
        from nereus_cli.render.machine import receipt

        output.document(receipt(answer, daemon=store.presence().state, durability=store.log.durability.value))
        return
    from nereus_cli.render.human import receipt_line

    if answer.rejected:
        output.note(receipt_line(answer))
    else:
        output.line(receipt_line(answer))
