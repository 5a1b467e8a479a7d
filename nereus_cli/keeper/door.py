"""The door of an attempt: its output file, made exclusively. Who makes the name first has decided."""

import enum
import os
import stat
from collections.abc import Callable

ATTEMPTS = "attempts"
CLOSED_BY_KEEPER = "closed-by-keeper"


class Door(enum.Enum):
    """What trying a door showed."""

    OPENED = enum.auto()
    CLOSED = enum.auto()
    PASSED = enum.auto()


def path_of(directory: str, attempt_id: str) -> str:
    """The door, below the store; standard output is kept in it."""
    return f"{ATTEMPTS}/{directory}/{attempt_id}"


def try_door(store: int, directory: str, attempt_id: str) -> Door:
    """OPENED: made now and by us. CLOSED: an owner made a symlink. PASSED: this attempt was started before.

    Raises OSError only if nothing stands there."""
    path = path_of(directory, attempt_id)
    try:
        _in_directory(store, directory, lambda: _make(store, path))
    except OSError as failed:
        found = _look(store, path)
        if found is None:
            raise failed from None
        return found
    return Door.OPENED


def close_door(store: int, directory: str, attempt_id: str) -> bool:
    """Make the symlink an owner would make. Whether the attempt is one that never starts; a name that cannot be
    made is no reason to start it."""
    path = path_of(directory, attempt_id)
    try:
        _in_directory(store, directory, lambda: os.symlink(CLOSED_BY_KEEPER, path, dir_fd=store))
    except OSError:
        return _look(store, path) is not Door.PASSED
    return True


def _look(store: int, path: str) -> Door | None:
    try:
        mode = os.lstat(path, dir_fd=store).st_mode
    except OSError:
        return None
    return Door.CLOSED if stat.S_ISLNK(mode) else Door.PASSED


def _make(store: int, path: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    os.close(os.open(path, flags, 0o600, dir_fd=store))


def _in_directory(store: int, directory: str, make: Callable[[], None]) -> None:
    """Make something below ``attempts/DIRECTORY``, which whoever needs it first makes."""
    try:
        make()
    except FileNotFoundError:
        for place in (ATTEMPTS, f"{ATTEMPTS}/{directory}"):
            try:
                os.mkdir(place, 0o700, dir_fd=store)
            except FileExistsError:
                continue
        make()
