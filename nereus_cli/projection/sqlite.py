"""The projection in SQLite: write-ahead log, one transaction for rows and applied position.

It may lag behind the log and be deleted at any time; it never leads, because only durable records are applied.
Synchronous NORMAL is enough for that: what a power cut takes from it, the log gives back.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from nereus_cli.domain.facts import Descriptor, Head, History, Result
from nereus_cli.domain.message import TERMINAL, Attempt, Message, State
from nereus_cli.ports import Batch, ProjectionStalledError, Selection
from nereus_cli.projection import rows
from nereus_cli.projection.rows import ProjectionError

__all__ = ["ForeignProjectionError", "ProjectionError", "SqliteProjection"]

_CHUNK = 500
_BUSY_MS = 5_000
# Small stores live on small disks, too: the write-ahead log is emptied early and not kept larger than this.
_WAL_PAGES = 256
_WAL_BYTES = 1 << 20
# What the file itself is to blame for. Anything else, want of descriptors or a disk that refuses, says nothing of it:
# to delete it then would delete what proves that a log lost its tail.
_DAMAGE = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_MISMATCH,
    }
)
_LEFT_OPEN = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})
_PRIMARY_CODE = 0xFF
_COLUMN_MAX = (1 << 63) - 1
T = TypeVar("T")


class ForeignProjectionError(ProjectionError):
    """It was folded from another log."""


class SqliteProjection:
    """Rows of one store. Writers hold the projection lock; any number of readers look at one snapshot each."""

    def __init__(self, path: Path, store_id: bytes, *, write: bool) -> None:
        """Opens, or with ``write`` creates, the file. Raises ProjectionError when it must be rebuilt,
        ProjectionStalledError when only the moment is bad: then it is as good as it was."""
        try:
            self._open(path, store_id, "rwc" if write else "ro", write=write)
        except sqlite3.DatabaseError as error:
            if write or _code(error) not in _LEFT_OPEN:
                raise _unusable(error) from error
            # What a writer that died left in its write-ahead log is taken up only by who opens it for writing.
            try:
                self._open(path, store_id, "rw", write=False)
            except sqlite3.DatabaseError as again:
                raise _unusable(again) from again

    def _open(self, path: Path, store_id: bytes, mode: str, *, write: bool) -> None:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(store_id, write=write)
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, store_id: bytes, *, write: bool) -> None:
        self._db.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        if write:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA cache_size=-16384")
            self._db.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES}")
            self._db.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")
            if not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                self._create(store_id)
        else:
            self._db.execute("BEGIN")
        meta = dict(self._db.execute("SELECT name, value FROM meta"))
        if meta.get("layout") != str(rows.LAYOUT).encode():
            msg = "the projection has another layout"
            raise ProjectionError(msg)
        if meta.get("store") != store_id:
            msg = "the projection belongs to another store"
            raise ForeignProjectionError(msg)
        self._head = rows.decode_head(meta.get("head", b""))

    def _create(self, store_id: bytes) -> None:
        with _transaction(self._db):
            for statement in rows.SCHEMA.split(";"):
                self._db.execute(statement)
            values = {"layout": str(rows.LAYOUT).encode(), "store": store_id, "head": rows.encode(Head())}
            self._db.executemany("INSERT INTO meta VALUES (?, ?)", values.items())

    def close(self) -> None:
        """Ends the snapshot and closes the file."""
        self._db.close()

    # ------------------------------------------------------------------------------------------------ facts

    def head(self) -> Head:
        """As of the last commit, or of the snapshot of a reader."""
        return self._head

    def results(self, command_ids: Collection[str]) -> Mapping[str, Result]:
        """The results of those commands that are known."""
        return self._by_id("results", command_ids, rows.decode_result)

    def messages(self, message_ids: Collection[str]) -> Mapping[str, Message]:
        """Those messages that are known."""
        return self._by_id("messages", message_ids, rows.decode_message)

    def _by_id(self, table: str, ids: Collection[str], decode: Callable[[bytes], T]) -> dict[str, T]:
        wanted, found = list(ids), {}
        for start in range(0, len(wanted), _CHUNK):
            part = wanted[start : start + _CHUNK]
            marks = ",".join("?" * len(part))
            query = f"SELECT id, body FROM {table} WHERE id IN ({marks})"  # noqa: S608 -- our own table names
            for identity, body in self._db.execute(query, part):
                found[identity] = decode(body)
        return found

    def commit(self, batch: Batch) -> None:
        """Rows and applied position in one transaction, or ProjectionStalledError and neither."""
        try:
            self._write(batch)
        except sqlite3.OperationalError as error:
            # What is committed moves to the file and its log is emptied: on a small disk that alone makes room.
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            raise ProjectionStalledError(f"the projection cannot be written: {error}") from error
        self._head = batch.head

    def _write(self, batch: Batch) -> None:
        with _transaction(self._db) as db:
            db.executemany(
                "INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                map(rows.message_row, batch.messages.values()),
            )
            db.executemany(
                "INSERT OR REPLACE INTO results VALUES (?, ?)",
                ((result.command_id, rows.encode(result)) for result in batch.results.values()),
            )
            db.executemany(
                "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?)",
                ((name, number, rows.encode(row)) for (name, number), row in batch.attempts.items()),
            )
            db.executemany(
                "INSERT OR REPLACE INTO history VALUES (?, ?, ?)",
                ((line.message_id, line.position, rows.encode(line)) for line in batch.history),
            )
            db.executemany(
                "INSERT OR REPLACE INTO descriptors VALUES (?, ?, ?)",
                ((d.position, d.message_id, rows.encode(d.command)) for d in batch.descriptors.values()),
            )
            db.execute("UPDATE meta SET value = ? WHERE name = 'head'", (rows.encode(batch.head),))

    # ------------------------------------------------------------------------------------------------ views

    def attempts_of(self, message_id: str) -> Sequence[Attempt]:
        """All attempts of a message by number."""
        query = "SELECT body FROM attempts WHERE message_id = ? ORDER BY number"
        return [rows.decode_attempt(body) for (body,) in self._db.execute(query, (message_id,))]

    def history_of(self, message_id: str) -> Sequence[History]:
        """All that happened to a message, in log order."""
        query = "SELECT body FROM history WHERE message_id = ? ORDER BY position"
        return [rows.decode_history(body) for (body,) in self._db.execute(query, (message_id,))]

    def descriptor(self, position: int) -> Descriptor | None:
        """What the record at that position said to deliver."""
        query = "SELECT message_id, body FROM descriptors WHERE position = ?"
        for name, body in self._db.execute(query, (position,)):
            return Descriptor(position, name, rows.decode_command_row(body))
        return None

    def select(self, selection: Selection) -> Iterator[Message]:
        """The chosen messages, in the order of (deliver_at, message_id)."""
        where, values = _where(selection)
        query = f"SELECT body FROM messages WHERE {where} ORDER BY deliver_at, id"  # noqa: S608 -- built of our own columns
        left = selection.limit
        for (body,) in self._db.execute(query, values):
            if left is not None and left <= 0:
                return
            message = rows.decode_message(body)
            if set(selection.tags) <= set(message.tags):
                yield message
                left = None if left is None else left - 1

    def counts(self) -> Mapping[State, int]:
        """How many messages are in each state."""
        query = "SELECT state, count(*) FROM messages GROUP BY state"
        return {rows.STATES[number]: count for number, count in self._db.execute(query)}

    def due(self, through: int, limit: int) -> Sequence[tuple[int, str]]:
        """(timer, message_id) of the earliest messages whose timer is not above ``through``."""
        query = "SELECT timer, id FROM messages WHERE timer IS NOT NULL AND timer <= ? ORDER BY timer, id LIMIT ?"
        return list(self._db.execute(query, (through, limit)))

    def open_messages(self) -> Sequence[Message]:
        """Messages that have an attempt in progress or of unknown effect."""
        query = "SELECT body FROM messages WHERE open > 0 ORDER BY id"
        return [rows.decode_message(body) for (body,) in self._db.execute(query)]

    def digest(self) -> str:
        """Over every row in key order."""
        queries = (
            "SELECT body FROM messages ORDER BY id",
            "SELECT body FROM results ORDER BY id",
            "SELECT body FROM attempts ORDER BY message_id, number",
            "SELECT body FROM history ORDER BY message_id, position",
            "SELECT body FROM descriptors ORDER BY position",
        )
        return rows.digest(self._head, (self._db.execute(query) for query in queries))


def _code(error: sqlite3.DatabaseError) -> int:
    """What kind of error it is; one without a code is about the file itself."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_NOTADB) & _PRIMARY_CODE


