"""Rows that know more than their log: it lost its tail, and nobody goes on as if nothing had happened."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nereus_cli.codec import encode_command
from nereus_cli.ports import CorruptLogError, ProjectionStalledError
from nereus_cli.store import Store, open_store
from tests.codec.samples import STATED, sample


def fold(store: Store) -> None:
    with closing(store.open_projection()) as projection:
        for _ in store.pull(projection, None):
            pass


@pytest.fixture
def behind(tmp_path: Path) -> Path:
    """A store whose log is put back into its own files, as a snapshot of a disk does: no mark, inode or boot tells."""
    path = tmp_path / "store"
    with open_store(str(path), create=True) as store:
        store.log.append([encode_command(sample(STATED["schedule, least"]))])
        files = [file for file in (path / "log").rglob("*") if file.is_file()]
        saved = {file: file.read_bytes() for file in files}
        store.log.append([encode_command(sample(STATED["cancel"]))])
        fold(store)
    for file, data in saved.items():
        file.write_bytes(data)
    return path


def test_an_owner_does_not_go_on(behind: Path) -> None:
    with open_store(str(behind)) as store, pytest.raises(CorruptLogError, match="its tail is lost"):
        store.open_projection()


def test_a_reader_is_not_shown_what_the_log_does_not_give(behind: Path) -> None:
    with open_store(str(behind)) as store, pytest.raises(CorruptLogError, match="its tail is lost"):
        store.view()


def test_the_log_gives_the_rows_back_when_they_are_deleted(behind: Path) -> None:
    for file in (behind / "projection").glob("state.db*"):
        file.unlink()
    with open_store(str(behind)) as store:
        fold(store)
        assert store.view().head().applied == 1


def test_a_mark_that_is_only_old_loses_nothing(tmp_path: Path) -> None:
    """As when a medium is pulled and put back within one boot: the frames are there, the mark speaks of fewer."""
    path = tmp_path / "store"
    with open_store(str(path), create=True) as store:
        store.log.append([encode_command(sample(STATED["schedule, least"]))])
        mark = (path / "log" / "mark" / "durable").read_bytes()
        store.log.append([encode_command(sample(STATED["cancel"]))])
        fold(store)
        (path / "log" / "mark" / "durable").write_bytes(mark)
    with open_store(str(path)) as store:
        assert store.log.bounds().durable == 1
        assert store.view().head().applied == 2
        with closing(store.open_projection()) as projection:
            assert projection.head().applied == 2
        assert store.log.bounds().durable == 2


REFUSED = ("SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_PERM", "SQLITE_NOMEM")


@pytest.fixture(params=REFUSED)
def refusing(behind: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of such a store cannot be opened now, for want of something or because a disk errs."""
    assert behind.exists()
    error = sqlite3.OperationalError(f"told so: {request.param}")
    error.sqlite_errorcode = getattr(sqlite3, request.param)

    def connect(*_: object, **__: object) -> sqlite3.Connection:
        raise error

    monkeypatch.setattr("nereus_cli.projection.sqlite.sqlite3.connect", connect)


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.usefixtures("refusing")
def test_what_proves_a_lost_tail_is_not_deleted_because_it_cannot_be_opened_now(behind: Path) -> None:
    before = contents(behind / "projection")
    with open_store(str(behind)) as store, pytest.raises(ProjectionStalledError):
        store.open_projection()
    assert contents(behind / "projection") == before


@pytest.mark.usefixtures("refusing")
def test_nothing_is_written_behind_a_tail_that_may_be_lost(behind: Path) -> None:
    """Without a believable mark the rows are the only proof: while they cannot be asked, nothing is appended."""
    (behind / "log" / "mark" / "durable").write_bytes(b"")
    before = (behind / "log" / "0000000001.seg").read_bytes()
    with open_store(str(behind)) as store, pytest.raises(ProjectionStalledError):
        store.log.append([encode_command(sample(STATED["hold"]))])
    assert (behind / "log" / "0000000001.seg").read_bytes() == before


@pytest.mark.usefixtures("refusing")
def test_what_may_only_be_read_is_shown_as_far_as_the_log_proves_it(
    behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (behind / "log" / "mark" / "durable").write_bytes(b"")
    monkeypatch.setattr("nereus_cli.store.os.access", lambda *_: False)
    with open_store(str(behind)) as store:
        assert store.view().head().applied == 1
