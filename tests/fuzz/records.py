"""Targets: what is inside a frame, and the other small formats of a store: rows, evidence, requests, beat, description,
prepared files. Decoded commands and mutations are also applied: whatever can be decoded must not stop the fold."""

from __future__ import annotations

import atexit
import os
import tempfile
import zlib
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec

from nereus_cli.cli.exits import Failure
from nereus_cli.cli.output import as_json
from nereus_cli.cli.prepared import _file_of, _read
from nereus_cli.codec import (
    NewerRecordError,
    UndecodableError,
    decode_command,
    decode_mutation,
    encode_command,
    encode_mutation,
    hash_stated,
)
from nereus_cli.destinations import keeper_facts, keeper_requests
from nereus_cli.domain.apply import Chain, apply_command, apply_mutation
from nereus_cli.domain.facts import Change, Facts, Head, History, Place, Result
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.message import Message
from nereus_cli.domain.outcome import Decision, Reason
from nereus_cli.domain.records import At, Command, Context, Expiry, Schedule, Shell
from nereus_cli.founding import check_format
from nereus_cli.keeper import wire
from nereus_cli.keeper.lines import line
from nereus_cli.ports import CorruptLogError, NewerFormatError
from nereus_cli.prepare.commands import thaw
from nereus_cli.presence import Beat, read_beat
from nereus_cli.projection import rows
from nereus_cli.render.machine import Document
from nereus_cli.render.messages import captured, message_line, wish
from nereus_cli.render.sheet import message_sheet
from nereus_cli.render.table import row
from tests.codec.samples import CONTEXT, MUTATIONS, STATED, sample
from tests.fuzz.mutator import JSON_TOKENS, MSGPACK_TOKENS, TEXT_TOKENS
from tests.fuzz.target import Target, warm_zones, zone_data

_REFUSED: Final = (UndecodableError, NewerRecordError)
_NOW: Final = CONTEXT.requested_at
_PLACE: Final = Place(9, _NOW, b"b" * 16, 5)
_COMMANDS: Final = tuple(encode_command(sample(stated)) for stated in STATED.values())
_MUTATIONS: Final = tuple(encode_mutation(one) for one in MUTATIONS.values())
_SQLITE: Final = range(-(1 << 63), 1 << 63)


# ------------------------------------------------------------------------------------------ commands, mutations


def _applied() -> Change:
    return apply_command(Facts(Head()), sample(STATED["schedule, least"]), Place(1, _NOW), PRODUCTION)


_SCHEDULED: Final = _applied().message
_FACTS: Final = (Facts(Head(applied=8)), Facts(Head(applied=8, epoch=1, owner_position=2), message=_SCHEDULED))


def _storable(change: Change) -> str:
    """Rows can be written of it: a whole number of a column has 64 bits."""
    if change.message is not None:
        for value in rows.message_row(change.message):
            if isinstance(value, int) and value not in _SQLITE:
                return f"a column of {value}"
    for part in (change.head, change.result, change.history, *change.attempts):
        if part is not None:
            rows.encode(part)
    return ""


def _command(data: bytes) -> str:
    command = decode_command(data)
    if command.command_hash == hash_stated(command.stated):
        written = encode_command(command)
        if encode_command(decode_command(written)) != written:
            return "a command that is not written as it was read"
    for facts in _FACTS:
        change = apply_command(facts, command, _PLACE, PRODUCTION)
        wrong = _storable(change)
        if wrong:
            return wrong
        if change.message is not None:
            _shown(change.message, command)
    return ""


def _shown(message: Message, command: Command) -> None:
    """As ``list`` and ``show`` show it, for people and machines."""
    document = message_line(message, command, 9)
    more: Document = {"when": wish(command), "captured": captured(command, unmask=False), "attempts": [], "history": []}
    as_json(document | more)
    message_sheet(document | more, message, "none")
    row(message, command)


def _mutation(data: bytes) -> str:
    mutation = decode_mutation(data)
    written = encode_mutation(mutation)
    if encode_mutation(decode_mutation(written)) != written:
        return "a mutation that is not written as it was read"
    for epoch in (1, 2):
        wrong = _storable(apply_mutation(_FACTS[1], mutation, Chain(epoch, 2), _PLACE, PRODUCTION))
        if wrong:
            return wrong
    return ""


