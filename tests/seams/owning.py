"""An owner's life in the sweep of turns: a store that waits for it, what others do meanwhile, and a fresh owner."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest import mock

from nereus_cli import store as stores
from nereus_cli.codec import encode_command, encode_mutation
from nereus_cli.daemon import Orders, Parts, serve
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.instant import MILLISECOND, SECOND
from nereus_cli.domain.judge import Happened
from nereus_cli.domain.limits import TINY
from nereus_cli.domain.records import Admission, Cancel, In, OwnerAcquired, Stated
from nereus_cli.log.files import FileLog
from nereus_cli.ports import Disk, EnqueueUncertainError, NotQueuedError, OwnerHead
from nereus_cli.presence import Beat
from nereus_cli.store import Store, open_store
from nereus_cli.testing import CrashedError, Fault, FaultDisk, ManualClock, Medium
from tests.domain.story import NOW, command, schedule
from tests.seams.front import over
from tests.seams.site import Keeper, Site

STORE = "store"
IDENTITY = OwnerAcquired("here", 1, 1, "0")
OPEN = ("o1", "o2", "o3")
Event = Callable[["World"], None]


class World:
    """One machine with one store. ``acknowledged`` are the messages whose commands were said to be queued."""

    def __init__(
        self, base: Path, script: Sequence[Event], site: Site, clock: ManualClock, medium: Medium | None
    ) -> None:
        self.path = base / STORE
        self.script = list(script)
        self.site = site
        self.clock = clock
        self.medium = medium
        self.stops = 0
        self.waits = 0
        self.acknowledged: set[str] = set()
        self.said: set[str] = set()

    def append(self, name: str, stated: Stated, *faults: Fault, command_id: str = "") -> None:
        """Somebody else's command; with a fault, one that died of it."""
        disk = FaultDisk(SystemDisk(), faults=faults, medium=self.medium)
        log = FileLog(str(self.path / "log"), disk=disk, clock=self.clock, limits=TINY, watch=False, append_wait_s=0.1)
        try:
            log.append([encode_command(command(stated, command_id or f"c-{name}"))])
            self.acknowledged.add(name)
        except (CrashedError, EnqueueUncertainError):
            if not faults:
                raise
        except NotQueuedError as error:
            self.site.wrong.append(f"somebody else could not append: {error}")
        disk.forget()

    def own(self, disk: Disk, keeper: Keeper, orders: Orders) -> int:
        """An owner from its beginning to its end."""
        with self.opened(disk) as store:
            projection = store.open_projection()
            try:
                waiter, door = Waiter(self), Door()
                return serve(
                    Parts(store, projection, keeper, waiter, door, self._heard, IDENTITY, random.Random(1).randbytes),  # type: ignore[arg-type] # stand-ins
                    orders,
                )
            finally:
                projection.close()

    @contextlib.contextmanager
    def opened(self, disk: Disk | None = None) -> Iterator[Store]:
        """The store on this disk and by this clock."""
        with over(disk), mock.patch.object(stores, "HostClock", return_value=self.clock):
            store = open_store(str(self.path), limits=TINY)
            with store:
                yield store

    def catch_up(self) -> None:
        """What is left of the script, at once."""
        while self.script:
            self.next_event()

    def next_event(self) -> None:
        """Over when it has happened: commands may be said again."""
        self.script[0](self)
        self.script.pop(0)

    def _heard(self, event: str, _facts: object) -> None:
        self.said.add(event)


class Waiter:
    """Time passes while an owner waits, and others act."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def stops(self) -> int:
        return self._world.stops

    def wait(self, nanoseconds: int, _readable: Sequence[int], _writable: Sequence[int]) -> None:
        """The next event, every time."""
        world = self._world
        world.waits += 1
        if world.waits > len(SCRIPT) + 12:
            world.stops = 2
        if world.script:
            world.next_event()
        world.clock.advance(max(nanoseconds, MILLISECOND))


class Door:
    """Nobody asks."""

    def answer(self) -> None:
        """Nobody is there."""

    def fileno(self) -> int:
        return -1

    def beat(self, beat: Beat) -> None:
        """Nobody looks."""


def _now(world: World) -> None:
    world.append("w", schedule("w", when=In("0s", 0)))


def _left(world: World) -> None:
    """A writer dies between its write and its sync."""
    world.append("left", schedule("left", when=In("0s", 0)), Fault(at=1, only="sync_data"))
    world.acknowledged.discard("left")


def _stepped(world: World) -> None:
    world.clock.step(20 * SECOND)


def _canceled(world: World) -> None:
    world.append("n", Cancel("n"), command_id="cancel-n")


def _quiet(_world: World) -> None:
    """Nothing happens."""


def _stopped(world: World) -> None:
    world.stops += 1


SCRIPT: tuple[Event, ...] = (
    _quiet, _now, _canceled, _quiet, _stepped, _quiet, _quiet, _left, _quiet, _quiet, _quiet, _quiet, _stopped,
)  # fmt: skip
EXPECTED = ("a", "b", "r", "w", *OPEN)
"""What is published in the end, once each; ``n`` is cancelled, and ``left`` may never have been."""


def begun(base: Path) -> tuple[Site, ManualClock]:
    """Makes the store at ``base``: messages that are due, one that needs two attempts, and three that an earlier owner
    had admitted when it died: one not begun, one that runs, one that has ended."""
    clock, site = ManualClock(NOW), Site()
    world = World(base, (), site, clock, None)
    with mock.patch.object(stores, "HostClock", return_value=clock):
        open_store(str(world.path), create=True, limits=TINY).close()
    now, later = In("0s", 0), In("1h", 3_600 * SECOND)
    for name in ("a", *OPEN):
        world.append(name, schedule(name, when=now))
    world.append("r", schedule("r", when=now, policy={"max_attempts": 2, "retry_base_ns": 1, "on_uncertain": "wait"}))
    world.append("b", schedule("b", when=In("2s", 2 * SECOND)))
    world.append("n", schedule("n", when=later))
    _admitted(world)
    site.doors = {"attempt-o2": True, "attempt-o3": True}
    site.ended = {"attempt-o3": Happened.EXIT_OK}
    site.taken["o3"] = 1
    return site, clock


def _admitted(world: World) -> None:
    with world.opened() as store:
        messages = store.view().messages(OPEN)
        writer = store.log.claim(OwnerHead(0, 0), encode_mutation(IDENTITY))
        now = world.clock.read().latest
        writer.append(
            [
                encode_mutation(
                    Admission(name, 0, f"attempt-{name}", messages[name].descriptor_hash, earliest=now, latest=now)
                )
                for name in OPEN
            ]
        )
