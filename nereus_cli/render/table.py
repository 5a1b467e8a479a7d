"""Lists for people: aligned and coloured on a terminal, plain elsewhere, and never shortened: an id can be pasted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from nereus_cli.domain.message import State
from nereus_cli.domain.records import Shell
from nereus_cli.render.human import here
from nereus_cli.render.messages import command_line, reason_of
from nereus_cli.render.text import visible
from nereus_cli.wish.show import rfc3339

if TYPE_CHECKING:
    from nereus_cli.domain.message import Message
    from nereus_cli.domain.records import Command

_HEADINGS: Final = ("ID", "STATE", "DUE", "LOCAL", "COMMAND")
_ALIGNED_MAX: Final = 1_000
_STYLES: Final = {
    State.PUBLISHED: "green",
    State.UNCERTAIN: "bold magenta",
    State.DEAD_LETTER: "bold red",
    State.EXPIRED: "red",
    State.HELD: "yellow",
    State.CANCELED: "dim",
    State.PUBLISHING: "cyan",
}
Row = tuple[str, ...]


def print_messages(
    messages: Iterable[tuple[Message, Command | None]],
    write: Callable[[bytes], None],
    *,
    encoding: str,
    terminal: bool,
    reasons: bool = False,
) -> None:
    """One line a message. A terminal gets blocks with aligned columns, anything else one tab between columns.
    ``reasons``: beside the state stands why."""

    def send(text: str) -> None:
        write(text.encode(encoding, "backslashreplace"))

    if not terminal or os.environ.get("TERM", "dumb") == "dumb":
        for message, command in messages:
            send("\t".join(row(message, command, reasons=reasons)) + "\n")
        return
    first = True
    for block in _blocks(messages, reasons=reasons):
        send(_aligned(block, heading=first))
        first = False


def row(message: Message, command: Command | None, *, reasons: bool = False) -> Row:
    """The columns of a message, fit to be printed."""
    target = getattr(command.stated, "target", None) if command else None
    runs = visible(command_line(target)) if isinstance(target, Shell) else ""
    local = visible(here(message.deliver_at))
    why = (reason_of(message), "seen off" if message.given_up else None) if reasons else ()
    state = " ".join(filter(None, (message.state.value, *why)))
    return (message.message_id, state, rfc3339(message.deliver_at), local, runs)


def _blocks(messages: Iterable[tuple[Message, Command | None]], *, reasons: bool) -> Iterator[list[Row]]:
    block: list[Row] = []
    for message, command in messages:
        block.append(row(message, command, reasons=reasons))
        if len(block) == _ALIGNED_MAX:
            yield block
            block = []
    if block:
        yield block


def _aligned(rows: list[Row], *, heading: bool) -> str:
    """By rich, as wide as the widest row: the terminal wraps a long line, and no cell is cut."""
    from io import StringIO

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=heading, pad_edge=False, padding=(0, 2, 0, 0))
    for name in _HEADINGS:
        table.add_column(name, no_wrap=True, overflow="ignore")
    for cells in rows:
        style = _STYLES.get(State(cells[1].partition(" ")[0]), "")
        table.add_row(*(Text(cell, style=style if place == 1 else "") for place, cell in enumerate(cells)))
    width = 4 * len(_HEADINGS) + sum(max(len(r[place]) for r in rows) for place in range(len(_HEADINGS))) * 2
    held = StringIO()
    Console(file=held, force_terminal=True, width=width, legacy_windows=False, highlight=False).print(table)
    return "".join(f"{line.rstrip()}\n" for line in held.getvalue().splitlines())
