"""The file of rows: who may open it, what a commit leaves, what a reader sees; and that it may always be deleted."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from nereus_cli.domain.facts import Head
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.message import State
from nereus_cli.domain.records import At, Cancel
from nereus_cli.fold import Fold
from nereus_cli.ports import ProjectionStalledError, Selection
from nereus_cli.projection import rows
from nereus_cli.projection.sqlite import ForeignProjectionError, ProjectionError, SqliteProjection
from tests.domain.story import Story, schedule, told
from tests.fold.ways import STORE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def stored(path: Path) -> Iterator[SqliteProjection]:
    """An owned log with one message, committed."""
    projection = SqliteProjection(path, STORE, write=True)
    commit(projection, told())
    yield projection
    projection.close()


def commit(projection: SqliteProjection, story: Story) -> None:
    fold = Fold(projection, PRODUCTION)
    fold.apply(story.records[projection.head().applied :])
    projection.commit(fold.settle())


def opened(path: Path, *, write: bool = True, store: bytes = STORE) -> None:
    SqliteProjection(path, store, write=write).close()


def test_a_new_file_stands_before_the_first_record(path: Path) -> None:
    with closing(SqliteProjection(path, STORE, write=True)) as projection:
        assert (projection.head(), projection.counts()) == (Head(), {})
    with closing(SqliteProjection(path, STORE, write=False)) as reader:
        assert reader.head() == Head()


def test_a_reader_never_makes_a_file(path: Path) -> None:
    with pytest.raises(ProjectionStalledError):
        opened(path, write=False)
    assert not path.exists()


def test_a_reader_writes_nothing(stored: SqliteProjection, path: Path) -> None:
    with closing(SqliteProjection(path, STORE, write=False)) as reader, pytest.raises(ProjectionStalledError):
        commit(reader, told())
    assert stored.head().applied == 2


def test_rows_of_another_store_are_not_ours(stored: SqliteProjection, path: Path) -> None:
    assert stored.head().applied == 2
    for write in (True, False):
        with pytest.raises(ForeignProjectionError):
            opened(path, store=b"another-store-id", write=write)


def _meta(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "another layout": lambda path: _meta(path, "UPDATE meta SET value = x'39' WHERE name = 'layout'"),
    "no layout": lambda path: _meta(path, "DELETE FROM meta WHERE name = 'layout'"),
    "no head": lambda path: _meta(path, "DELETE FROM meta WHERE name = 'head'"),
    "a head that is none": lambda path: _meta(path, "UPDATE meta SET value = x'c1' WHERE name = 'head'"),
    "no table": lambda path: _meta(path, "DROP TABLE meta"),
    "no database": lambda path: path.write_bytes(b"these are no rows, and never were" * 200),
    "zeroes": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a torn file": lambda path: path.write_bytes(path.read_bytes()[:5_000]),
}


@pytest.mark.parametrize("write", [True, False], ids=["to write", "to read"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_cannot_be_used_is_said_to_be_one(path: Path, damage: str, write: bool) -> None:
    with closing(SqliteProjection(path, STORE, write=True)) as projection:
        commit(projection, told())
    DAMAGES[damage](path)
    with pytest.raises(ProjectionError):
        opened(path, write=write)


def test_the_head_of_another_layout_is_no_head(path: Path) -> None:
    with closing(SqliteProjection(path, STORE, write=True)) as projection:
        commit(projection, told())
    for body in ("c1", "91" * 3_000, "9aa1ff"):
        _meta(path, f"UPDATE meta SET value = x'{body}' WHERE name = 'head'")  # noqa: S608 -- bodies of this table
        with pytest.raises(ProjectionError):
            opened(path)


@pytest.mark.parametrize("body", ["x'c1'", "x''", f"x'{'91' * 3_000}'", "x'91a2ffff'", "'text'"])
def test_a_damaged_row_is_a_projection_to_be_deleted_and_no_bug(path: Path, body: str) -> None:
    with closing(SqliteProjection(path, STORE, write=True)) as projection:
        commit(projection, told())
        (message,) = projection.select(Selection())
        name = message.message_id
        for table in ("messages", "results", "attempts", "history", "descriptors"):
            _meta(path, f"UPDATE {table} SET body = {body}")  # noqa: S608 -- as above
        asked: list[Callable[[], object]] = [
            lambda: projection.messages([name]),
            lambda: list(projection.select(Selection())),
            lambda: projection.history_of(name),
            lambda: projection.descriptor(message.descriptor_position),
        ]
        for ask in asked:
            with pytest.raises(ProjectionError, match="damaged"):
                ask()


def test_no_instant_is_too_far_to_ask_for(stored: SqliteProjection) -> None:
    (message,) = stored.select(Selection())
    for far in (1 << 63, 1 << 100):
        assert list(stored.select(Selection(due_before=far))) == [message]
        assert list(stored.select(Selection(due_before=-far))) == []
        assert list(stored.select(Selection(after=(far, "")))) == []
        assert list(stored.select(Selection(after=(-far, "")))) == [message]


def test_rows_and_position_are_one_transaction(path: Path) -> None:
    with closing(SqliteProjection(path, STORE, write=True)) as projection:
        said: list[str] = []
        projection._db.set_trace_callback(said.append)
        commit(projection, told())
    words = [
        statement.split()[0] for statement in said if statement.split()[0] in {"BEGIN", "COMMIT", "INSERT", "UPDATE"}
    ]
    assert words[0] == "BEGIN"
    assert words[-1] == "COMMIT"
    assert set(words[1:-1]) == {"INSERT", "UPDATE"}


def test_rows_are_given_back_by_the_log(path: Path) -> None:
    story = told()
    story.attempt("published")
    digests = []
    for _ in range(2):
        with closing(SqliteProjection(path, STORE, write=True)) as projection:
            commit(projection, story)
            digests.append(projection.digest())
        path.unlink()
    assert digests[0] == digests[1]


def test_a_commit_is_all_or_nothing(stored: SqliteProjection, path: Path) -> None:
    story = told()
    story.say(Cancel("m"))
    fold = Fold(stored, PRODUCTION)
    fold.apply(story.records[2:])
    batch = fold.settle()
    broken = msgspec.structs.replace(batch)
    broken.messages = {"m": msgspec.structs.replace(batch.messages["m"], deliver_at=1 << 64)}
    before = stored.digest()
    with pytest.raises(OverflowError):
        stored.commit(broken)
    assert (stored.digest(), stored.head().applied) == (before, 2)
    stored.commit(batch)
    assert stored.messages(["m"])["m"].state is State.CANCELED
    with closing(SqliteProjection(path, STORE, write=False)) as reader:
        assert reader.digest() == stored.digest()


def test_a_commit_that_the_system_refuses_leaves_no_transaction_behind(stored: SqliteProjection) -> None:
    story = told()
    story.say(Cancel("m"))
    stored._db.execute("PRAGMA max_page_count = 1")
    story.say(schedule("n", tags=tuple((f"name-{n}", "v" * 200) for n in range(60))))
    before = stored.digest()
    with pytest.raises(ProjectionStalledError, match="full"):
        commit(stored, story)
    assert not stored._db.in_transaction
    assert stored.digest() == before
    stored._db.execute("PRAGMA max_page_count = 1000000")
    commit(stored, story)
    assert stored.head().applied == 4


@pytest.mark.parametrize("write", [True, False])
def test_a_file_that_cannot_be_had_now_is_not_one_to_rebuild(
    stored: SqliteProjection, path: Path, monkeypatch: pytest.MonkeyPatch, write: bool
) -> None:
    stored.close()
    monkeypatch.setattr("nereus_cli.projection.sqlite._BUSY_MS", 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ProjectionStalledError, match="locked"):
            opened(path, write=write)
        other.execute("ROLLBACK")
    opened(path, write=write)


def test_a_reader_sees_one_moment(stored: SqliteProjection, path: Path) -> None:
    with closing(SqliteProjection(path, STORE, write=False)) as reader:
        before = reader.digest()
        story = told()
        story.say(Cancel("m"))
        commit(stored, story)
        assert (reader.head().applied, reader.digest()) == (2, before)
        assert reader.messages(["m"])["m"].state is State.SCHEDULED
    with closing(SqliteProjection(path, STORE, write=False)) as reader:
        assert reader.messages(["m"])["m"].state is State.CANCELED


def test_the_extremes_of_what_apply_lets_through_can_be_stored(stored: SqliteProjection) -> None:
    story = told()
    lowest = -(1 << 63)
    story.say(schedule("early", when=_at(), allow_past=True, late_after_ns=PRODUCTION.horizon_ns), instant=lowest)
    assert story.message("early").deliver_at == lowest
    story.admit("early")
    story.say(schedule("late", when=_at()), instant=story.now + PRODUCTION.horizon_ns)
    commit(stored, story)
    assert stored.due(1 << 62, 1)[0] == (story.message("m").timer, "m")
    assert [m.message_id for m in stored.open_messages()] == ["early"]


def _at() -> At:
    return At("then")


def test_a_digest_cannot_be_the_same_for_rows_cut_otherwise() -> None:
    cuts = [[[(b"ab",), (b"c",)]], [[(b"a",), (b"bc",)]], [[(b"abc",)]], [[(b"ab",)], [(b"c",)]], [[], [(b"abc",)]]]
    assert len({rows.digest(Head(), cut) for cut in cuts}) == len(cuts)
    assert rows.digest(Head(), []) != rows.digest(Head(applied=1), [])


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_what_a_dead_writer_left_beside_the_file_is_taken_up_by_a_reader(
    stored: SqliteProjection, path: Path, journal: str
) -> None:
    """As power cuts leave it: the file, the journal of whatever kind beside it, and no shared memory."""
    head = stored.head()
    stored.close()
    left = path.parent / "left"
    left.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(f"PRAGMA journal_mode={journal}")
        writer.execute("PRAGMA cache_size=1")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("CREATE TABLE bulk (body BLOB)")
        writer.executemany("INSERT INTO bulk VALUES (zeroblob(?))", [(3_000,)] * 50)
        for name in ("state.db", "state.db-wal", "state.db-journal"):
            if (path.parent / name).exists():
                shutil.copy(path.parent / name, left / name)
        writer.execute("ROLLBACK")
    with closing(SqliteProjection(left / "state.db", STORE, write=False)) as found:
        assert found.head() == head
