from __future__ import annotations

import errno
from pathlib import Path

import pytest

from nereus_cli.disk import SystemDisk
from nereus_cli.testing import CrashedError, Everything, Fault, FaultDisk, Medium, Nothing, Some


def test_a_cut_keeps_what_was_synced_and_loses_the_rest(tmp_path: Path) -> None:
    root = tmp_path / "machine"
    (root / "old").mkdir(parents=True)
    (root / "old" / "file").write_bytes(b"durable")
    medium = Medium(str(root))
    disk = FaultDisk(SystemDisk(), medium=medium)
    top = disk.open_directory(str(root))
    old = disk.open_directory("old", below=top)
    file = disk.open_file("file", below=old)
    disk.write_at(file, b"DUR", 0)
    disk.sync_data(file)
    disk.write_at(file, b"lost", 10)
    disk.make_directory("new", below=top)
    made = disk.open_file("made", below=top, create=True)
    disk.write_at(made, b"x", 0)
    disk.sync_data(made)
    medium.after_cut(str(tmp_path / "nothing"), Nothing())
    medium.after_cut(str(tmp_path / "everything"), Everything())
    assert (tmp_path / "nothing" / "old" / "file").read_bytes() == b"DURable"
    assert sorted(path.name for path in (tmp_path / "nothing").iterdir()) == ["old"]
    assert (tmp_path / "everything" / "old" / "file").read_bytes() == b"DURable\0\0\0lost"
    assert sorted(path.name for path in (tmp_path / "everything").iterdir()) == ["made", "new", "old"]
    disk.sync_directory(top)
    disk.truncate(file, 2)
    disk.rename("made", "renamed", below=top)
    disk.unlink("file", below=old)
    medium.after_cut(str(tmp_path / "later"), Nothing())
    assert (tmp_path / "later" / "made").read_bytes() == b"x"
    medium.after_cut(str(tmp_path / "latest"), Everything())
    assert sorted(path.name for path in (tmp_path / "latest").iterdir()) == ["new", "old", "renamed"]
    assert not list((tmp_path / "latest" / "old").iterdir())
    with pytest.raises(IsADirectoryError):
        medium.wrote(top, b"x", 0)
    with pytest.raises(NotADirectoryError):
        medium.named(made, "x", None)


def test_some_cuts_tear_and_some_zero_and_a_seed_says_which(tmp_path: Path) -> None:
    root = tmp_path / "machine"
    root.mkdir()
    medium = Medium(str(root))
    disk = FaultDisk(SystemDisk(), medium=medium)
    file = disk.open_file("file", below=disk.open_directory(str(root)), create=True)
    disk.sync_directory(disk.open_directory(str(root)))
    data = b"x" * 1_500
    disk.write_at(file, data, 0)
    seen = set()
    for seed in range(40):
        for again in ("a", "b"):
            medium.after_cut(str(tmp_path / f"{again}{seed}"), Some(seed))
        found = (tmp_path / f"a{seed}" / "file").read_bytes()
        assert found == (tmp_path / f"b{seed}" / "file").read_bytes()
        seen.add("gone" if not found else "whole" if found == data else "zeroed" if b"\0" in found else "torn")
    assert seen == {"gone", "whole", "zeroed", "torn"}


def test_a_failed_sync_loses_its_writes_for_ever(tmp_path: Path) -> None:
    medium = Medium(str(tmp_path))
    fault = Fault(at=2, only="sync_data", error=errno.EIO)
    disk = FaultDisk(SystemDisk(), medium=medium, faults=(fault,), evict=True)
    top = disk.open_directory(str(tmp_path))
    file = disk.open_file("file", below=top, create=True)
    disk.sync_directory(top)
    disk.write_at(file, b"kept", 0)
    disk.sync_data(file)
    disk.write_at(file, b"gone", 4)
    with pytest.raises(OSError, match="error"):
        disk.sync_data(file)
    disk.sync_data(file)
    assert disk.read_at(file, 10, 0) == b"kept"
    medium.after_cut(str(tmp_path.with_name("cut")), Everything())
    assert (tmp_path.with_name("cut") / "file").read_bytes() == b"kept"


def test_behind_a_crash_nothing_happens(tmp_path: Path) -> None:
    disk = FaultDisk(SystemDisk(), faults=(Fault(at=3, after=True),))
    top = disk.open_directory(str(tmp_path))
    file = disk.open_file("file", below=top, create=True)
    with pytest.raises(CrashedError):
        disk.write_at(file, b"there", 0)
    with pytest.raises(CrashedError):
        disk.write_at(file, b"not there", 0)
    disk.forget()
    disk.close(file)
    disk.unlock(file)
    assert (tmp_path / "file").read_bytes() == b"there"
    assert (disk.calls, disk.hits, disk.crashed) == (["open_directory", "open_file", "write_at"], 1, True)


def test_a_fault_may_last(tmp_path: Path) -> None:
    disk = FaultDisk(
        SystemDisk(), faults=(Fault(at=2, only="write_at", error=errno.ENOSPC, for_ever=True, short=True),)
    )
    file = disk.open_file("file", below=disk.open_directory(str(tmp_path)), create=True)
    disk.write_at(file, b"1234", 0)
    for _ in range(2):
        with pytest.raises(OSError, match="space"):
            disk.write_at(file, b"5678", 4)
    assert (tmp_path / "file").read_bytes() == b"123456"
