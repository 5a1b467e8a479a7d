"""Rows that know more than their log: it lost its tail, and nobody goes on as if nothing had happened."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from nereus_cli.codec import encode_command
from nereus_cli.ports import CorruptLogError
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
