"""How a store comes to be: its directory, its folders and its description, durable before anything is appended.

Any number of processes may found one store at the same time; whoever comes second finds what is there.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from nereus_cli.codec import as_json
from nereus_cli.disk import stands
from nereus_cli.ports import CorruptLogError, Disk, NewerFormatError

FORMAT: Final = 1
DESCRIPTION: Final = "store.json"
FOLDERS: Final = ("log", "projection", "owner", "keeper", "attempts")
_SCHEMA: Final = "nereus.store/1"
# SQLite opens names of at most 512 bytes, and the projection's come to the store's and some thirty more.
_PATH_BYTES_MAX: Final = 480


class _Description(msgspec.Struct, frozen=True):
    schema: str
    format: int


def is_store(path: str) -> bool:
    """Whether a description stands there, readable or not. Raises OSError where nobody may say."""
    return stands(f"{path}/{DESCRIPTION}")


def make_directory(path: str) -> Sequence[str]:
    """Makes the store's directory with mode 0700 whatever the umask. Returns the directories in which a name was
    made, for ``furnish`` to sync. What was there before keeps its mode: whether to trust it is judged elsewhere."""
    if len(os.fsencode(path)) > _PATH_BYTES_MAX:
        raise OSError(errno.ENAMETOOLONG, f"a store's path has at most {_PATH_BYTES_MAX} bytes", path)
    changed = _missing_below(path)
    for directory in reversed(changed):
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
            os.chmod(directory, 0o700)
    return [os.path.dirname(directory) for directory in changed]


def furnish(path: str, disk: Disk, changed: Iterable[str]) -> None:
    """Makes what a store consists of. FileExistsError when something else lives there already."""
    foreign = [name for name in os.listdir(path) if name not in FOLDERS and not name.startswith(DESCRIPTION)]
    if foreign:
        message = f"this directory is not a store: it holds {min(foreign)!r}"
        raise FileExistsError(errno.EEXIST, message, path)
    directory = disk.open_directory(path)
    try:
        for name in FOLDERS:
            with contextlib.suppress(FileExistsError):
                disk.make_directory(name, below=directory)
        _describe(disk, directory)
    finally:
        disk.close(directory)
    for parent in changed:
        fd = disk.open_directory(parent)
        try:
            disk.sync_directory(fd)
        finally:
            disk.close(fd)


def check_format(path: str) -> None:
    """Raises NewerFormatError for a store of a newer version, CorruptLogError for a description that is none."""
    file = f"{path}/{DESCRIPTION}"
    try:
        with open(file, "rb") as opened:
            description = msgspec.json.decode(opened.read(4_096), type=_Description)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptLogError(f"{file} cannot be read: {error}", file=file, position=0) from None
    if description.format > FORMAT:
        raise NewerFormatError(f"the store has format {description.format}, this version knows up to {FORMAT}")


def _missing_below(path: str) -> list[str]:
    """The directories that have to be made, innermost first."""
    missing = []
    while not stands(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing


def _describe(disk: Disk, directory: int) -> None:
    """Complete and synced under another name first; a description that stands is never replaced."""
    aside = f"{DESCRIPTION}.{os.getpid()}"
    fd = disk.open_file(aside, below=directory, create=True)
    try:
        disk.truncate(fd, 0)
        disk.write_at(fd, as_json(_Description(_SCHEMA, FORMAT)) + b"\n", 0)
        disk.sync_data(fd)
    finally:
        disk.close(fd)
    with contextlib.suppress(FileExistsError):
        disk.link(aside, DESCRIPTION, below=directory)
    disk.unlink(aside, below=directory)
    disk.sync_directory(directory)
