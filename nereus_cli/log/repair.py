"""What is done to a log under both locks: adopting, poisoning, rotating, cutting.

Every function here expects *sync* and *append* to be held by the caller, and leaves the log readable without them
at every moment in between: a segment gets its name when it is complete and durable, and only then the mark moves.
"""

from __future__ import annotations

import contextlib
import errno

import msgspec

from nereus_cli.log import frame
from nereus_cli.log.frame import Place
from nereus_cli.log.handle import Handle
from nereus_cli.log.making import copy_aside, make_segment, sync_names
from nereus_cli.log.mark import Mark
from nereus_cli.log.segment import HEADER_BYTES, Header, Why
from nereus_cli.log.tail import Tail
from nereus_cli.ports import TornTail


class SyncFailedError(OSError):
    """What was to be made durable may be lost, and no later sync can tell."""


class Carried(msgspec.Struct, frozen=True):
    """Consecutive frames, their last position and checksum, and what they prove durable."""

    data: bytes
    last: int
    chain: int
    proven: int
    sealed: bool


def settle(handle: Handle) -> None:
    """Leaves a believable mark, no sync of unknown result, and a tail that can be appended to."""
    mark = handle.mark()
    if mark is None:
        adopt(handle)
    elif handle.open_note(mark) is not None:
        poison(handle, mark)
    else:
        handle.tail.enter(mark)
        if not handle.tail.advance():
            if handle.tail.sealed:
                rotate(handle, mark.durable)
            else:
                cut(handle)


def sync_tail(handle: Handle, durable: int) -> None:
    """Syncs what the tail has read and raises the mark to it; ``durable`` was known before.

    INSTANT: when this returns, everything through the tail's last position is durable, and said to be.
    Raises SyncFailedError when the sync did; any other OSError means that it was not tried, or not reported."""
    mark = handle.tail_mark()
    _sync_noted(handle, durable + 1, mark.durable)
    handle.room.raise_mark(mark)


def adopt(handle: Handle) -> None:
    """Makes the newest segment, as it is, what the mark says. For a new boot, a copy, a lost or outrun mark."""
    tail = handle.tail
    handle.room.reopen_mark()
    enter_newest(handle, tail)
    clean = tail.advance()
    if not clean and not tail.sealed:
        _refuse_corruption(handle, tail.rest(), tail.place, tail.proven, tail.end)
    refuse_loss(handle, tail)
    sync_names(handle, tail.name)
    note = handle.own_note()
    if note is not None:
        carry(handle, mark_below(handle, tail, note.first if note.ordinal else tail.proven + 1))
    elif tail.sealed:
        rotate(handle, tail.proven)
    else:
        if not clean:
            cut(handle)
        sync_tail(handle, tail.proven)


def poison(handle: Handle, mark: Mark) -> None:
    """Ends a segment of which a sync failed, or may have: what can be read behind the mark moves to a new one."""
    handle.tail.enter(mark)
    try:
        carry(handle, mark)
    except FileExistsError:
        # Its maker died before the mark moved.
        adopt(handle)


def carry(handle: Handle, start: Mark) -> None:
    """Begins the next segment with the readable consecutive frames behind ``start``: same bytes, same positions.

    The old segment is not touched; what else stands in it behind ``start`` is reported as torn, and copied aside for
    people to find. That copy may fail, on a disk that refuses just now: the bytes stay in the old segment."""
    tail = handle.tail
    size = handle.room.disk.size(tail.fd)
    try:
        data = handle.room.disk.read_at(tail.fd, max(size - start.offset, 0), start.offset)
    except OSError:
        data = b""
    found = _carried(data, start, tail.seed, tail.proven)
    end = start.offset + len(found.data)
    if not found.sealed and size > end:
        _refuse_corruption(handle, data[len(found.data) :], Place(found.last + 1, found.chain), found.proven, end)
        name = tail.name
        with contextlib.suppress(OSError):
            name = copy_aside(handle, data[len(found.data) :], end)
        handle.torn.append(TornTail(name, found.last + 1, size - end))
    header = _successor(handle, Why.POISONED, start, found.last)
    mark = make_segment(handle, header, found.data, found.chain)
    handle.room.raise_mark(mark)
    handle.close_note(mark)


def rotate(handle: Handle, durable: int) -> None:
    """Ends the tail's segment: everything durable, SEAL, durable, then the next one. Also finishes one begun."""
    tail = handle.tail
    if not tail.advance() and not tail.sealed:
        cut(handle)
    if not tail.sealed:
        _write_seal(handle, durable)
    _sync_noted(handle, durable + 1, tail.last + 1)
    end = handle.tail_mark()
    handle.room.raise_mark(end)
    handle.close_note(end)
    try:
        handle.room.raise_mark(make_segment(handle, _successor(handle, Why.ROTATED, end, end.durable)))
    except FileExistsError:
        adopt(handle)


def cut(handle: Handle) -> None:
    """Ends the segment before its first bad frame, unless something proves that this one was durable.

    INSTANT: a tail is gone when the file is cut; before that its bytes are durable beside the log."""
    tail = handle.tail
    rest = tail.rest()
    _refuse_corruption(handle, rest, tail.place, tail.proven, tail.end)
    name = copy_aside(handle, rest, tail.end)
    handle.room.disk.truncate(tail.fd, tail.end)
    handle.torn.append(TornTail(name, tail.last + 1, len(rest)))


