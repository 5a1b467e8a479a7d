"""Who may read the files, and what is refused in their place."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nereus_cli.ports import NotQueuedError
from tests.log.world import Ledger, fast_directory, open_log


@pytest.fixture
def top() -> Iterator[Path]:
    with fast_directory() as path:
        yield path


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277])
def test_files_are_private_whatever_the_umask(top: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        ledger = Ledger()
        log = open_log(top / "log", create=True)
        for _ in range(30):
            ledger.append(log, ledger.payloads(1, 700))
        log.close()
        newest = max((top / "log").glob("*.seg"))
        newest.write_bytes(newest.read_bytes() + b"half")
        log = open_log(top / "log", boot=2)
        ledger.check(log)
        assert log.torn
    finally:
        os.umask(before)
    for file in [top / "log", *(top / "log").rglob("*")]:
        assert stat.S_IMODE(file.lstat().st_mode) == (0o700 if file.is_dir() else 0o600), file


def a_link_elsewhere(file: Path) -> None:
    file.rename(file.with_name("moved"))
    file.symlink_to(file.with_name("moved"))


def a_dangling_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/nowhere/at/all")


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def a_socket(file: Path) -> None:
    file.unlink()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(file))


def a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def another_name(file: Path) -> None:
    os.link(file, file.with_name("again"))
    os.link(file, file.with_name("and-again"))
    os.link(file, file.with_name("and-again-2"))


@pytest.mark.parametrize("name", ["0000000001.seg", "mark/durable", "syncing", "locks/append", "locks/sync"])
@pytest.mark.parametrize(
    "plant",
    [a_link_elsewhere, a_dangling_link, a_pipe, a_socket, a_directory, another_name],
    ids=lambda plant: plant.__name__,
)
def test_what_is_no_plain_file_of_ours_is_refused(top: Path, name: str, plant: Callable[[Path], None]) -> None:
    log = open_log(top / "log", create=True)
    log.append([b"x"])
    log.close()
    plant(top / "log" / name)
    before = (top / "log" / "0000000001.seg").lstat().st_size if name != "0000000001.seg" else 0
    with pytest.raises((OSError, NotQueuedError)):
        open_log(top / "log").append([b"y"])
    if before:
        assert (top / "log" / "0000000001.seg").lstat().st_size == before, "nothing was written"
    assert not Path("/nowhere").exists()


def test_a_log_directory_that_is_a_link_is_refused(top: Path) -> None:
    open_log(top / "log", create=True).close()
    (top / "link").symlink_to("log")
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        open_log(top / "link")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of somebody else")
def test_files_of_another_user_are_refused(top: Path) -> None:
    log = open_log(top / "log", create=True)
    log.append([b"x"])
    log.close()
    os.chown(top / "log" / "0000000001.seg", 12_345, 12_345)
    with pytest.raises(PermissionError, match="this user"):
        open_log(top / "log")
