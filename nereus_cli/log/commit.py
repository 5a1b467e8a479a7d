"""Group commit: positions are given out under *append*, durability is made under *sync*, by whoever gets there first.

write    under append: read to the end of the log, write the frames behind it, give the lock back
until    without a lock: wait until the mark covers a position, doing the sync oneself when nobody else does
stands   after a change of segment: is the frame at that position still mine?
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import msgspec

from nereus_cli.log import frame, repair
from nereus_cli.log.batch import Batch
from nereus_cli.log.guard import Guard
from nereus_cli.log.handle import Handle
from nereus_cli.log.locks import said_of
from nereus_cli.log.mark import Mark
from nereus_cli.log.wake import Bell
from nereus_cli.ports import EnqueueUncertainError, LogError, NotQueuedError

_LOOK_AGAIN_S = 0.02
_ROUNDS_MAX = 16


class Written(msgspec.Struct, frozen=True):
    """Frames that are in the log, durable or not: ``frames[0]`` at ``first`` of the segment ``ordinal``."""

    ordinal: int
    first: int
    frames: list[bytes]
    persisted_at: int

    @property
    def last(self) -> int:
        """Where the last of them stands."""
        return self.first + len(self.frames) - 1


def write(handle: Handle, batch: Batch, guard: Guard) -> Written:
    """Gives the batch its positions. Nothing is durable yet.

    Raises NotQueuedError, FencedError; EnqueueUncertainError when the system does not say what became of it."""
    handle.room.open_for_writing()
    for _ in range(_ROUNDS_MAX):
        handle.room.append_lock.take(handle.append_wait_s, guard)
        try:
            mark = _ready(handle)
            unseen = None if mark is None else batch.unseen(handle)
            if mark is not None and unseen is None:
                return _put(handle, batch, mark)
        finally:
            handle.room.append_lock.drop()
        if unseen is None:
            mend(handle, guard)
        else:
            batch.look(handle, unseen)
    raise NotQueuedError("the log did not come to rest")


def mend(handle: Handle, guard: Guard) -> None:
    """Leaves a log that can be appended to. Raises as ``under_both_locks``, and CorruptLogError, NewerFormatError."""
    under_both_locks(handle, repair.settle, guard)


def under_both_locks(handle: Handle, action: Callable[[Handle], None], guard: Guard) -> None:
    """Does something that needs *sync* and *append*. Raises NotQueuedError when one is not to be had, OSError."""
    room = handle.room
    room.sync_lock.take(handle.sync_wait_s, guard)
    try:
        room.append_lock.take(handle.append_wait_s)
        try:
            action(handle)
        finally:
            room.append_lock.drop()
    finally:
        room.sync_lock.drop()


def until(handle: Handle, ordinal: int, position: int, guard: Guard) -> Mark:
    """Waits until ``position`` of the segment ``ordinal`` is durable, or that segment is no longer the newest.

    Raises EnqueueUncertainError when the time is up, InterruptedWaitError, and whatever a round raises."""
    room = handle.room
    end = time.monotonic() + handle.sync_wait_s
    with Bell(room.marks, guard) as bell:
        while True:
            mark = room.mark()
            if mark is not None and mark.boot_id == handle.boot_id and mark.settles(ordinal, position):
                return mark
            if room.sync_lock.try_take():
                try:
                    round_of_sync(handle)
                finally:
                    room.sync_lock.drop()
            elif bell.armed:
                bell.wait(_LOOK_AGAIN_S)
            else:
                bell.arm()
            if time.monotonic() > end:
                holder = room.sync_lock.holder()
                raise EnqueueUncertainError(
                    f"not known durable in time: the sync lock is {said_of(holder)}", holder=holder
                )


def round_of_sync(handle: Handle) -> None:
    """Holding *sync*: makes durable what anybody has written, or finds out why that cannot be said."""
    mark = handle.mark()
    if mark is None or handle.open_note(mark) is not None:
        _repaired(handle)
        return
    tail = handle.tail
    tail.enter(mark)
    tail.advance()
    if tail.last > mark.durable:
        try:
            repair.sync_tail(handle, mark.durable)
        except repair.SyncFailedError:
            # Never synced again into a success: the frames move to another file.
            _repaired(handle)
            return
    if tail.end >= handle.limits.segment_bytes_max or tail.sealed:
        # What was waited for is durable; the next holder tries again.
        with contextlib.suppress(OSError, LogError):
            _rotated(handle)


def stands(handle: Handle, written: Written, mark: Mark) -> int:
    """How many of the frames, from the first on, stand at their positions in the log as the mark describes it."""
    if mark.ordinal == written.ordinal:
        return len(written.frames)
    count = 0
    through = min(written.last, mark.durable)
    for found in handle.reader.frames(written.first - 1, through, mark.ordinal):
        mine = written.frames[count]
        if found.checksum != frame.checksum_of(mine) or not mine.endswith(found.body):
            break
        count += 1
    return count


def _ready(handle: Handle) -> Mark | None:
    """Holding *append*: the mark, if the log is one that can be appended to."""
    mark = handle.mark()
    if mark is None:
        return None
    note = handle.open_note(mark)
    if note is not None and note.poisoned:
        return None
    handle.tail.enter(mark)
    return mark if handle.tail.advance() else None


def _put(handle: Handle, batch: Batch, mark: Mark) -> Written:
    """Holding *append*. INSTANT: the batch is in the log with the last byte of its first frame."""
    tail = handle.tail
    stamp = handle.stamp(mark.durable)
    frames = batch.frames(tail.place, stamp, tail.seed)
    data = b"".join(frames)
    # Of several frames none may be seen before all are there: the first four bytes of all are written last.
    late = frame.CHECKSUM_BYTES if len(frames) > 1 else 0
    touched, handle.touched = handle.touched, True
    try:
        handle.write_all(tail.fd, data[late:] if late else data, tail.end + late)
        if late:
            handle.write_all(tail.fd, data[:late], tail.end)
    except OSError as error:
        failure = _taken_back(handle, data, error)
        handle.touched = touched or isinstance(failure, EnqueueUncertainError)
        raise failure from error
    written = Written(tail.ordinal, tail.last + 1, frames, stamp.persisted_at)
    tail.advance()
    return written


def _taken_back(handle: Handle, data: bytes, error: OSError) -> LogError:
    """What to say of a write that failed. Frames that somebody may have seen stay; anything less is cut off."""
    tail = handle.tail
    disk = handle.room.disk
    message = f"the log cannot be written: {error.strerror or error}"
    try:
        seen = disk.size(tail.fd) >= tail.end + len(data)
        seen = seen and disk.read_at(tail.fd, frame.CHECKSUM_BYTES, tail.end) == data[: frame.CHECKSUM_BYTES]
    except OSError:
        seen = True
    if seen:
        return EnqueueUncertainError(message)
    # Half a frame can never become a valid one, so "not queued" is true even if it cannot be cut off.
    with contextlib.suppress(OSError):
        disk.truncate(tail.fd, tail.end)
    return NotQueuedError(message, errno=error.errno or 0)


def _repaired(handle: Handle) -> None:
    handle.room.append_lock.take(handle.append_wait_s)
    try:
        repair.settle(handle)
    finally:
        handle.room.append_lock.drop()


def _rotated(handle: Handle) -> None:
    handle.room.append_lock.take(handle.append_wait_s)
    try:
        repair.rotate(handle, handle.tail.last)
    finally:
        handle.room.append_lock.drop()
