"""The keeper of a simulated machine: doors, evidence, children, and the client by which an owner talks to it.

The owner's side is the real one down to the client: it judges, decides and recovers by the code that ships. This is
the other side, with the same order of events: TAKEN, door, spawn, STARTED, ENDED; it may be killed between any two.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from nereus_cli.destinations.keeper_evidence import Head, Trace
from nereus_cli.destinations.keeper_facts import Closed, Ended, Fact, KeeperGone, NotStarted, Started, Stopped, TimedOut
from nereus_cli.destinations.keeper_launch import KeeperAwayError
from nereus_cli.destinations.keeper_requests import StartRequest
from nereus_cli.domain.instant import MILLISECOND, SECOND

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.world import World

Line = tuple[str, Fact | None]
"""An attempt and what is said of it; None: TAKEN."""
_TERM, _KILL = 15, 9
_IDLE_S = 2.0
_EVER_S = 1e9
_SPAWN_ERRORS = (errno.EAGAIN, errno.ENOMEM, errno.ENOENT, errno.EACCES)


class EvidenceFile(msgspec.Struct):
    """What one keeper wrote. ``alive``: it may write more."""

    name: str
    head: Head
    lines: list[Line]
    alive: bool = True


class Child(msgspec.Struct):
    """A running command. ``status`` is the wait status it will end with."""

    attempt_id: str
    started_at: int
    request: StartRequest
    status: int = 0
    timed_out: bool = False
    stopped: bool = False
    ended_at: int | None = None


class Room:
    """``keeper/`` and ``attempts/`` of the store, and the children of the machine. ``began`` and ``over`` tell the
    truth to whoever watches: when a command begins, and how it ends."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.files: list[EvidenceFile] = []
        self.doors: dict[str, tuple[str, int]] = {}
        self.children: dict[str, Child] = {}
        self.keeper: Keeper | None = None
        self.began: Callable[[StartRequest], None] = lambda _: None
        self.over: Callable[[str, int], None] = lambda *_: None
        self.ending: Callable[[StartRequest], tuple[int, int]] = lambda _: (0, SECOND)
        world.on_cut.append(self.cut)

    def cut(self) -> None:
        """Nothing of a keeper is ever synced: after a reboot any end of it may be missing, and all children are."""
        world = self.world
        if world.rebooted:
            self.children.clear()
            for file in self.files:
                del file.lines[world.chance.randrange(len(file.lines) + 1) if file.alive else len(file.lines) :]
            for attempt_id, (_, made) in list(self.doors.items()):
                if made > world.cut_at - 30 * SECOND and world.chance.random() < 0.5:
                    del self.doors[attempt_id]
                    world.sometimes("a door lost in a power cut")
        for file in self.files:
            file.alive = False
        self.keeper = None

    def shut_door(self, attempt_id: str, *, proven: bool) -> str | None:
        """As an owner closes it; None when a keeper had opened it."""
        target = "closed" if proven else "closed-unproven"
        found = self.doors.setdefault(attempt_id, (target, self.world.now))[0]
        return None if found == "open" else found

    def begin(self, request: StartRequest) -> Child:
        """A child runs from now on, whatever becomes of its keeper."""
        status, length = self.ending(request)
        child = Child(request.attempt_id, self.world.wall, request, status)
        self.began(request)
        self.children[request.attempt_id] = child
        self.world.after(length, lambda: self.end(child, child.status))
        if request.timeout_ms is not None:
            self.world.after(request.timeout_ms * MILLISECOND, lambda: self.time_out(child))
        return child

    def end(self, child: Child, status: int) -> None:
        """It ends now, if it still runs."""
        if self.children.get(child.attempt_id) is not child or child.ended_at is not None:
            return
        child.ended_at, child.status = self.world.wall, status
        self.over(child.attempt_id, status)
        del self.children[child.attempt_id]
        if self.keeper is not None:
            self.keeper.reaped(child)

    def time_out(self, child: Child) -> None:
        """A living keeper ends it."""
        keeper = self.keeper
        if child.ended_at is None and keeper is not None and child.attempt_id in keeper.mine:
            child.timed_out = True
            keeper.queue.append(lambda: keeper.said(child.attempt_id, TimedOut(attempt_id=child.attempt_id)))
            self.world.after(SECOND, lambda: self.end(child, _TERM))


