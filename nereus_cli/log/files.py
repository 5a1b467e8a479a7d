"""FileLog: the command log in a directory of this machine.

    log = FileLog(directory, disk=…, clock=…, limits=…)      an existing log; FileNotFoundError if there is none
    log = FileLog(…, create=True)                            made if missing

Any number of processes, threads and handles may use one directory; threads that share a handle take turns.
A log that may only be read can be read: what cannot be adopted is shown as far as it is proven durable.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from nereus_cli.domain.limits import Limits
from nereus_cli.log import appending, commit, owner, view
from nereus_cli.log.batch import Batch
from nereus_cli.log.guard import Guard
from nereus_cli.log.handle import Handle
from nereus_cli.log.making import make_first_segment, room_of
from nereus_cli.log.mark import Mark
from nereus_cli.log.segment import HEADER_BYTES
from nereus_cli.log.tail import Tail
from nereus_cli.ports import (
    Appended,
    Bounds,
    Clock,
    Disk,
    Durability,
    EnqueueUncertainError,
    LogRecord,
    NotQueuedError,
    OwnerHead,
    OwnerWriter,
    TornTail,
)

if TYPE_CHECKING:
    from nereus_cli.log.verify import Verification

_WAIT_S = 5.0


class FileLog:
    """A ``CommandLog``; the docstrings there are the contract.

    ``append_wait_s`` and ``sync_wait_s`` are how long it waits for each lock; ``watch=False`` makes ``wait`` poll.
    ``applied`` tells how far the rows of the store with this id were folded: a log that ends before it lost its tail.
    It is asked only where the mark cannot be believed."""

    durability = Durability.LOCAL_FSYNC

    def __init__(  # noqa: PLR0913 - each is a decision of the composition root, all but four have a default
        self,
        directory: str | bytes,
        *,
        disk: Disk,
        clock: Clock,
        limits: Limits,
        append_wait_s: float = _WAIT_S,
        sync_wait_s: float = _WAIT_S,
        create: bool = False,
        watch: bool = True,
        applied: Callable[[bytes], int] = lambda _: 0,
    ) -> None:
        path = os.fsdecode(directory)
        self._pid = os.getpid()
        self._turn = threading.RLock()
        room = room_of(disk, path, create=create)
        self._handle = Handle(room, clock, limits, append_wait_s, sync_wait_s, applied)
        try:
            if create and not room.ordinals():
                with Guard(patient=True) as guard:
                    commit.under_both_locks(self._handle, make_first_segment, guard)
            self.store_id = room.newest_header().store_id
        except BaseException:
            self._handle.close()
            raise
        self._waiter = view.Waiter(room, lambda: self._durable().durable, watch=watch)
        self._look = Tail(room, write=False)

    @property
    def torn(self) -> Sequence[TornTail]:
        """The tails that this handle has cut so far: a person should be told of each."""
        return tuple(self._handle.torn)

    def append(self, payloads: Sequence[bytes]) -> Sequence[Appended]:
        batches = [Batch(part) for part in self._parts(payloads)]
        with self._turn:
            self._check_process()
            return appending.append(self._handle, batches)

    def bounds(self) -> Bounds:
        with self._turn:
            mark = self._durable()
            self._look.enter(mark)
            self._look.advance()
            return Bounds(self._handle.reader.first(), mark.durable, max(mark.durable, self._look.last))

    def barrier(self) -> int:
        """Raises NotQueuedError when a lock is not to be had in time, OSError."""
        with self._turn:
            self._check_process()
            handle = self._handle
            try:
                with Guard(patient=True) as guard:
                    mark = view.durable(handle)
                    handle.tail.enter(mark)
                    handle.tail.advance()
                    return commit.until(handle, handle.tail.ordinal, handle.tail.last, guard).durable
            except EnqueueUncertainError as error:
                raise NotQueuedError(str(error), holder=error.holder) from error
            finally:
                handle.room.drop_locks()

    def read(self, after: int, *, through: int | None = None) -> Iterator[LogRecord]:
        mark = self._durable()
        end = mark.durable if through is None else min(through, mark.durable)
        return (found.record() for found in self._handle.reader.frames(after, end, mark.ordinal))

    def record_at(self, position: int) -> LogRecord | None:
        if position < 1 or position < self._handle.reader.first():
            return None
        return next(self.read(position - 1, through=position), None)

    def wait(self, after: int, seconds: float) -> int:
        return self._waiter.wait(after, seconds)

    def claim(self, seen: OwnerHead, payload: bytes) -> OwnerWriter:
        """Raises FencedError when the log holds an owner record above the head that was seen."""
        return owner.claim(self._append_whole, seen, payload)

    def verify(self) -> Verification:
        """Reads everything and says what is wrong with it; raises only what keeps it from reading."""
        from nereus_cli.log.verify import verify

        return verify(self._handle)

    def close(self) -> None:
        with self._turn:
            self._waiter.close()
            self._look.leave()
            self._handle.close()

    def _durable(self) -> Mark:
        mark = self._handle.mark()
        if mark is None:
            with self._turn:
                mark = view.durable(self._handle)
        return mark

    def _append_whole(self, batch: Batch) -> list[Appended]:
        if len(list(self._parts(batch.payloads))) > 1:
            raise ValueError("an owner's batch must fit one segment")
        with self._turn:
            self._check_process()
            return appending.append(self._handle, [batch])

    def _parts(self, payloads: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        """Pieces that fit one segment; ValueError for a payload that may not be in any."""
        limits = self._handle.limits
        room = limits.segment_bytes_max - HEADER_BYTES
        start = size = 0
        for number, payload in enumerate(payloads):
            if len(payload) > limits.record_bytes_max:
                raise ValueError(f"a record of {len(payload)} bytes; at most {limits.record_bytes_max} fit")
            if number > start and size + len(payload) > room:
                yield payloads[start:number]
                start, size = number, 0
            size += len(payload)
        if start < len(payloads):
            yield payloads[start:]

    def _check_process(self) -> None:
        """Locks belong to open files, which a fork shares: two processes would hold one lock at once."""
        if os.getpid() != self._pid:
            raise RuntimeError("a log must be opened anew behind a fork")
