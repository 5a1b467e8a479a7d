"""One append from its first lock to its answer, and what each way it can go wrong lets the caller know."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from nereus_cli.log import commit
from nereus_cli.log.batch import Batch
from nereus_cli.log.commit import Written
from nereus_cli.log.guard import Guard, InterruptedWaitError
from nereus_cli.log.handle import Handle
from nereus_cli.ports import Appended, EnqueueUncertainError, NotQueuedError


def append(handle: Handle, batches: Sequence[Batch]) -> list[Appended]:
    """Writes the batches, then waits until all are durable: one sync where they fit one segment.

    INSTANT: a record is QUEUED when this returns. Raises NotQueuedError, FencedError, CorruptLogError or
    NewerFormatError when nothing of them is in the log, else EnqueueUncertainError."""
    handle.touched = False
    try:
        with Guard() as guard:
            written = [(batch, commit.write(handle, batch, guard)) for batch in batches]
            placed = [one for batch, frames in written for one in _settled(handle, batch, frames, guard)]
            guard.check()
    except BaseException as error:
        handle.room.drop_locks()
        if handle.touched:
            raise _uncertain(error) from error
        if isinstance(error, OSError):
            raise NotQueuedError(f"the log cannot be written: {error}", errno=error.errno or 0) from error
        raise
    return placed


def _settled(handle: Handle, batch: Batch, written: Written, guard: Guard) -> list[Appended]:
    """Where the batch stands, durable. What could not be carried out of a poisoned segment is appended again, once."""
    count = _standing(handle, written, guard)
    placed = _appended(written, count)
    if count == len(written.frames):
        return placed
    if count and batch.owner is not None:
        raise EnqueueUncertainError("part of an owner's batch was lost to a failing sync")
    again = commit.write(handle, batch.behind(count), guard)
    count = _standing(handle, again, guard)
    if count < len(again.frames):
        raise EnqueueUncertainError("lost twice to failing syncs")
    return placed + _appended(again, count)


def _standing(handle: Handle, written: Written, guard: Guard) -> int:
    return commit.stands(handle, written, commit.until(handle, written.ordinal, written.last, guard))


def _appended(written: Written, count: int) -> list[Appended]:
    return [Appended(written.first + number, written.persisted_at) for number in range(count)]


def _uncertain(error: BaseException) -> EnqueueUncertainError:
    """What came after the first written byte, whatever it is, leaves the answer open."""
    if isinstance(error, EnqueueUncertainError):
        return error
    if isinstance(error, InterruptedWaitError):
        return EnqueueUncertainError(f"interrupted by signal {error.number}", signal=error.number)
    if isinstance(error, KeyboardInterrupt):
        return EnqueueUncertainError("interrupted", signal=signal.SIGINT)
    holder = error.holder if isinstance(error, NotQueuedError) else None
    return EnqueueUncertainError(f"not known durable: {str(error) or type(error).__name__}", holder=holder)