class Keeper:
    """The process. ``queue`` is what it has to do next, ``clients`` whom it tells."""

    def __init__(self, room: Room) -> None:
        self.room = room
        world = room.world
        self.process = world.spawn("keeper", self._main)
        name = f"{len(room.files):06d}.ev"
        reading = world.reading()
        head = Head(
            boot_id=reading.boot_id.hex(),
            pid=self.process.pid,
            wall_ns=reading.latest,
            boot_ns=reading.monotonic_ns,
            own=True,
        )
        self.file = EvidenceFile(name, head, [])
        self.queue: list[Callable[[], None]] = []
        self.clients: list[SimClient] = []
        self.mine: set[str] = set()
        self.ready = False
        room.files.append(self.file)
        room.keeper = self
        self.process.at_end.append(self._gone)

    def answers(self) -> bool:
        """Whether whoever connects now is greeted."""
        process = self.process
        return self.ready and not process.ended and process.stopped_until <= self.room.world.now

    def take(self, requests: Sequence[StartRequest]) -> None:
        """A batch from a client."""
        self.queue.append(lambda: self._batch(requests))

    def stop(self, attempt_id: str, *, kill: bool) -> None:
        """A client wants an end."""
        self.queue.append(lambda: self._stop(attempt_id, kill=kill))

    def reaped(self, child: Child) -> None:
        """A child of some keeper of this machine ended; ours is told by the system."""
        if child.attempt_id in self.mine:
            self.queue.append(lambda: self._ended(child))

    def said(self, attempt_id: str, fact: Fact) -> None:
        """Into the evidence, then to every client."""
        self.process.touch("evidence")
        self.file.lines.append((attempt_id, fact))
        self.process.touch("tell")
        for client in self.clients:
            client.hear(fact)

    def _main(self, process: Process) -> None:
        process.touch("listen")
        self.ready = True
        while True:
            busy = self._busy()
            process.wait_until(partial(self._stirred, busy=busy), _EVER_S if busy else _IDLE_S)
            if self.queue:
                process.touch("turn")
                self.queue.pop(0)()
            elif not self._busy():
                return

    def _busy(self) -> bool:
        return bool(self.mine or self.clients)

    def _stirred(self, *, busy: bool) -> bool:
        return bool(self.queue) or busy != self._busy()

    def _batch(self, requests: Sequence[StartRequest]) -> None:
        for request in requests:
            self.process.touch("taken")
            self.file.lines.append((request.attempt_id, None))
        for request in requests:
            self._start(request)

    def _start(self, request: StartRequest) -> None:
        room, name, chance = self.room, request.attempt_id, self.room.world.chance
        self.process.touch("door")
        if name in room.doors:
            self.said(name, Closed(attempt_id=name))
            return
        room.doors[name] = ("open", room.world.now)
        self.process.touch("spawn")
        if room.world.features.errors and chance.random() < 0.05:
            number = chance.choice(_SPAWN_ERRORS)
            what = "spawn" if number in (errno.EAGAIN, errno.ENOMEM) else "exec"
            self.said(name, NotStarted(attempt_id=name, errno=number, what=what))
            return
        self.mine.add(name)
        child = room.begin(request)
        self.said(name, Started(attempt_id=name, pid=self.process.pid + 1, at_ns=child.started_at))

    def _stop(self, attempt_id: str, *, kill: bool) -> None:
        child = self.room.children.get(attempt_id)
        if child is not None and attempt_id in self.mine and not child.stopped:
            child.stopped = True
            self.said(attempt_id, Stopped(attempt_id=attempt_id))
            self.room.world.after(0 if kill else SECOND, lambda: self.room.end(child, _KILL if kill else _TERM))

    def _ended(self, child: Child) -> None:
        self.mine.discard(child.attempt_id)
        numbers = dict.fromkeys(
            ("maxrss_kib", "stdout_bytes", "stderr_bytes", "stdout_kept", "stderr_kept", "survivors"), 0
        )
        self.said(
            child.attempt_id,
            Ended(
                attempt_id=child.attempt_id,
                wait_status=child.status,
                timed_out=child.timed_out,
                stopped=child.stopped,
                started_at_ns=child.started_at,
                ended_at_ns=child.ended_at or 0,
                ended_boot_ns=self.room.world.monotonic,
                utime_s=0.0,
                stime_s=0.0,
                **numbers,
            ),
        )

    def _gone(self) -> None:
        if self.room.keeper is not self:
            return
        self.room.keeper = None
        for client in self.clients:
            client.hear(KeeperGone(keeper=self.file.name, accepting=True))
        if self.mine:
            self.room.world.sometimes("a keeper died with children")
        # Its socket ends before its lock does.
        self.room.world.after(self.room.world.chance.randrange(SECOND), self._unlocked)

    def _unlocked(self) -> None:
        self.file.alive = False


