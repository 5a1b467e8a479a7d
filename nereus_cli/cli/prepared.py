"""``prepare`` and ``submit``: a command's bytes in a file, sent any number of times from any machine."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

import msgspec

from nereus_cli.cli import lines, opening, output, wishes
from nereus_cli.cli.exits import DONE, NEWER, Failure, usage
from nereus_cli.cli.sending import Item, Sender, send_all
from nereus_cli.cli.write import dry_run, waits
from nereus_cli.codec import NewerRecordError, UndecodableError, as_json
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.prepare.commands import thaw

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.prepare.wishes import Prepared

SCHEMA: Final = "nereus.prepared/1"
_ANSWERING: Final = ("wait", "no-wait", "wait-timeout", "dry-run", "quiet")


class PreparedFile(msgspec.Struct, frozen=True):
    """One line of such a file. The payload is what counts; the rest is for people and must agree with it."""

    schema: str
    command_id: str
    command_hash: str
    message_id: str
    verb: str
    payload_b64: str


def prepare(call: Call) -> int:
    """Prints the command that the line means; touches no store."""
    for name in _ANSWERING:
        if name in call.given():
            raise usage(f"--{name} belongs to submit: prepare sends nothing", field=name)
    if call.verb.name == "schedule":
        if call.raw("batch") is not None:
            raise usage("--batch sends; prepare takes one command", field="batch")
        made = [wishes.prepare_schedule(call, None)]
    else:
        words = call.words("argument")
        if len(words) > 1 and call.raw("command-id") is not None:
            raise usage("--command-id names one command, and here are several ids", field="command-id")
        made = [wishes.prepare_control(call, word.decode("utf-8", "replace"), None) for word in words]
    for one in made:
        output.write(as_json(_file_of(one)) + b"\n")
    return DONE


def submit(call: Call) -> int:
    """Sends exactly the bytes that were prepared; one receipt for each line of the file."""
    wait = waits(call, default=True)
    blocks = iter(lines.Reader(lines.open_input(call.words("argument")[0])))
    first = next(blocks, [])
    ahead = next(blocks, None) if len(first) == 1 else []
    single = len(first) == 1 and ahead is None
    if not first:
        raise usage("the file is empty: it should hold what nereus prepare printed", field="file")
    if single:
        prepared = _read(first[0][1])
        if call.flag("dry-run"):
            return dry_run(call, prepared)
    elif call.flag("dry-run"):
        raise usage("--dry-run takes a file of one command", field="dry-run")
    sender = Sender(call, lambda: opening.for_writing(call, create=True), wait=wait, single=single)
    rest: Iterable[list[lines.Line]] = chain([first], [ahead] if ahead else [], blocks)
    return send_all(sender, lines.items(rest, lambda number, line: _item(number, line, single=single)))


def read_file(path: bytes) -> Prepared:
    """The one command in a file; raises a Failure."""
    fd = lines.open_input(path)
    found: Iterator[lines.Line] = chain.from_iterable(lines.Reader(fd))
    first = next(found, None)
    if first is None:
        raise usage("the file is empty: it should hold what nereus prepare printed", field="file")
    return _read(first[1])


def _item(number: int, line: bytes | None, *, single: bool) -> Item | None:
    if line is not None and not line.strip():
        return None
    try:
        return Item(_read(line), line=number)
    except Failure as failure:
        if single:
            raise
        return Item(failure=failure, line=number)


def _file_of(prepared: Prepared) -> PreparedFile:
    from nereus_cli.render.machine import verb_of

    command = prepared.command
    return PreparedFile(
        SCHEMA,
        command.command_id,
        f"sha256:{command.command_hash.hex()}",
        getattr(command.stated, "message_id", ""),
        verb_of(command),
        base64.b64encode(prepared.payload).decode("ascii"),
    )


def _read(line: bytes | None) -> Prepared:
    """The command of a line: decoded, and in agreement with what stands beside it."""
    try:
        found = msgspec.json.decode(line or b"", type=PreparedFile)
        payload = base64.b64decode(found.payload_b64, validate=True)
    except (msgspec.DecodeError, binascii.Error, ValueError, RecursionError):
        raise _malformed("this is not what nereus prepare printed") from None
    if found.schema != SCHEMA:
        if found.schema.startswith("nereus.prepared/"):
            raise Failure("NEWER", f"a prepared file of shape {found.schema}; this version reads {SCHEMA}", NEWER)
        raise _malformed("this is not what nereus prepare printed")
    if len(payload) > PRODUCTION.record_bytes_max:
        raise _malformed("this command is larger than any may be")
    try:
        prepared = thaw(payload)
    except NewerRecordError as error:
        raise Failure("NEWER", str(error), NEWER) from None
    except UndecodableError as error:
        raise _malformed(f"the bytes in it are no command: {error}") from None
    if _file_of(prepared) != found:
        raise _malformed("what it says of its command is not true of the bytes: it was changed")
    return prepared


def _malformed(message: str) -> Failure:
    return usage(f"{message}", field="file")