class Sealed:
    """Commands by their stated part alone: everything around it, the hash too, is made true again."""

    def __init__(self) -> None:
        whole = sample(STATED["cancel"], Context("anna", _NOW, instant=_NOW + 60, expiry_instant=_NOW + 90))
        marker = msgspec.msgpack.encode(whole.stated)
        self._before, _, rest = encode_command(whole).partition(whole.command_hash)
        self._between, _, self._after = rest.partition(marker)
        at = Schedule(
            "m", At("2027-01-15T08:00Z"), Shell((b"true",)), priority=3, tags=(("a", "b"),), late_after_ns=9,
            expiry=Expiry(at=At("later", gap="later")),
        )  # fmt: skip
        self.samples = tuple(msgspec.msgpack.encode(stated) for stated in (*STATED.values(), at))

    def run(self, data: bytes) -> str:
        """``data`` is what was stated."""
        digest = sha256(b"nereus.command/1\0" + data).digest()
        return _command(b"".join((self._before, digest, self._between, data, self._after)))


# ---------------------------------------------------------------------------------------------------------- rows


def _row_samples() -> dict[str, tuple[Callable[[bytes], Any], list[bytes]]]:
    message = _SCHEDULED
    assert message is not None
    facts = Facts(Head(epoch=1, owner_position=2), message=message)
    admitted = apply_mutation(
        facts,
        msgspec.structs.replace(
            MUTATIONS["admission"], generation=0, descriptor_hash=message.descriptor_hash,
            earliest=message.deliver_at, latest=message.deliver_at,
        ),
        Chain(1, 2), _PLACE, PRODUCTION,
    )  # fmt: skip
    assert admitted.message is not None
    result = Result("c-1", b"h" * 32, 9, _NOW, "m", Decision.REJECTED, Reason.NOT_FOUND, attempt=("na~1", 1))
    head = apply_mutation(Facts(Head()), MUTATIONS["owner"], Chain(1, 0), _PLACE, PRODUCTION).head
    return {
        "message": (rows.decode_message, [rows.encode(message), rows.encode(admitted.message)]),
        "result": (rows.decode_result, [rows.encode(result)]),
        "attempt": (rows.decode_attempt, [rows.encode(one) for one in admitted.attempts]),
        "history": (rows.decode_history, [rows.encode(History("m", 9, _NOW, "Schedule", 0, "why"))]),
        "command": (rows.decode_command_row, [rows.encode(sample(stated)) for stated in STATED.values()]),
        "head": (rows.decode_head, [rows.encode(Head()), rows.encode(head)]),
    }


def _row(decode: Callable[[bytes], Any]) -> Callable[[bytes], str]:
    def run(data: bytes) -> str:
        value = decode(data)
        written = rows.encode(value)
        if rows.encode(decode(written)) != written:
            return "a row that is not written as it was read"
        if isinstance(value, Message):
            rows.message_row(value)
        return ""

    return run


# ------------------------------------------------------------------------------------------------------- keeper

_REQUEST: Final = keeper_requests.StartRequest(
    attempt_id="na~1", directory=3, argv=(b"cp", b"\xff", b""), cwd=b"/srv", env=((b"A", b"1"), (b"B", b"")),
    stdin=b"in\0put", timeout_ms=30,
)  # fmt: skip
_REQUESTS: Final = (
    keeper_requests.start_frame(_REQUEST),
    keeper_requests.stop_frame("na~1", kill=True) + keeper_requests.DRAIN,
)
_LINES: Final = (
    line("HEAD", 1, "ab" * 16, 5, 6, 7, _NOW, 8), line("TAKEN", "na~1"), line("STARTED", "na~1", 77, _NOW, 9),
    line("NOSTART", "na~1", 2, "exec"), line("CLOSED", "na~1"), line("TIMEDOUT", "na~1"), line("STOPPED", "na~1"),
    line("ENDED", "na~1", 256, 0, 1, _NOW, _NOW + 5, 99, 10, 20, 1_024, 5, 6, 7, 8, -1), line("LOST", "na~1"),
    line("DRAINING", "k-1"),
)  # fmt: skip


def _wire(data: bytes) -> str:
    buffer = bytearray(data)
    for body in wire.split(buffer):
        asked = wire.parse(body)
        if isinstance(asked, wire.Start) and not (asked.argv and asked.cwd.startswith(b"/")):
            return "a start that cannot be one"
    return ""