class SimClient:
    """The owner's ``KeeperClient``: same calls, same promises."""

    def __init__(self, room: Room, process: Process) -> None:
        self._room = room
        self._process = process
        self._keeper: Keeper | None = None
        self._heard: list[Fact] = []
        process.at_end.append(self.close)

    @property
    def accepting(self) -> bool:
        """Whether a keeper is connected that takes starts, as far as was heard."""
        return self._keeper is not None

    def connect(self, timeout_s: float = 10.0) -> None:
        """Be connected to a keeper, started if need be; one that is stopped does not answer."""
        room, process = self._room, self._process
        if room.keeper is None:
            process.touch("launch")
            if room.world.features.errors and room.world.chance.random() < 0.1:
                room.world.sometimes("a keeper could not be started")
                raise KeeperAwayError("no process to be had")
        keeper = room.keeper or Keeper(room)
        process.wait_until(lambda: keeper.answers() or keeper.process.ended, timeout_s)
        if not keeper.answers():
            room.world.sometimes("a keeper did not answer")
            raise KeeperAwayError("it died at once, or does not answer")
        self._keeper = keeper
        keeper.clients.append(self)

    def start(self, requests: Sequence[StartRequest]) -> None:
        """Hands them over in one batch."""
        self._process.touch("start")
        if self._keeper is None:
            raise KeeperAwayError("no keeper is connected")
        self._keeper.take(list(requests))

    def stop(self, attempt_id: str, *, kill: bool = False) -> None:
        """Ends an attempt."""
        self._process.touch("stop")
        if self._keeper is not None:
            self._keeper.stop(attempt_id, kill=kill)

    def pump(self) -> list[Fact]:
        """What came."""
        self._process.touch("pump")
        heard, self._heard = self._heard, []
        if any(isinstance(fact, KeeperGone) for fact in heard):
            self._keeper = None
        return heard

    def hear(self, fact: Fact) -> None:
        """The keeper's side of the socket."""
        self._heard.append(fact)
        self._process.rung = True

    def fileno(self) -> int:
        """Ringing is enough here."""
        return -1

    def close(self) -> None:
        """Leaves."""
        if self._keeper is not None and self in self._keeper.clients:
            self._keeper.clients.remove(self)
        self._keeper = None


class SimEvidence:
    """The reader of the evidence, for the code that decides."""

    def __init__(self, room: Room, process: Process, only: Container[str] | None = None) -> None:
        self._room = room
        self._process = process
        self._only = only
        self._traces: dict[str, Trace] = {}
        self._heads: list[Head] = []

    def refresh(self) -> None:
        """Reads all that is there."""
        self._process.touch("read evidence")
        self._traces.clear()
        self._heads = [file.head for file in self._room.files]
        for file in self._room.files:
            for attempt_id, fact in file.lines:
                if self._only is None or attempt_id in self._only:
                    _learn(self._traces.setdefault(attempt_id, Trace()), file.name, fact)

    def trace(self, attempt_id: str) -> Trace | None:
        """What is known of an attempt."""
        return self._traces.get(attempt_id)

    def heads(self) -> list[Head]:
        """The heads of all files."""
        return list(self._heads)

    def forget(self, attempt_ids: Iterable[str]) -> None:
        """Lets go."""
        for attempt_id in attempt_ids:
            self._traces.pop(attempt_id, None)

    def close(self) -> None:
        """Nothing is held."""


def _learn(trace: Trace, name: str, fact: Fact | None) -> None:
    match fact:
        case None:
            trace.files.add(name)
        case Started():
            trace.files.add(name)
            trace.started = fact
        case TimedOut():
            trace.timed_out = True
        case Stopped():
            trace.stopped = True
        case Ended():
            trace.end = fact
        case NotStarted() | Closed():
            trace.end = trace.end or fact
        case _:
            return
