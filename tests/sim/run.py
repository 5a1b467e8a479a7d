"""One run: a world, everything that happens in it by its seed, and the end at which all has to be well."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from nereus_cli.destinations.keeper_requests import StartRequest
from nereus_cli.domain.instant import DAY, SECOND
from nereus_cli.domain.message import State
from nereus_cli.log import segment
from nereus_cli.projection.sqlite import SqliteProjection
from tests.log.world import fast_directory
from tests.sim.clients import Crowd
from tests.sim.keeper import Room
from tests.sim.machine import SimDirectory, SimFile
from tests.sim.oracle import Oracle
from tests.sim.process import Process
from tests.sim.rot import Rot
from tests.sim.seams import inside
from tests.sim.store import SimStore, lose_rows, own, save_rows
from tests.sim.trouble import drawn
from tests.sim.world import World

_ENDINGS = ((0, 70), (1 << 8, 8), (75 << 8, 5), (64 << 8, 4), (9, 4), (11, 2), (2 << 8, 7))
"""Wait statuses and how often."""
_LENGTHS = (SECOND // 100, SECOND // 100, SECOND, 20 * SECOND, 3_600 * SECOND)
_QUIET_DAYS_MAX = 400


class Report(msgspec.Struct):
    """What a run came to. ``calls`` are those of all processes, ``failure`` says what was not as promised."""

    seed: int
    years: float
    trace: str
    calls: int
    records: int
    effects: int
    seen: Counter[str]
    failure: str = ""


class Run:
    """``off`` names features to leave out; ``calls_max`` ends it early, to find the first call that matters."""

    def __init__(self, seed: int, years: float, rows: Path, *, off: frozenset[str] = frozenset()) -> None:
        features = msgspec.structs.replace(drawn(random.Random(f"{seed}/features")), **dict.fromkeys(off, False))
        self.seed, self.years, self.rows = seed, years, rows
        self.world = World(str(seed), features)
        self.room = Room(self.world)
        self.oracle = Oracle(self.world, features.limits())
        self.crowd = Crowd(self.world, self.oracle, rows)
        self.rot = Rot(self.world)
        self.room.began = self._began
        self.room.over = self.oracle.ends
        self.room.ending = self._ending
        self.quiet = False
        (rows / "projection").mkdir(mode=0o700)
        self.world.on_cut.append(self._after_cut)

    def perform(self) -> Report:
        """All of it; a violation is in the report."""
        world, failure = self.world, ""
        with inside(world, self.room):
            try:
                self._live()
                self._calm()
            except Exception as error:  # noqa: BLE001 - whatever it is, the report says it
                failure = f"{type(error).__name__}: {error}"
                self.error = error
            finally:
                world.failure = None
                world.settle()
        return Report(
            self.seed, self.years, world.trace, world.steps, len(self.oracle.records), len(self.oracle.began),
            world.seen, failure,
        )  # fmt: skip

    def _live(self) -> None:
        world, features = self.world, self.world.features
        world.spawn("owner", self._owner)
        gap = features.gap_s
        self._every(gap, self.crowd.come)
        self._every(10 * gap, lambda: save_rows(self.rows))
        for on, each, what in (
            (features.kills, 4, self._kill_owner),
            (features.kills, 30, self._stop_owner),
            (features.keeper_kills, 10, self._kill_keeper),
            (features.cuts, 8, lambda: self._cut(reboot=True)),
            (features.pulls, 20, lambda: self._cut(reboot=False)),
            (features.errors, 5, self._trouble),
            (features.full, 8, self._fill),
            (features.steps, 30, self._step),
            (features.suspends, 30, lambda: world.suspend(world.chance.randrange(3_600) * SECOND)),
            (features.stops, 12, self._freeze),
            (features.rot, 60, lambda: self.rot.harm(self._reader)),
            (features.rivals, 30, lambda: world.spawn("rival", self._rival)),
            (True, 2, self.crowd.race),
            (True, 50, lambda: world.spawn("second owner", lambda process: own(process, self.oracle, self.rows))),
        ):
            if on:
                self._every(each * gap, what)
        end = world.wall + int(self.years * 365 * DAY)
        while world.wall < end:
            world.run(world.now + (end - world.wall))

    def _calm(self) -> None:
        """Nothing goes wrong any more, nobody asks anything: what is due is done, the state is what the log says."""
        world, oracle = self.world, self.oracle
        self.quiet = True
        world.trouble.calm()
        world.machine.room = None
        world.cut_in = None
        for process in list(world.processes):
            if process.name in ("rival", "second owner"):
                world.kill(process)
            process.die_in, process.stopped_until = None, 0
        for _ in range(_QUIET_DAYS_MAX):
            self._revive()
            world.run(world.now + DAY)
            if not any(self._waits(message.state) for message in oracle.shadow.batch.messages.values()):
                break
        self._read_all()
        self._count_segments()
        oracle.check_end()

    def _read_all(self) -> None:
        """From the log alone, in other batches than the owner's, into fresh rows: the same state."""
        world, oracle = self.world, self.oracle

        def read(process: Process) -> None:
            store = SimStore(process, oracle, self.rows)
            end = store.log.barrier()
            for _ in store.log.read(0):
                pass
            assert store.log.verify().sound, store.log.verify().findings
            store.limits = msgspec.structs.replace(store.limits, apply_batch_max=13)
            with tempfile.TemporaryDirectory(dir=self.rows) as fresh:
                replayed = store.replayed(fresh, end)
                oracle.check_digest(replayed.digest())
                replayed.close()
            stored = store.stored()
            if isinstance(stored, SqliteProjection) and stored.head().applied == end:
                oracle.check_digest(stored.digest())

        process = world.spawn("reader", read)
        while not process.ended:
            world.run(world.now + SECOND)

    def _count_segments(self) -> None:
        log = self.world.machine.root.live["log"]
        assert isinstance(log, SimDirectory)
        for name, node in log.live.items():
            if isinstance(node, SimFile) and name.endswith(".seg"):
                why = segment.decode(bytes(node.live[: segment.HEADER_BYTES]), name).why
                self.world.sometimes(f"a segment {why.name.lower()}")
            elif name.startswith("torn-"):
                self.world.sometimes("a torn tail kept aside")

    # -- what happens

    def _every(self, seconds: int, what: Callable[[], object]) -> None:
        """Again and again, on average that often; half the time just when something becomes due."""

        def happen() -> None:
            if self.quiet:
                return
            timers = [m.timer for m in self.oracle.shadow.batch.messages.values() if m.timer is not None]
            if timers and self.world.chance.random() < 0.5:
                due = min(timers) - self.world.offset + self.world.chance.randrange(3 * SECOND)
                self.world.at(max(due, self.world.now), lambda: self._unless_quiet(what))
            else:
                what()
            self._every(seconds, what)

        self.world.after(int(self.world.chance.expovariate(1 / seconds) * SECOND) + 1, happen)

    def _unless_quiet(self, what: Callable[[], object]) -> None:
        if not self.quiet:
            what()

    def _owner(self, process: Process) -> None:
        process.at_end.append(self._owner_ended)
        own(process, self.oracle, self.rows)

    def _rival(self, process: Process) -> None:
        """An owner where locks do not work: another machine's view, with rows of its own."""
        rows = self.rows / "rival"
        (rows / "projection").mkdir(parents=True, exist_ok=True)
        process.die_in = self.world.chance.randrange(50, 2_000)
        own(process, self.oracle, rows, rival=True)

    def _owner_ended(self) -> None:
        self.world.after(self.world.chance.choice((1, 5, 600, 100_000)) * SECOND, self._revive)

    def _revive(self) -> None:
        if not any(process.name == "owner" for process in self.world.processes):
            self.world.spawn("owner", self._owner)

    def _chosen(self, name: str) -> Process | None:
        return next((process for process in self.world.processes if process.name == name), None)

    def _kill_owner(self) -> None:
        owner = self._chosen("owner")
        if owner is not None:
            owner.die_in = self.world.chance.randrange(1, 200)
            self.crowd.come()
            self.crowd.race()
            owner.rung = True
            keeper = self._chosen("keeper")
            if keeper is not None and self.world.features.stops and self.world.chance.random() < 0.3:
                keeper.stopped_until = self.world.now + self.world.chance.choice((5, 60, 3_000)) * SECOND

    def _stop_owner(self) -> None:
        owner = self._chosen("owner")
        waiter = self.world.stoppable.get(owner.pid) if owner is not None else None
        if owner is not None and waiter is not None:
            waiter.stops += 1
            owner.rung = True
            self.world.sometimes("an owner asked to stop")

    def _kill_keeper(self) -> None:
        keeper = self._chosen("keeper")
        if keeper is not None:
            keeper.die_in = self.world.chance.randrange(1, 12)
            self.crowd.come()

    def _freeze(self) -> None:
        """SIGSTOP, for a while that others notice."""
        processes = self.world.processes
        if processes:
            self.crowd.come()
            frozen = processes[self.world.chance.randrange(len(processes))]
            frozen.stopped_until = self.world.now + self.world.chance.choice((1, 8, 3_000)) * SECOND
            self.world.sometimes(f"a {frozen.name} frozen")

    def _cut(self, *, reboot: bool) -> None:
        self.world.cut_soon(self.world.chance.randrange(0, 60), reboot=reboot)
        self.crowd.come()

    def _after_cut(self) -> None:
        self.oracle.beat = None
        if self.world.rebooted and self.world.chance.random() < 0.5:
            lose_rows(self.rows, back=self.world.chance.random() < 0.7)
            self.world.sometimes("rows lost or set back")
        self.world.after(self.world.chance.choice((5, 600)) * SECOND, self._revive)

    def _trouble(self) -> None:
        self.world.trouble.begin(self.world)
        self.crowd.come()

    def _fill(self) -> None:
        self.crowd.come()
        self.world.machine.room = self.world.chance.choice((0, 40, 300, 3_000))
        self.world.sometimes("the disk is nearly full")
        self.world.after(self.world.chance.choice((1, 60, 4_000)) * SECOND, self._empty)

    def _empty(self) -> None:
        self.world.machine.room = None

    def _step(self) -> None:
        seconds = self.world.chance.choice((1, 10, 3_600, 86_400))
        self.world.step_clock(self.world.chance.choice((-1, 1)) * seconds * SECOND)

    def _reader(self, what: object) -> Process:
        return self.world.spawn("reader", lambda process: what(SimStore(process, self.oracle, self.rows)))  # type: ignore[operator] # a callable that takes a store

    # -- the truth about commands

    def _began(self, request: StartRequest) -> None:
        self.oracle.begins(request.attempt_id)

    def _ending(self, _request: StartRequest) -> tuple[int, int]:
        chance = self.world.chance
        statuses, weights = zip(*_ENDINGS, strict=True)
        return chance.choices(statuses, weights)[0], chance.choice(_LENGTHS)

    @staticmethod
    def _waits(state: State) -> bool:
        return state in (State.SCHEDULED, State.RETRY_WAIT, State.PUBLISHING)


def simulate(seed: int, years: float, *, off: frozenset[str] = frozenset()) -> Report:
    """One run in a directory of its own."""
    with fast_directory() as rows:
        return Run(seed, years, rows, off=off).perform()
