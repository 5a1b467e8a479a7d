"""A command log in memory: the same contract as the one on files, without any durability."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence

from nereus_cli.domain.limits import PRODUCTION, Limits
from nereus_cli.ports import (
    Appended,
    Bounds,
    Clock,
    Durability,
    FencedError,
    Kind,
    Link,
    LogError,
    LogRecord,
    OwnerHead,
    OwnerWriter,
)


class MemoryLog:
    """A ``CommandLog``. ``another()`` is a second handle on the same records, as another process would have one.

    ``fail_next`` plans what the following appends raise instead of returning."""

    durability = Durability.NONE

    def __init__(self, *, clock: Clock, limits: Limits = PRODUCTION, shared: Shared | None = None) -> None:
        self._clock = clock
        self._limits = limits
        self._shared = Shared() if shared is None else shared
        self.store_id = self._shared.store_id

    def another(self) -> MemoryLog:
        """Another handle on the same log."""
        return MemoryLog(clock=self._clock, limits=self._limits, shared=self._shared)

    def fail_next(self, error: LogError, *, stored: bool = False) -> None:
        """The next append, by whatever handle, raises ``error``, with its records stored all the same or not."""
        self._shared.failures.append((error, stored))

    def append(self, payloads: Sequence[bytes]) -> Sequence[Appended]:
        return self._append(payloads, None)

    def bounds(self) -> Bounds:
        with self._shared.changed:
            count = len(self._shared.records)
        return Bounds(1, count, count)

    def barrier(self) -> int:
        return self.bounds().durable

    def read(self, after: int, *, through: int | None = None) -> Iterator[LogRecord]:
        with self._shared.changed:
            end = len(self._shared.records)
            return iter(self._shared.records[max(after, 0) : end if through is None else min(end, max(through, 0))])

    def record_at(self, position: int) -> LogRecord | None:
        return next(self.read(position - 1, through=position), None) if position > 0 else None

    def wait(self, after: int, seconds: float) -> int:
        with self._shared.changed:
            self._shared.changed.wait_for(lambda: len(self._shared.records) > after, seconds)
            return len(self._shared.records)

    def claim(self, seen: OwnerHead, payload: bytes) -> OwnerWriter:
        epoch = seen.epoch + 1
        placed = self._append([payload], OwnerHead(seen.position, epoch))
        return _MemoryOwner(self, OwnerHead(placed[-1].position, epoch))

    def close(self) -> None:
        """Nothing to give back."""

    def append_owned(self, payloads: Sequence[bytes], head: OwnerHead) -> Sequence[Appended]:
        """For the owner writer: records of ``head.epoch`` behind ``head``."""
        return self._append(payloads, head)

    def _append(self, payloads: Sequence[bytes], head: OwnerHead | None) -> Sequence[Appended]:
        for payload in payloads:
            if len(payload) > self._limits.record_bytes_max:
                raise ValueError(f"a record of {len(payload)} bytes; at most {self._limits.record_bytes_max} fit")
        shared = self._shared
        with shared.changed:
            if head is not None and shared.owner != head.position:
                raise FencedError(f"position {shared.owner} holds another owner's record")
            error, stored = shared.failures.pop(0) if shared.failures else (None, True)
            placed = self._store(payloads, head) if stored else []
            if error is not None:
                raise error
            return placed

    def _store(self, payloads: Sequence[bytes], head: OwnerHead | None) -> list[Appended]:
        shared = self._shared
        now = self._clock.read()
        placed = []
        for payload in payloads:
            position = len(shared.records) + 1
            link = None
            if head is not None:
                link = Link(head.epoch, shared.owner, int.from_bytes(os.urandom(8), "little"))
                shared.owner = position
            kind = Kind.CLIENT if link is None else Kind.OWNER
            shared.records.append(
                LogRecord(position, kind, now.latest, now.boot_id, now.monotonic_ns, link, bytes(payload))
            )
            placed.append(Appended(position, now.latest))
        shared.changed.notify_all()
        return placed


class Shared:
    """What all handles of one log in memory share."""

    def __init__(self) -> None:
        self.store_id = os.urandom(16)
        self.changed = threading.Condition()
        self.records: list[LogRecord] = []
        self.owner = 0
        self.failures: list[tuple[LogError, bool]] = []


class _MemoryOwner:
    """The ``OwnerWriter`` of a MemoryLog."""

    def __init__(self, log: MemoryLog, head: OwnerHead) -> None:
        self._log = log
        self._head = head

    @property
    def head(self) -> OwnerHead:
        return self._head

    def append(self, payloads: Sequence[bytes]) -> Sequence[Appended]:
        placed = self._log.append_owned(payloads, self._head)
        if placed:
            self._head = OwnerHead(placed[-1].position, self._head.epoch)
        return placed