def _unusable(error: sqlite3.DatabaseError) -> ProjectionError | ProjectionStalledError:
    """Why the file cannot be used: by its own fault, or only now."""
    if _code(error) in _DAMAGE:
        return ProjectionError(f"the projection cannot be read: {error}")
    hint = "; if it stays so, delete the projection directory: the log gives it back"
    return ProjectionStalledError(f"the projection cannot be read now: {error}{hint}")


def _where(selection: Selection) -> tuple[str, list[object]]:
    """Which rows the columns can choose; tags are looked at after decoding."""
    states = selection.states or tuple(state for state in State if state not in TERMINAL)
    clauses = [f"state IN ({','.join('?' * len(states))})"]
    values: list[object] = [rows.STATE_NUMBERS[state] for state in states]
    for column, value in (("lane", selection.lane), ("key", selection.key)):
        if value is not None:
            clauses.append(f"{column} = ?")
            values.append(value)
    if selection.due_before is not None:
        clauses.append("deliver_at < ?")
        values.append(_column(selection.due_before))
    if selection.after is not None:
        clauses.append("(deliver_at, id) > (?, ?)")
        values += [_column(selection.after[0]), selection.after[1]]
    return " AND ".join(clauses), values


def _column(instant: int) -> int:
    """The nearest one that a column can hold; no message is due beyond it."""
    return min(max(instant, -_COLUMN_MAX), _COLUMN_MAX)


class _transaction:  # noqa: N801 -- reads as a statement
    """BEGIN IMMEDIATE, then COMMIT, or ROLLBACK and the error."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> sqlite3.Connection:
        self._db.execute("BEGIN IMMEDIATE")
        return self._db

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
