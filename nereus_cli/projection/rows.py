"""How state is laid out in rows: the tables, their bytes, and the digest over them.

Rows are rebuilt from the log whenever their layout changes, so that they need no upcasting: another LAYOUT
number means delete and fold again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec

from nereus_cli.codec import packed
from nereus_cli.domain.facts import Head, History, Result
from nereus_cli.domain.message import TERMINAL, Attempt, Message, State
from nereus_cli.domain.records import Command

LAYOUT: Final = 2
STATE_NUMBERS: Final = {state: number for number, state in enumerate(State)}
STATES: Final = tuple(State)
TERMINAL_NUMBERS: Final = tuple(STATE_NUMBERS[state] for state in State if state in TERMINAL)

SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE messages (
    id TEXT PRIMARY KEY, state INTEGER NOT NULL, deliver_at INTEGER NOT NULL, lane TEXT NOT NULL, key TEXT,
    timer INTEGER, open INTEGER NOT NULL, body BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX due ON messages (timer, id) WHERE timer IS NOT NULL;
CREATE INDEX open_attempts ON messages (open) WHERE open > 0;
CREATE TABLE results (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE attempts (
    message_id TEXT, number INTEGER, body BLOB NOT NULL, PRIMARY KEY (message_id, number)
) WITHOUT ROWID;
CREATE TABLE history (
    message_id TEXT, position INTEGER, body BLOB NOT NULL, PRIMARY KEY (message_id, position)
) WITHOUT ROWID;
CREATE TABLE descriptors (position INTEGER PRIMARY KEY, message_id TEXT NOT NULL, body BLOB NOT NULL);
"""

T = TypeVar("T")
_DAMAGE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError)


class ProjectionError(Exception):
    """The file is not a projection that this version can use: delete it, the log gives it back."""


def _decoder(kind: type[T]) -> Callable[[bytes], T]:
    """Reads a body; ProjectionError for bytes that this layout does not have."""
    decode = msgspec.msgpack.Decoder(kind).decode

    def decoded(body: bytes) -> T:
        try:
            return decode(body)
        except _DAMAGE as error:
            raise ProjectionError(f"a row of the projection is damaged: {error}") from error

    return decoded


encode = packed
decode_message = _decoder(Message)
decode_result = _decoder(Result)
decode_attempt = _decoder(Attempt)
decode_history = _decoder(History)
decode_command_row = _decoder(Command)
decode_head = _decoder(Head)


def message_row(message: Message) -> tuple[str, int, int, str, str | None, int | None, int, bytes]:
    """The columns of a message, in the order of the table."""
    return (
        message.message_id,
        STATE_NUMBERS[message.state],
        message.deliver_at,
        message.lane,
        message.key,
        message.timer,
        len(message.open_attempts),
        encode(message),
    )


def digest(head: Head, tables: Iterable[Iterable[tuple[bytes, ...]]]) -> str:
    """SHA-256 in hexadecimal over the head and each table's rows in key order, lengths included."""
    total = hashlib.sha256(b"nereus.state/1\0" + encode(head))
    for rows in tables:
        total.update(b"\0table")
        for row in rows:
            for part in row:
                total.update(len(part).to_bytes(8, "big"))
                total.update(part)
    return total.hexdigest()
