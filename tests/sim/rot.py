"""Bits that change by themselves in what was durable, and the demand that nobody overlooks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nereus_cli.domain.instant import SECOND
from nereus_cli.ports import CorruptLogError
from tests.sim.machine import SimDirectory, SimFile
from tests.sim.world import Violation, World

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.store import SimStore


class Rot:
    """One byte of one segment at a time, put right again after somebody has looked."""

    def __init__(self, world: World) -> None:
        self._world = world

    def harm(self, spawn: Callable[[Callable[[SimStore], None]], Process]) -> None:
        """Changes a byte below the oldest end of what is durable, and has the log verified."""
        world = self._world
        log = world.machine.root.durable.get("log")
        names = sorted(name for name in log.durable if name.endswith(".seg")) if isinstance(log, SimDirectory) else []
        # The newest segment's end may be behind every proof; older ones are durable to the last byte.
        if world.trouble.rotten or len(names) < 2 or not isinstance(log, SimDirectory):
            return
        file = log.durable[names[world.chance.randrange(len(names) - 1)]]
        if not isinstance(file, SimFile) or file.live != file.durable:
            return
        at, bit = world.chance.randrange(len(file.live)), 1 << world.chance.randrange(8)
        self._flip(file, at, bit)
        world.trouble.rotten = True

        def look(store: SimStore) -> None:
            sound = store.log.verify().sound
            if not sound:
                world.sometimes("damage was reported")
                return
            try:
                found = sum(1 for _ in store.log.read(0))
            except CorruptLogError:
                raise Violation("I13: damage that reading meets was not found by verify") from None
            world.sometimes("damage where nothing is kept")
            if found < store.log.bounds().durable:
                raise Violation("I13: records are missing, and nobody says so")

        def heal() -> None:
            self._flip(file, at, bit)
            world.trouble.rotten = False

        process = spawn(look)
        process.at_end.append(heal)
        process.stopped_until = world.now + world.chance.choice((0, 5)) * SECOND

    @staticmethod
    def _flip(file: SimFile, at: int, bit: int) -> None:
        file.live[at] ^= bit
        file.durable[at] ^= bit
