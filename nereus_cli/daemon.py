"""The owner's process: acquires, catches up, recovers, and then performs each turn in one fixed order.

A turn (compare design §9):

1. look at the clock; a step becomes a record and gates what it must;
2. apply what is durable, so that the turn decides on the newest state;
3. take in what ended, and let the engine claim and materialise what is due;
4. append its decisions in one batch with one sync, then apply the log through them;
5. start exactly what was read back as ADMITTED;
6. wait for whichever comes first: a timer, an ending, an append, a signal, a second.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from nereus_cli.clock import Moment, StepWatch
from nereus_cli.codec import encode_mutation
from nereus_cli.domain.instant import SECOND, Reading
from nereus_cli.domain.message import State
from nereus_cli.domain.records import ClockStep, Mutation, OwnerAcquired
from nereus_cli.engine.turns import Engine
from nereus_cli.ports import (
    BusyError,
    Destination,
    EnqueueUncertainError,
    FencedError,
    NotQueuedError,
    OwnerHead,
    OwnerWriter,
    ProjectionStalledError,
)
from nereus_cli.presence import BEAT_EVERY_NS, Beat, OwnerSocket
from nereus_cli.waiting import LogBell, Waiter

if TYPE_CHECKING:
    from nereus_cli.projection.sqlite import SqliteProjection
    from nereus_cli.store import Store

Report = Callable[[str, dict[str, object]], None]
NEEDS_A_PERSON: Final = 30
_POLL_NS: Final = SECOND
_EVER: Final = (1 << 63) - 1
_UNSETTLED: Final = (State.HELD, State.UNCERTAIN, State.DEAD_LETTER)


class Orders(msgspec.Struct, frozen=True):
    """What ``run`` was asked for; ``grace_ns`` is both the children's and the stopping daemon's."""

    concurrency: int
    grace_ns: int
    until_idle: bool = False
    once: bool = False


class Parts(msgspec.Struct):
    """What outlives one epoch. ``identity`` is what this owner says of itself, ``entropy(n)`` gives n random bytes."""

    store: Store
    projection: SqliteProjection
    destination: Destination
    waiter: Waiter
    door: OwnerSocket
    report: Report
    identity: OwnerAcquired
    entropy: Callable[[int], bytes] = os.urandom


def run_owner(store: Store, *, concurrency: int, grace_ns: int, until_idle: bool, once: bool, report: Report) -> int:
    """Owns the store until it is told to stop, or until nothing is left to do. Returns the exit status.

    Raises BusyError when somebody else owns the store, CorruptLogError when it must not be run."""
    orders = Orders(concurrency, grace_ns, until_idle, once)
    lease, rows = store.owner_lease(), store.projection_lease()
    lease.acquire()
    try:
        rows.acquire(seconds=5)
        try:
            return _own(store, orders, report)
        finally:
            rows.release()
    finally:
        lease.release()


def _own(store: Store, orders: Orders, report: Report) -> int:
    projection = store.open_projection()
    waiter = Waiter()
    bell = LogBell(store.another_log(), waiter.ring)
    destination, door = store.destination(), OwnerSocket(f"{store.path}/owner")
    try:
        return serve(Parts(store, projection, destination, waiter, door, report, _identity(store)), orders)
    finally:
        bell.close()
        door.close()
        destination.close()
        waiter.close()
        projection.close()


def serve(parts: Parts, orders: Orders) -> int:
    """One epoch after the other, should the log ever leave this process in doubt about one of its own records. When
    the log shows another owner this process ends: the locks should have prevented that, the chain makes it harmless."""
    again = False
    while True:
        try:
            return Session(parts, orders).run()
        except EnqueueUncertainError as error:
            parts.report("owner.uncertain", {"why": str(error)})
            again = True
        except (NotQueuedError, ProjectionStalledError) as error:
            if not again:
                raise
            parts.report("log.refused", {"why": str(error)})
        except FencedError as error:
            parts.report("owner.lost", {"why": str(error)})
            raise BusyError(f"another owner took over: {error}") from error
        parts.waiter.wait(_POLL_NS, (), ())
        if parts.waiter.stops:
            parts.report("owner.stopped", {})
            return 0


class Session:
    """One epoch: from OwnerAcquired until ownership ends."""

    def __init__(self, parts: Parts, orders: Orders) -> None:
        """Begins nothing yet."""
        self._parts = parts
        self._orders = orders
        self._store = parts.store
        self._log = parts.store.log
        self._projection = parts.projection
        self._engine = Engine(
            parts.projection,
            parts.destination,
            parts.store.limits,
            concurrency=orders.concurrency,
            grace_ns=orders.grace_ns,
            entropy=parts.entropy,
        )
        self._writer: OwnerWriter | None = None
        self._steps = StepWatch(None)
        self._step: ClockStep | None = None
        self._refused = ""
        self._away = ""
        self._beaten = 0
        self._behind: tuple[int, int] | None = None
        self._stop_by: int | None = None
        self._stops_heeded = 0
        self._begun_at = 0

    def run(self) -> int:
        """The exit status, once this process is to end."""
        self._acquire()
        while True:
            reading = self._store.clock.read()
            self._turn(reading)
            status = self._ended(reading)
            if status is not None:
                return status
            self._wait()

    # ------------------------------------------------------------------------------------------------ beginning

    def _acquire(self) -> None:
        """The start-up barrier: everything in the log at this moment is applied before anything is dispatched."""
        end = self._log.barrier()
        self._catch_up(end)
        self._steps = StepWatch(self._last_moment())
        self._watch_clock(self._store.clock.read())
        head = self._projection.head()
        owner = self._parts.identity
        if head.owner and (head.owner.host, head.owner.inode) != (owner.host, owner.inode):
            self._parts.report("owner.elsewhere", {"host": head.owner.host, "inode": head.owner.inode})
        self._writer = self._log.claim(OwnerHead(head.owner_position, head.epoch), encode_mutation(owner))
        self._pull()
        self._check_epoch()
        self._parts.report("owner.acquired", {"epoch": self._writer.head.epoch, "position": self._writer.head.position})
        self._begun_at = self._store.clock.read().latest
        self._beat(self._store.clock.read())
        self._engine.recover()
        if self._engine.running:
            self._parts.report("attempts.adopted", {"count": self._engine.running})

    def _catch_up(self, end: int) -> None:
        started = self._projection.head().applied
        for _ in self._store.pull(self._projection, end):
            pass
        if end - started > self._store.limits.apply_batch_max:
            self._parts.report("projection.caught-up", {"from": started, "through": end})

    def _last_moment(self) -> Moment | None:
        record = self._log.record_at(self._log.bounds().durable)
        return Moment(record.persisted_at, record.monotonic_ns, record.boot_id) if record else None

    def _check_epoch(self) -> None:
        """Another owner's record, or one of ours that the fold voided, ends this epoch and this process (I11)."""
        head, mine = self._projection.head(), self._writer.head if self._writer else OwnerHead(0, 0)
        if (head.epoch, head.owner_position) != (mine.epoch, mine.position):
            raise FencedError(f"epoch {mine.epoch} is over, the log is at epoch {head.epoch}")

    # --------------------------------------------------------------------------------------------------- a turn

    def _turn(self, reading: Reading) -> None:
        """One turn; a disk that takes nothing now is waited out, and said."""
        refused = ""
        try:
            refused = self._performed(reading)
        except (ProjectionStalledError, NotQueuedError) as error:
            refused = str(error)
        self._say("log", self._refused, refused)
        self._say("destination", self._away, self._engine.away)
        self._refused, self._away = refused, self._engine.away
        self._beat(reading)

    @property
    def _trouble(self) -> str:
        """Why nothing is dispatched now, or the empty string."""
        return self._refused or self._away

    def _say(self, what: str, before: str, now: str) -> None:
        if now != before:
            self._beaten = 0
            self._parts.report(f"{what}.refused" if now else f"{what}.resumed", {"why": now or before})

    def _performed(self, reading: Reading) -> str:
        """The steps, in their order. Returns why the log took nothing, or the empty string."""
        self._watch_clock(reading)
        self._heed_stops(reading)
        self._pull()
        self._check_epoch()
        self._engine.settle(self._parts.destination.pump())
        records = self._engine.turn(reading, gated=self._steps.gated_for(reading) > 0)
        if self._step is not None:
            records = (self._step, *records)
        refused = self._append(records) if records else ""
        self._sync_what_was_left(reading)
        return refused

    def _watch_clock(self, reading: Reading) -> None:
        """A step waits for its record; two in a row are one, from where the first began."""
        step = self._steps.look(reading)
        if step is not None:
            self._parts.report("clock.step", {"before": step.before, "after": step.after})
            self._step = step if self._step is None else ClockStep(self._step.before, step.after)

    def _append(self, records: Sequence[Mutation]) -> str:
        """One batch, one sync; then read back. Acting comes only after the fold has spoken (I3)."""
        if self._writer is None:
            return ""
        try:
            self._writer.append([encode_mutation(record) for record in records])
        except NotQueuedError as error:
            self._engine.abandon(record for record in records if not isinstance(record, ClockStep))
            return str(error)
        self._step = None
        self._pull()
        self._check_epoch()
        return ""

    def _pull(self) -> None:
        for applied in self._store.pull(self._projection, None):
            todo = self._engine.observe(applied)
            if todo.starts:
                self._parts.destination.start(todo.starts)
            for attempt_id, kill in todo.stops:
                self._parts.destination.stop(attempt_id, kill=kill)

    def _sync_what_was_left(self, reading: Reading) -> None:
        """A frame whose writer died before its sync becomes durable by ours, after a second."""
        bounds = self._log.bounds()
        if bounds.last <= bounds.durable:
            self._behind = None
        elif self._behind is None or self._behind[0] != bounds.durable:
            self._behind = (bounds.durable, reading.monotonic_ns)
        elif reading.monotonic_ns - self._behind[1] >= SECOND:
            self._log.barrier()
            self._behind = None

    def _beat(self, reading: Reading) -> None:
        self._parts.door.answer()
        if reading.monotonic_ns - self._beaten < BEAT_EVERY_NS:
            return
        self._beaten = reading.monotonic_ns
        head = self._projection.head()
        self._parts.door.beat(
            Beat(
                pid=self._parts.identity.pid,
                epoch=head.epoch,
                since=head.owner.since if head.owner else 0,
                monotonic_ns=reading.monotonic_ns,
                boot_id=reading.boot_id,
                applied=head.applied,
                running=self._engine.running,
                trouble=self._trouble,
                gated_ns=self._steps.gated_for(reading),
            )
        )

    # --------------------------------------------------------------------------------------------------- ending

    def _heed_stops(self, reading: Reading) -> None:
        """First signal: no new admissions, wait for what runs up to the grace; second: leave at once."""
        if self._parts.waiter.stops > self._stops_heeded == 0:
            self._stops_heeded = 1
            self._engine.admitting = False
            self._stop_by = reading.monotonic_ns + self._orders.grace_ns
            self._parts.report("owner.stopping", {"running": self._engine.running})

    def _ended(self, reading: Reading) -> int | None:
        if self._stop_by is not None:
            if not self._engine.idle and self._parts.waiter.stops < 2 and reading.monotonic_ns < self._stop_by:  # noqa: PLR2004 -- the second signal
                return None
            self._parts.report("owner.stopped", {"left_to_keeper": self._engine.running})
            return 0
        if not (self._orders.once or self._orders.until_idle) or not self._engine.idle or self._trouble:
            return None
        through = _EVER if self._orders.until_idle else self._begun_at
        if self._projection.due(through, 1):
            return None
        counts = self._projection.counts()
        left = sum(counts.get(state, 0) for state in _UNSETTLED)
        return NEEDS_A_PERSON if left and self._orders.until_idle else 0

    def _wait(self) -> None:
        reading = self._store.clock.read()
        nanoseconds = _POLL_NS
        if not self._trouble:
            gate = self._steps.gated_for(reading)
            wake = self._engine.next_wake(reading.latest)
            nanoseconds = min(max(wake - reading.latest, gate, 0), _POLL_NS)
        readable, writable = self._parts.destination.wake_fds()
        self._parts.waiter.wait(nanoseconds, [self._parts.door.fileno(), *readable], writable)


def _identity(store: Store) -> OwnerAcquired:
    from nereus_cli import __version__

    return OwnerAcquired(socket.gethostname(), os.getpid(), os.stat(store.path).st_ino, __version__)