def enter_newest(handle: Handle, tail: Tail) -> None:
    """Puts a tail at the beginning of the newest segment, with all that proves how far it was durable."""
    header = handle.room.newest_header()
    tail.leave()
    tail.enter(_mark_at_base(handle, header))
    tail.proven = max(tail.proven, handle.applied(header.store_id))
    before = handle.room.mark()
    if before is not None and (before.ordinal > tail.ordinal or _is_in(tail, before)):
        # Also a mark of an earlier boot was true when it was written, and one of a segment that is gone still proves
        # what stood in it: segments are durable before any mark speaks of them.
        tail.proven = max(tail.proven, before.durable)


def refuse_loss(handle: Handle, tail: Tail) -> None:
    """Raises CorruptLogError when the log ends, readable, before a position that is proven to have been durable."""
    if tail.proven > tail.last:
        what = f"ends before position {tail.proven}, which was durable{_if_copied(handle, tail)}"
        raise tail.damage(what, tail.last + 1)


def _is_in(tail: Tail, mark: Mark) -> bool:
    return (mark.ordinal, mark.inode) == (tail.ordinal, tail.inode)


def _if_copied(handle: Handle, tail: Tail) -> str:
    """What leads beside a log may only be younger than it: files are copied one after the other."""
    before = handle.room.mark()
    younger = ["projection"] if handle.applied(tail.header().store_id) > tail.last else []
    if before is not None and before.ordinal > tail.ordinal:
        younger.append("log/mark")
    return f"; if this store is a copy, delete the copy's {' and '.join(younger)}" if younger else ""


def _sync_noted(handle: Handle, first: int, last: int) -> None:
    """The sync of a segment, with a note that outlives its holder. It is never tried twice on the same bytes."""
    handle.write_note(first, last)
    try:
        handle.room.disk.sync_data(handle.tail.fd)
    except OSError as error:
        # The note is open already; the flag only spares others from writing behind it.
        with contextlib.suppress(OSError):
            handle.write_note(first, last, poisoned=True)
        raise SyncFailedError(error.errno or errno.EIO, "a sync of the log failed") from error


def _mark_at_base(handle: Handle, header: Header) -> Mark:
    return Mark(
        boot_id=handle.boot_id,
        ordinal=header.ordinal,
        inode=handle.room.inode_of(header.ordinal) or 0,
        durable=header.base - 1,
        offset=HEADER_BYTES,
        chain=header.chain,
    )


def mark_below(handle: Handle, tail: Tail, position: int) -> Mark:
    """The mark that would stand just before a position of the tail's segment, or at the tail if that is lower."""
    base = _mark_at_base(handle, tail.header())
    data = handle.room.disk.read_at(tail.fd, tail.end - HEADER_BYTES, HEADER_BYTES)
    end, last, chain = 0, base.durable, base.chain
    for found in frame.scan(data, 0, base.place, tail.seed):
        if found.position >= position:
            break
        end, last, chain = found.end, found.position, found.checksum
    return msgspec.structs.replace(base, durable=last, offset=HEADER_BYTES + end, chain=chain)


def _carried(data: bytes, start: Mark, seed: int, proven: int) -> Carried:
    end, last, chain = 0, start.durable, start.chain
    for found in frame.scan(data, 0, start.place, seed):
        if found.kind == frame.SEAL:
            return Carried(data[:end], last, chain, proven, sealed=True)
        end, last, chain, proven = found.end, found.position, found.checksum, max(proven, found.synced_through)
    return Carried(data[:end], last, chain, proven, sealed=False)


def _write_seal(handle: Handle, durable: int) -> None:
    tail = handle.tail
    seal = frame.encode(frame.SEAL, b"", tail.place, handle.stamp(durable), tail.seed)
    try:
        handle.write_all(tail.fd, seal, tail.end)
    except OSError:
        with contextlib.suppress(OSError):
            handle.room.disk.truncate(tail.fd, tail.end)
        raise
    tail.sealed = True


def _successor(handle: Handle, why: Why, start: Mark, through: int) -> Header:
    before = handle.tail.header()
    return Header(
        why=why,
        ordinal=start.ordinal + 1,
        base=start.durable + 1,
        chain=start.chain,
        previous_end=start.offset,
        through=through,
        store_id=before.store_id,
        salt=before.salt,
        created_at=handle.stamp(0).persisted_at,
        floor=before.floor,
    )


def _refuse_corruption(handle: Handle, rest: bytes, place: Place, proven: int, offset: int) -> None:
    """Raises CorruptLogError when the bad frame at ``place`` is proven to have been durable."""
    tail = handle.tail
    found = frame.find(rest, 0, tail.seed)
    while found is not None:
        proven = max(proven, found.synced_through if found.position > place.position else 0)
        found = frame.find(rest, found.end, tail.seed)
    if proven >= place.position:
        what = f"position {place.position} cannot be read, although position {proven} was durable"
        what += _if_copied(handle, tail)
        raise tail.damage(what, place.position, offset)
