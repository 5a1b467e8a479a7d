"""A world in one thread: one machine, its clocks, its processes that take turns, and the events to come.

Everything that happens by chance comes from one seed. ``trace`` is a running hash of every call of every process in
the order in which they happened: equal seeds give equal traces, on every Python.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Protocol

from greenlet import getcurrent  # type: ignore[import-untyped] # it brings no types

from nereus_cli.domain.instant import SECOND, Reading
from tests.sim.machine import Machine, Node, SimDirectory, SimFile
from tests.sim.process import Process
from tests.sim.trouble import Features, Trouble

START = 1_700_000_000 * SECOND
_FIRST_PID = 1_000
_CALLS_A_MINUTE_MAX = 150_000


class Stoppable(Protocol):
    """What counts the signals that ask an owner to stop."""

    stops: int


class Violation(AssertionError):  # noqa: N818 - what was promised did not hold
    """Something is not as it was promised."""


class World:
    """``now`` counts nanoseconds from the beginning, whatever the machine's clocks say. ``seen`` counts how often each
    rare thing happened; ``steps`` the calls of all processes."""

    def __init__(self, seed: str, features: Features) -> None:
        self.chance = random.Random(seed)
        self.features = features
        self.machine = Machine(random.Random(f"{seed}/disk"), ordered=features.journal, evict=features.evict)
        self.trouble = Trouble(features)
        self.now = 1_000 * SECOND
        self.offset = START - self.now
        self.boot = 1
        self.booted_at = 0
        self.steps = 0
        self.seen: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self.processes: list[Process] = []
        self.leases: dict[str, Process] = {}
        self.stoppable: dict[int, Stoppable] = {}
        self._set_back: tuple[int, int] = (0, 0)
        self.hub = getcurrent()
        self.current: Process | None = None
        self.cut_in: int | None = None
        self.cut_at = 0
        self._rest = (0, 0)
        self.written_at = 0
        self.rebooted = True
        self.on_cut: list[Callable[[], None]] = []
        self._hash = blake2b(digest_size=16)
        self._pids = _FIRST_PID
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._order = 0

    # -- time

    def reading(self) -> Reading:
        """What both clocks say now."""
        self.now += 100
        wall = self.now + self.offset
        return Reading(wall, wall, self.monotonic, self.boot.to_bytes(16, "little"))

    @property
    def monotonic(self) -> int:
        """What the clock that counts suspend says: it begins with the boot."""
        return self.now - self.booted_at

    def step_clock(self, nanoseconds: int) -> None:
        """Somebody sets the wall clock."""
        self.offset += nanoseconds
        self.sometimes("the clock set forward" if nanoseconds > 0 else "the clock set back")
        if nanoseconds < 0:
            self._set_back = (self.boot, self.monotonic)
        self.ring()

    def set_back_since(self, boot: int, moment: int) -> bool:
        """Whether the wall clock was set back since that moment of that boot."""
        return self._set_back > (boot, moment) or boot != self.boot

    def suspend(self, nanoseconds: int) -> None:
        """The machine sleeps: nobody runs, both clocks go on."""
        self.now += nanoseconds
        self.sometimes("suspend")

    def unsettled(self) -> bool:
        """Whether something was written a moment ago, or the disk is in trouble: an owner looks each second."""
        return self.now < max(self.trouble.until, self.written_at + 5 * SECOND)

    @property
    def wall(self) -> int:
        """The wall clock, without moving it."""
        return self.now + self.offset

    def at(self, when: int, what: Callable[[], object]) -> None:
        """Something happens when the monotonic clock reaches ``when``."""
        self._order += 1
        heappush(self._events, (when, self._order, what))

    def after(self, delay: int, what: Callable[[], object]) -> None:
        """Something happens ``delay`` nanoseconds from now."""
        self.at(self.now + delay, what)

    # -- processes

    def spawn(self, name: str, main: Callable[[Process], None]) -> Process:
        """A new process that begins when it gets its first turn."""
        self._pids += 1
        process = Process(self, self._pids, name, main)
        self.processes.append(process)
        return process

    def note(self, text: str) -> None:
        """Adds to the trace."""
        self._hash.update(text.encode())

    @property
    def trace(self) -> str:
        """The hash of all that happened so far."""
        return self._hash.hexdigest()

    def sometimes(self, what: str) -> None:
        """A rare thing happened: a set of runs in which one never does proves less than it seems to."""
        self.seen[what] += 1

    def run(self, until: int) -> None:
        """Lets the world go on until the monotonic clock reaches ``until``. Raises what a process found wrong."""
        while self.now < until:
            while self._events and self._events[0][0] <= self.now:
                heappop(self._events)[2]()
            ready = [process for process in self.processes if process.can_run(self.now)]
            if ready:
                self._turn(ready[self.chance.randrange(len(ready))] if len(ready) > 1 else ready[0])
            else:
                self.now = min([until, *self._wakes()])
            self._stir()
            if self.failure is not None:
                raise self.failure
            if self.cut_in is not None and self.cut_in <= 0:
                self._power_cut()

    def settle(self) -> None:
        """Every process that there is ends by itself or is killed."""
        for process in list(self.processes):
            self.kill(process)

    def kill(self, process: Process) -> None:
        """At once, wherever it is."""
        process.dead = True
        self._turn(process)

    def cut_soon(self, calls: int, *, reboot: bool) -> None:
        """The power fails that many calls from now, or the medium is pulled and put back within one boot."""
        self.cut_in, self.rebooted = calls, reboot

    def _power_cut(self) -> None:
        """Every process is gone, the medium keeps what it keeps, and a new boot begins, or the same one goes on."""
        self.cut_in, self.cut_at, reboot = None, self.now, self.rebooted
        for process in list(self.processes):
            self.kill(process)
        self.machine.power_cut()
        self.sometimes("power cut" if reboot else "medium pulled and put back")
        if reboot:
            self.boot += 1
            self.booted_at = self.now
        for call in self.on_cut:
            call()

    def ring(self) -> None:
        """The mark was raised: whoever waits for that looks again."""
        for process in self.processes:
            process.rung = True

    def mark_file(self) -> SimFile | None:
        """The file of the durable mark, once there is one."""
        node: Node | None = self.machine.root
        for name in ("log", "mark", "durable"):
            node = node.live.get(name) if isinstance(node, SimDirectory) else None
        return node if isinstance(node, SimFile) else None

    def _stir(self) -> None:
        """A world in which much is done and no time passes will not come to rest any more."""
        if self.now > self._rest[0] + 60 * SECOND:
            self._rest = (self.now, self.steps)
        elif self.steps > self._rest[1] + _CALLS_A_MINUTE_MAX:
            raise Violation(f"no rest: {self.steps - self._rest[1]} calls within a minute")

    def _turn(self, process: Process) -> None:
        before, self.current = self.current, process
        process.resume()
        self.current = before
        if process.ended:
            self.processes.remove(process)

    def _wakes(self) -> list[int]:
        wakes = [self._events[0][0]] if self._events else []
        return wakes + [process.wakes_at() for process in self.processes]
