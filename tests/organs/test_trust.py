"""Whom a store is trusted to: modes, owners, ancestors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nereus_cli.store import open_store
from nereus_cli.trust import ForeignError, UnsafeError, judge


@pytest.fixture
def store(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    path = tmp_path / "above" / "store"
    path.mkdir(parents=True)
    path.chmod(0o700)
    path.parent.chmod(0o755)
    return path


def test_a_private_directory_of_mine_is_trusted(store: Path) -> None:
    permission = judge(str(store))
    assert (permission.rule, permission.uid, permission.store_mode) == ("store-owner", os.geteuid(), 0o700)


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o720, 0o750, 0o755, 0o770, 0o777, 0o1777])
def test_a_store_open_to_others_is_refused(store: Path, mode: int) -> None:
    store.chmod(mode)
    with pytest.raises(UnsafeError, match=f"{mode & 0o7777:04o}"):
        judge(str(store))


@pytest.mark.parametrize(
    ("mode", "trusted"), [(0o755, True), (0o775, False), (0o757, False), (0o777, False), (0o1777, True)]
)
def test_an_ancestor_that_others_may_write_is_refused_unless_sticky(store: Path, mode: int, *, trusted: bool) -> None:
    store.parent.chmod(mode)
    if trusted:
        judge(str(store))
        return
    with pytest.raises(UnsafeError, match="above"):
        judge(str(store))


def test_an_ancestor_is_judged_where_a_link_really_leads(store: Path, tmp_path: Path) -> None:
    store.parent.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to(store)
    with pytest.raises(UnsafeError, match="above"):
        judge(str(link))


def test_a_store_that_would_not_be_trusted_is_not_begun(store: Path) -> None:
    store.rmdir()
    store.parent.chmod(0o777)
    for path in (store, store / "deeper" / "store"):
        with pytest.raises(UnsafeError, match="above"):
            open_store(str(path), create=True)
    assert list(store.parent.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_what_belongs_to_somebody_else_is_foreign_or_unsafe(store: Path) -> None:
    os.chown(store, 65_534, 65_534)
    with pytest.raises(ForeignError, match="65534"):
        judge(str(store))
    os.chown(store, 0, 0)
    os.chown(store.parent, 65_534, 65_534)
    with pytest.raises(UnsafeError, match="65534"):
        judge(str(store))


def test_a_file_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(NotADirectoryError):
        judge(str(path))


@pytest.mark.parametrize(("text", "uid"), [("1000", 1000), ("", None), ("x", None), ("-1", None), ("9" * 11, None)])
def test_the_uid_behind_sudo_is_recorded(
    store: Path, monkeypatch: pytest.MonkeyPatch, text: str, uid: int | None
) -> None:
    monkeypatch.setenv("SUDO_UID", text)
    assert judge(str(store)).sudo_uid == uid
