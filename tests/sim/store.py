"""The real store over a simulated machine: its log on the simulated disk, its rows in a real file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nereus_cli.daemon import Orders, Parts, serve
from nereus_cli.domain.instant import SECOND, Reading
from nereus_cli.domain.records import OwnerAcquired
from nereus_cli.fold import Applied
from nereus_cli.log.files import FileLog
from nereus_cli.ports import BusyError, LogRecord
from nereus_cli.presence import Beat, Presence
from nereus_cli.store import Store, _applied
from tests.sim.process import EVER, Process

if TYPE_CHECKING:
    from nereus_cli.projection.sqlite import SqliteProjection
    from tests.sim.oracle import Oracle


class SimClock:
    """The machine's clocks, for one process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def read(self) -> Reading:
        self._process.touch("clock")
        return self._process.world.reading()

    def sleep(self, seconds: float) -> None:
        self._process.sleep(seconds)


class WatchedLog(FileLog):
    """The real log; the oracle hears of every record that is read as durable."""

    oracle: Oracle

    def read(self, after: int, *, through: int | None = None) -> Iterator[LogRecord]:
        for record in super().read(after, through=through):
            self.oracle.saw(record)
            yield record


class SimLease:
    """A kernel lock of the machine."""

    def __init__(self, process: Process, name: str) -> None:
        self._process = process
        self._name = name
        process.at_end.append(self.release)

    def acquire(self, seconds: float = 0) -> None:
        leases = self._process.world.leases
        self._process.touch("lease")
        if self._name in leases:
            self._process.wait_until(lambda: self._name not in leases, seconds)
        if self._name in leases:
            self._process.world.sometimes(f"the {self._name} lease was refused")
            raise BusyError(f"{self._name} is held", holder=leases[self._name].pid)
        leases[self._name] = self._process

    def release(self) -> None:
        leases = self._process.world.leases
        if leases.get(self._name) is self._process:
            del leases[self._name]


class SimStore(Store):
    """``rows`` is the directory of the stored rows: a rival owner has its own."""

    def __init__(self, process: Process, oracle: Oracle, rows: Path) -> None:
        self.process = process
        self.oracle = oracle
        limits = process.world.features.limits()
        clock = SimClock(process)
        log = WatchedLog(
            "/log", disk=process.disk, clock=clock, limits=limits, create=not (rows / "projection/state.db").exists(),
            watch=False, applied=partial(_applied, str(rows)),
        )  # fmt: skip
        log.oracle = oracle
        super().__init__(str(rows), log, clock, limits)  # type: ignore[arg-type] # a clock is a clock
        process.at_end.append(self._let_go)

    def _let_go(self) -> None:
        for reader in self._readers:
            reader.close()

    def pull(self, projection: SqliteProjection, through: int | None) -> Iterator[list[Applied]]:
        for applied in super().pull(projection, through):
            self.oracle.compare(projection)
            yield applied

    def open_projection(self) -> SqliteProjection:
        projection = super().open_projection()
        self.process.at_end.append(projection.close)
        return projection

    def presence(self) -> Presence:
        self.process.touch("presence")
        owner = self.process.world.leases.get("owner")
        beat = self.oracle.beat
        return Presence("alive" if owner is not None and beat is not None and beat.pid == owner.pid else "none", beat)

    def owner_lease(self) -> SimLease:  # type: ignore[override] # the same port
        return SimLease(self.process, "owner")

    def projection_lease(self) -> SimLease:  # type: ignore[override] # the same port
        return SimLease(self.process, "projection")


class SimWaiter:
    """Where the owner sleeps. A wait of a whole second is one in which nothing is expected: it is drawn out to the next
    timer, as if each second had passed without anything to do."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.stops = 0
        self.projection: SqliteProjection | None = None
        self.hurried: Callable[[], bool] = lambda: False

    def ring(self) -> None:
        self._process.rung = True

    def wait(self, nanoseconds: int, _readable: Sequence[int], _writable: Sequence[int]) -> None:
        process, world = self._process, self._process.world
        process.touch("wait")
        if nanoseconds >= SECOND and self.projection is not None and not self.hurried():
            due = self.projection.due(EVER, 1)
            timer = due[0][0] - world.offset if due else world.now + 3_600 * SECOND
            nanoseconds = max(nanoseconds, timer - world.now if timer > world.now else 60 * SECOND)
        process.wait_until(lambda: process.rung, nanoseconds / SECOND)
        process.rung = False


class SimDoor:
    """The owner's socket and beat."""

    def __init__(self, process: Process, oracle: Oracle) -> None:
        self._process = process
        self._oracle = oracle

    def answer(self) -> None:
        """Nobody waits at it."""

    def fileno(self) -> int:
        return -1

    def beat(self, beat: Beat) -> None:
        self._process.touch("beat")
        self._oracle.beat = beat


def own(process: Process, oracle: Oracle, rows: Path, *, rival: bool = False) -> None:
    """All that ``run`` does: the leases, unless locks do not work here, then one session after the other."""
    store = SimStore(process, oracle, rows)
    world = process.world
    if not rival:
        store.owner_lease().acquire()
        store.projection_lease().acquire(seconds=5)
    projection = store.open_projection()
    waiter = SimWaiter(process)
    waiter.projection = projection
    world.stoppable[process.pid] = waiter
    destination = store.destination()
    waiter.hurried = lambda: bool(destination._doubtful) or world.unsettled()
    identity = OwnerAcquired("simulated", process.pid, 1, "0")
    parts = Parts(
        store, projection, destination, waiter, SimDoor(process, oracle),  # type: ignore[arg-type] # stand-ins
        lambda event, _: world.sometimes(f"report {event}"), identity, world.chance.randbytes,
    )  # fmt: skip
    try:
        serve(parts, Orders(world.chance.choice((1, 2, 8)), 10 * SECOND))
    finally:
        world.stoppable.pop(process.pid, None)
        destination.close()


def save_rows(rows: Path) -> None:
    """An image of the stored rows as they are now, to go back to: they may lag, and they may be gone."""
    source = rows / "projection" / "state.db"
    if not source.exists():
        return
    with sqlite3.connect(source) as one, sqlite3.connect(rows / "saved.db") as two:
        one.backup(two)
    one.close()
    two.close()


def lose_rows(rows: Path, *, back: bool) -> None:
    """What a power cut does to rows that are synced now and then: they are as they were, or not there."""
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        with suppress(FileNotFoundError):
            (rows / "projection" / name).unlink()
    saved = rows / "saved.db"
    if back and saved.exists():
        shutil.copy(saved, rows / "projection" / "state.db")
        os.chmod(rows / "projection" / "state.db", 0o600)