def seal_lines(data: bytearray) -> None:
    """Makes the check of every line true."""
    data[:] = b"\n".join(b"%08x " % zlib.crc32(raw[9:]) + raw[9:] if len(raw) > 9 else raw for raw in data.split(b"\n"))


def _facts(data: bytes) -> str:
    for words in keeper_facts.checked_lines(data):
        fact = keeper_facts.fact(words)
        if isinstance(fact, keeper_facts.Ended) and fact.exit_code is not None and fact.signal is not None:
            return "an end that is both exit and signal"
        if isinstance(fact, keeper_facts.NotStarted):
            os.strerror(fact.errno)
    return ""


# -------------------------------------------------------------------------------------------------- small files


class _Files:
    """The place of the small files, made when it is first needed and gone with the process."""

    def __init__(self) -> None:
        self.place = ""
        self._open: dict[str, int] = {}

    def put(self, name: str, data: bytes) -> None:
        """Makes ``data`` the content of a file."""
        if not self.place:
            directory = tempfile.TemporaryDirectory(prefix="nereus-fuzz-")
            atexit.register(directory.cleanup)
            self.place = directory.name
        if name not in self._open:
            self._open[name] = os.open(f"{self.place}/{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.pwrite(self._open[name], data, 0)
        os.ftruncate(self._open[name], len(data))


_FILES: Final = _Files()


def _seal_beat(data: bytearray) -> None:
    body = data[6:]
    data[:6] = zlib.crc32(body).to_bytes(4, "big") + (len(body) & 0xFFFF).to_bytes(2, "big")


def _beat_bytes() -> bytes:
    beat = Beat(pid=7, epoch=2, since=_NOW, monotonic_ns=9, boot_id=b"b" * 16, trouble="no space", gated_ns=4)
    data = bytearray(bytes(6) + msgspec.msgpack.encode(beat))
    _seal_beat(data)
    return bytes(data)


def _may(event: str, args: tuple[object, ...]) -> bool:
    return event == "open" and str(args[0]).startswith(_FILES.place)


def _file(name: str, read: Callable[[str], object]) -> Callable[[bytes], str]:
    def run(data: bytes) -> str:
        _FILES.put(name, data)
        read(_FILES.place)
        return ""

    return run


def _prepared(data: bytes) -> str:
    _file_of(_read(data))
    return ""


_PREPARED: Final = tuple(msgspec.json.encode(_file_of(thaw(payload))) for payload in _COMMANDS)
_SEALED: Final = Sealed()

setup = warm_zones

TARGETS: Final = (
    Target(
        name="command", samples=_COMMANDS, tokens=MSGPACK_TOKENS, run=_command, allowed=_REFUSED, share=4,
        may=zone_data,
    ),
    Target(
        name="command, true hash", samples=_SEALED.samples, tokens=MSGPACK_TOKENS, run=_SEALED.run, allowed=_REFUSED,
        share=3, may=zone_data,
    ),
    Target(name="mutation", samples=_MUTATIONS, tokens=MSGPACK_TOKENS, run=_mutation, allowed=_REFUSED, share=4),
    *(
        Target(
            name=f"row of a {name}", samples=tuple(samples), tokens=MSGPACK_TOKENS, run=_row(decode),
            allowed=(rows.ProjectionError,), share=1,
        )
        for name, (decode, samples) in _row_samples().items()
    ),
    Target(
        name="keeper-wire", samples=_REQUESTS, tokens=(*TEXT_TOKENS, bytes(4), b"\xff" * 4), run=_wire,
        allowed=(wire.MalformedError,), share=2,
    ),
    Target(
        name="evidence", samples=(*_LINES, b"".join(_LINES)), tokens=TEXT_TOKENS, run=_facts, seal=seal_lines, share=2,
    ),
    Target(
        name="beat", samples=(_beat_bytes(),), tokens=MSGPACK_TOKENS, run=_file("beat", read_beat), seal=_seal_beat,
        may=_may, share=1,
    ),
    Target(
        name="description", samples=(b'{"schema":"nereus.store/1","format":1}\n',), tokens=JSON_TOKENS,
        run=_file("store.json", check_format), allowed=(CorruptLogError, NewerFormatError),
        may=_may, share=1,
    ),
    Target(name="prepared", samples=_PREPARED, tokens=JSON_TOKENS, run=_prepared, allowed=(Failure,), share=1),
)  # fmt: skip
