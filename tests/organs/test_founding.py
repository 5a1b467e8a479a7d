"""How a store comes to be, by one process or by many at once; and what is never touched."""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from nereus_cli import founding
from nereus_cli.ports import CorruptLogError, NewerFormatError
from nereus_cli.store import NoStoreError, open_store
from nereus_cli.trust import UnsafeError
from tests.log.watching import Watched


def modes(path: Path) -> set[str]:
    return {
        f"{stat.S_IMODE(entry.stat().st_mode):o} {'d' if entry.is_dir() else 'f'}"
        for entry in (path, *path.rglob("*"))
        if not entry.is_socket()
    }


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_everything_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        open_store(str(tmp_path / "a" / "b" / "store"), create=True).close()
    finally:
        os.umask(old)
    assert modes(tmp_path / "a") == {"700 d", "600 f"}


def test_reading_never_creates(tmp_path: Path) -> None:
    with pytest.raises(NoStoreError):
        open_store(str(tmp_path / "none"))
    (tmp_path / "empty").mkdir(mode=0o700)
    with pytest.raises(NoStoreError):
        open_store(str(tmp_path / "empty"))
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_path_too_long_for_the_projection_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    room = 480 - len(os.fsencode(tmp_path)) - len("//store")
    longest = tmp_path / ("a" * (room // 2)) / ("b" * (room - room // 2 - 1)) / "store"
    assert len(os.fsencode(longest)) == 480
    with open_store(str(longest), create=True) as store, closing(store.open_projection()) as projection:
        assert projection.head().applied == 0
    with pytest.raises(OSError, match="at most 480 bytes") as caught:
        open_store(str(longest.with_name("stores")), create=True)
    assert caught.value.errno == errno.ENAMETOOLONG
    assert [entry.name for entry in longest.parent.iterdir()] == ["store"]


def test_a_directory_in_other_use_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letterbox"
    path.mkdir(mode=0o700)
    (path / "letters").write_text("dear", encoding="ascii")
    with pytest.raises(FileExistsError, match="letters"):
        open_store(str(path), create=True)
    assert [entry.name for entry in path.iterdir()] == ["letters"]


def test_an_existing_open_directory_is_not_closed_behind_somebodys_back(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    path.mkdir()
    path.chmod(0o755)
    with pytest.raises(UnsafeError):
        open_store(str(path), create=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_a_store_half_founded_by_a_dead_process_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "store"
    (path / "log").mkdir(parents=True, mode=0o700)
    path.chmod(0o700)
    (path / "log").chmod(0o700)
    (path / "store.json.12345").write_text("{", encoding="ascii")
    open_store(str(path), create=True).close()
    assert founding.is_store(str(path))


def found(path: str, answers: multiprocessing.queues.Queue[str]) -> None:
    with open_store(path, create=True) as store:
        answers.put(store.log.store_id.hex())


def test_many_found_one_store(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    path = str(tmp_path / "store")
    founders = [context.Process(target=found, args=(path, answers)) for _ in range(8)]
    for one in founders:
        one.start()
    identities = {answers.get(timeout=30) for _ in founders}
    for one in founders:
        one.join()
    assert len(identities) == 1
    assert {one.exitcode for one in founders} == {0}


def checksums(path: Path) -> dict[str, str]:
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in path.rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize("create", [True, False])
def test_a_newer_store_is_refused_and_not_touched(tmp_path: Path, *, create: bool) -> None:
    path = tmp_path / "store"
    open_store(str(path), create=True).close()
    (path / "store.json").write_text('{"schema":"nereus.store/9","format":9,"more":[]}', encoding="ascii")
    before = checksums(path)
    with pytest.raises(NewerFormatError, match=r"format 9.*up to 1"):
        open_store(str(path), create=create)
    assert checksums(path) == before


@pytest.mark.parametrize("text", ["", "{", '{"schema":"nereus.store/1"}', "\0" * 40, '{"x":' + "[" * 4_000])
def test_a_damaged_description_is_corruption_not_a_newer_format(tmp_path: Path, text: str) -> None:
    path = tmp_path / "store"
    open_store(str(path), create=True).close()
    (path / "store.json").write_text(text, encoding="ascii")
    with pytest.raises(CorruptLogError, match=r"store\.json"):
        open_store(str(path))


def test_what_is_founded_is_durable_before_anything_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "above" / "store"
    changed = founding.make_directory(str(path))
    disk = Watched()
    founding.furnish(str(path), disk, changed)
    aside = f"store.json.{os.getpid()}"
    assert disk.calls() == [
        *(f"make {name}" for name in founding.FOLDERS),
        f"truncate {aside}",
        f"write {aside}",
        f"sync {aside}",
        "link store.json",
        f"unlink {aside}",
        "sync store",
        "sync above",
        f"sync {tmp_path.name}",
    ]
