"""Where a keeper lives in a store, seen from the daemon: directories by descriptor, locks, doors."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from nereus_cli.destinations.keeper_requests import directory_name

Store = str | bytes | int

PROVEN: Final = "closed"
UNPROVEN: Final = "closed-unproven"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def open_store(store: Store) -> int:
    """A descriptor of one's own for a store given by path or by descriptor. Raises OSError."""
    return os.dup(store) if isinstance(store, int) else os.open(store, _DIRECTORY)


def open_keeper(store: int) -> int:
    """``keeper/`` of an open store, made if need be. Raises OSError."""
    with suppress(FileExistsError):
        os.mkdir("keeper", 0o700, dir_fd=store)
    return os.open("keeper", _DIRECTORY, dir_fd=store)


def near(directory: int, name: str, use: Callable[[str], None]) -> None:
    """Call connect with an address for a name in an open directory: a socket address holds about a hundred bytes.

    Where descriptors have no path, the directory is entered for the moment of the call."""
    if sys.platform == "linux" and os.path.isdir(f"/proc/self/fd/{directory}"):
        use(f"/proc/self/fd/{directory}/{name}")
        return
    here = os.open(".", _DIRECTORY)
    try:
        os.fchdir(directory)
        use(name)
    finally:
        os.fchdir(here)
        os.close(here)


def keeper_alive(store: Store) -> bool:
    """Whether any keeper of this store lives, also one that drains: by held locks, never by a pid.

    A child that has yet to exec holds them too and may still start, so "held" is the truth there."""
    opened = open_store(store)
    try:
        directory = os.open("keeper", _DIRECTORY, dir_fd=opened)
    except FileNotFoundError:
        return False
    finally:
        os.close(opened)
    try:
        return any(held(directory, name) for name in ["lock", *evidence_names(directory)])
    finally:
        os.close(directory)


def evidence_names(directory: int) -> list[str]:
    """The evidence files in an open ``keeper/``, oldest first."""
    return sorted(name for name in os.listdir(directory) if name.endswith(".ev"))


def live_evidence(directory: int) -> dict[str, bool]:
    """For each evidence file whether more may be written to it.

    An empty one counts as live: its keeper locks it before the first line, and may be about to."""
    found = {}
    for name in evidence_names(directory):
        with suppress(FileNotFoundError):
            empty = os.stat(name, dir_fd=directory, follow_symlinks=False).st_size == 0
            found[name] = empty or held(directory, name)
    return found


def held(directory: int, name: str) -> bool:
    """Whether somebody holds the lock of a file; a file that is not there is held by nobody."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def prune(store: Store, names: Iterable[str]) -> list[str]:
    """Remove these evidence files, except those whose keeper lives. Returns what was removed.

    The caller answers for it that no open attempt was admitted while one of them was the newest."""
    opened = open_store(store)
    directory = open_keeper(opened)
    removed = []
    try:
        live = live_evidence(directory)
        for name in names:
            if live.get(name) is False:
                os.unlink(name, dir_fd=directory)
                removed.append(name)
    finally:
        os.close(directory)
        os.close(opened)
    return removed


def output_names(directory: int, attempt_id: str) -> tuple[str, str]:
    """Where the output of an attempt is kept below the store: stdout, which is also its door, and stderr.

    The latter is there only if something was written to it; the former may be a symlink: closed, never started."""
    door = f"attempts/{directory_name(directory)}/{attempt_id}"
    return door, f"{door}.err"


def shut_door(store: int, directory: int, attempt_id: str, *, proven: bool) -> str | None:
    """Close the door of an attempt unless it was opened or closed before.

    Returns what the symlink there says, also one made earlier, or None if a keeper opened the door. ``proven``
    tells whether a missing door means that nothing started: a later owner must not read more into it."""
    door = output_names(directory, attempt_id)[0]
    target = PROVEN if proven else UNPROVEN
    try:
        _link(store, directory, target, door)
    except FileExistsError:
        mode = os.lstat(door, dir_fd=store).st_mode
        return os.readlink(door, dir_fd=store) if stat.S_ISLNK(mode) else None
    return target


def _link(store: int, directory: int, target: str, door: str) -> None:
    try:
        os.symlink(target, door, dir_fd=store)
    except FileNotFoundError:
        for place in ("attempts", f"attempts/{directory_name(directory)}"):
            with suppress(FileExistsError):
                os.mkdir(place, 0o700, dir_fd=store)
        os.symlink(target, door, dir_fd=store)
