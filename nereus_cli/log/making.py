"""Making the files of a log: a segment, the first one included, and the copy of a tail that is to be cut.

Everything is complete and synced under another name before it gets its own, and its directory is synced behind it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from nereus_cli.log import segment
from nereus_cli.log.handle import Handle
from nereus_cli.log.mark import Mark
from nereus_cli.log.room import Room, make_directory
from nereus_cli.log.segment import HEADER_BYTES, Header, Why
from nereus_cli.ports import CorruptLogError, Disk

_UNFINISHED = "new-"
_TORN = "torn-"
_ID_BYTES = 16


def make_segment(handle: Handle, header: Header, carried: bytes = b"", chain: int | None = None) -> Mark:
    """Makes a segment that holds the frames ``carried``, the last with checksum ``chain``; returns its mark.

    FileExistsError when its name is taken: then the segment that has it counts. INSTANT: a segment exists when
    this returns; from the link on it may be found, complete."""
    room = handle.room
    disk = room.disk
    _sweep(room)
    name = f"{_UNFINISHED}{header.ordinal}-{os.getpid()}"
    fd = disk.open_file(name, below=room.directory, create=True, exclusive=True)
    try:
        handle.write_all(fd, segment.encode(header) + carried, 0)
        disk.sync_data(fd)
        disk.link(name, segment.name_of(header.ordinal), below=room.directory)
        inode = disk.inode(fd)
    finally:
        disk.close(fd)
        disk.unlink(name, below=room.directory)
    disk.sync_directory(room.directory)
    return Mark(
        boot_id=handle.boot_id,
        ordinal=header.ordinal,
        inode=inode,
        durable=header.through,
        offset=HEADER_BYTES + len(carried),
        chain=header.chain if chain is None else chain,
    )


def make_first_segment(handle: Handle) -> None:
    """A store begins: its id and its secret salt are chosen here, once. Nothing happens when a segment exists.

    Raises CorruptLogError when there was one: the first mark comes after the first segment."""
    room = handle.room
    if room.ordinals():
        return
    mark = room.mark()
    if mark is not None:
        raise CorruptLogError(f"the log has lost its segments, {mark.durable} records", file=room.path, position=1)
    header = Header(
        why=Why.FIRST,
        ordinal=1,
        base=1,
        chain=0,
        previous_end=0,
        through=0,
        store_id=os.urandom(_ID_BYTES),
        salt=os.urandom(_ID_BYTES),
        created_at=handle.stamp(0).persisted_at,
    )
    handle.room.raise_mark(make_segment(handle, header))


def room_of(disk: Disk, path: str, *, create: bool) -> Room:
    """The room of a log; with ``create`` a missing one is made. FileNotFoundError when there is no directory."""
    try:
        room = Room(disk, path)
    except FileNotFoundError:
        if not create:
            raise
        return _make_room(disk, path)
    if create and not room.ordinals():
        room.close()
        return _make_room(disk, path)
    return room


def _make_room(disk: Disk, path: str) -> Room:
    """Makes what is missing of a log's directories, durably, up to the entry in the directory above."""
    above, name = os.path.split(os.path.abspath(path))
    parent = disk.open_directory(above)
    try:
        make_directory(disk, name, parent)
        room = Room(disk, path)
        for below in ("mark", "locks"):
            make_directory(disk, below, room.directory)
        disk.sync_directory(room.directory)
        disk.sync_directory(parent)
    finally:
        disk.close(parent)
    return room


def copy_aside(handle: Handle, rest: bytes, offset: int) -> str:
    """The bytes behind ``offset`` of the tail's segment in a file of their own, durable; returns its name."""
    room = handle.room
    disk = room.disk
    stem = f"{_TORN}{handle.tail.ordinal}-{offset}"
    taken = {name for name in disk.names(room.directory) if name.startswith(stem)}
    name = next(name for name in (f"{stem}-{number}" for number in range(len(taken) + 1)) if name not in taken)
    fd = disk.open_file(name, below=room.directory, create=True, exclusive=True)
    try:
        handle.write_all(fd, rest, 0)
        disk.sync_data(fd)
    except OSError:
        with contextlib.suppress(OSError):
            disk.unlink(name, below=room.directory)
        raise
    finally:
        disk.close(fd)
    disk.sync_directory(room.directory)
    return name


def sync_names(handle: Handle, name: str) -> None:
    """Syncs the directory after touching it, because the sync that failed for its last writer may have left it
    clean in memory only: an entry is written again before it is believed."""
    room = handle.room
    _sweep(room)
    again = f"{_UNFINISHED}names"
    room.disk.link(name, again, below=room.directory)
    room.disk.unlink(again, below=room.directory)
    room.disk.sync_directory(room.directory)


def _sweep(room: Room) -> None:
    """Whoever holds both locks may take away what makers left behind: none of them is alive."""
    for leftover in unfinished(room.disk.names(room.directory)):
        room.disk.unlink(leftover, below=room.directory)


def unfinished(names: Iterable[str]) -> list[str]:
    """Those of the names that a maker left behind when it died."""
    return sorted(name for name in names if name.startswith(_UNFINISHED))


def torn_names(names: Iterable[str]) -> list[str]:
    """Those of the names that hold tails cut off."""
    return sorted(name for name in names if name.startswith(_TORN))
