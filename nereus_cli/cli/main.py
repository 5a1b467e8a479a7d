"""The front door: an argument vector in, an exit status out, and never a traceback.

Parse, then interpret, then act: help and usage errors need no store.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nereus_cli.cli import output
from nereus_cli.cli.exits import BUG, DONE, IO, READER_GONE, UNCERTAIN, Failure, classify
from nereus_cli.cli.split import Help, split

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call

Handler = Callable[["Call"], int]


def main(argv: Sequence[str] | None = None, ready: Callable[[], object] = lambda: None) -> int:
    """Runs one command; ``argv`` without the program's name, the process's own by default, which then ends with it:
    only who calls for a part of a program gets its heed of interrupts back. ``ready`` is called when all is loaded
    and nothing was done yet."""
    words = list(sys.argv[1:] if argv is None else argv)
    output.secure_descriptors()
    # What is made below us is nobody else's, whatever the caller's umask; the command gets the caller's.
    umask = os.umask(0o077)
    heeds = signal.getsignal(signal.SIGINT)
    try:
        return _run(words, umask, ready)
    finally:
        os.umask(umask)
        if heeds is not None and argv is not None:
            signal.signal(signal.SIGINT, heeds)


def _run(words: Sequence[str], umask: int, ready: Callable[[], object]) -> int:
    call: Call | None = None
    try:
        if wants_json(words):
            # Loaded before anything can go wrong: where no file can be opened any more, it is too late.
            import nereus_cli.render.machine  # noqa: F401 -- as above

        call = _parsed(words, umask)
        handler = _handler(call)
        ready()
        return handler(call)
    except Help as text:
        return _help(str(text))
    except output.ReaderGone:
        return READER_GONE
    except output.Unprintable as error:
        output.note(str(error))
        return IO
    except KeyboardInterrupt as error:
        if call is not None and call.status is not None:
            return call.status
        return _failed(classify(error), words)
    except Exception as error:  # noqa: BLE001 -- the last line of defence: one line and a status, never a traceback
        if os.environ.get("NEREUS_DEBUG") == "1":
            import traceback

            traceback.print_exc()
        return _failed(classify(error), words)


def _parsed(words: Sequence[str], umask: int) -> Call:
    from nereus_cli.cli.call import Call

    parts = split(words)
    from nereus_cli.cli.parser import parse

    given = parse(parts)
    call = Call(parts.verb, given, argv=words, tail=parts.tail, umask=umask)
    call.prepare = parts.prepare
    return call


def _handler(call: Call) -> Handler:
    from importlib import import_module

    module, _, function = ("prepared:prepare" if call.prepare else call.verb.handler).partition(":")
    handler: Handler = getattr(import_module(f"nereus_cli.cli.{module}"), function)
    return handler


def _help(text: str) -> int:
    try:
        output.write((text.rstrip("\n") + "\n").encode(output.encoding(), "backslashreplace"))
    except output.ReaderGone:
        return READER_GONE
    except output.Unprintable as error:
        output.note(str(error))
        return IO
    return DONE


def _failed(failure: Failure, words: Sequence[str]) -> int:
    """One line for people, or one document for machines; and the status."""
    if failure.status == BUG:
        failure.message += " (NEREUS_DEBUG=1 shows where)"
    try:
        if wants_json(words):
            from nereus_cli.render.machine import error_document

            output.document(error_document(failure.code, failure.message, failure.status, failure.details))
        else:
            output.note(failure.message)
    except output.ReaderGone:
        return READER_GONE if failure.status != UNCERTAIN else UNCERTAIN
    except output.Unprintable:
        output.note(failure.message)
    return failure.status


def wants_json(words: Sequence[str]) -> bool:
    """Whether machine output was asked for, also in a line that cannot be parsed."""
    before = words[: words.index("--")] if "--" in words else words
    return "--json" in before
