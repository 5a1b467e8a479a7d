"""Where the product touches the system without a port, and what stands there while a world runs.

A wait for the mark, the signal mask, entropy, the process id, the monotonic clock of a time-out, the keeper's files:
each is replaced in the one module that uses it, for the length of ``inside(world)``.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self
from unittest.mock import patch

from nereus_cli.destinations import keeper_decide, shell
from nereus_cli.domain.instant import SECOND
from nereus_cli.log import batch, commit, files, guard, handle, making
from tests.sim.keeper import Room, SimClient, SimEvidence
from tests.sim.process import Process

if TYPE_CHECKING:
    from nereus_cli.log.guard import Guard
    from tests.sim.world import World


class Seams:
    """The stand-ins, for the process whose turn it is."""

    def __init__(self, world: World, room: Room) -> None:
        self._world = world
        self._room = room

    def process(self) -> Process | None:
        """Whose turn it is; None: nobody's, the world itself looks."""
        return self._world.current

    def getpid(self) -> int:
        """Each process has its own."""
        process = self.process()
        return 1 if process is None else process.pid

    def urandom(self, size: int) -> bytes:
        """From the seed."""
        return self._world.chance.randbytes(size)

    def monotonic(self) -> float:
        """Seconds of the clock that counts suspend."""
        return self._world.monotonic / SECOND

    def client(self, _store: object, _boot_id: bytes) -> SimClient:
        """In place of a KeeperClient."""
        process = self.process()
        assert process is not None
        return SimClient(self._room, process)

    def evidence(self, _store: object, only: Container[str] | None = None) -> SimEvidence:
        """In place of the evidence files."""
        process = self.process()
        assert process is not None
        return SimEvidence(self._room, process, only)

    def live_evidence(self, _directory: object) -> dict[str, bool]:
        """In place of their locks."""
        self._touch("read locks")
        return {file.name: file.alive for file in self._room.files}

    def shut_door(self, _store: object, _directory: int, attempt_id: str, *, proven: bool) -> str | None:
        """In place of the symlink."""
        self._touch("shut door", changes=True)
        return self._room.shut_door(attempt_id, proven=proven)

    def _touch(self, name: str, *, changes: bool = False) -> None:
        process = self.process()
        if process is not None:
            process.touch(name, changes=changes)


class SimBell:
    """In place of the signal that rings when the mark is raised."""

    seams: Seams

    def __init__(self, _marks: int, _guard: Guard) -> None:
        self.armed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.armed = False

    def arm(self) -> None:
        """From here on no raising goes unheard."""
        self.armed = True
        process = self.seams.process()
        if process is not None:
            process.rung = False

    def wait(self, seconds: float) -> None:
        """Until it rings or the time is up."""
        process = self.seams.process()
        if process is not None:
            process.wait_until(lambda: process.rung, seconds)
            process.rung = False


@contextmanager
def inside(world: World, room: Room) -> Iterator[Seams]:
    """Everything below runs in that world."""
    seams = Seams(world, room)
    system: Any = SimpleNamespace(**vars(os))
    system.getpid, system.urandom = seams.getpid, seams.urandom
    here: Any = SimpleNamespace(**vars(os))
    here.close = lambda _fd: None
    clock = SimpleNamespace(monotonic=seams.monotonic)
    bell = type("Bell", (SimBell,), {"seams": seams})
    replaced = [
        *((module, "os", system) for module in (batch, making, handle, files)),
        (commit, "time", clock),
        (commit, "Bell", bell),
        (guard, "_in_main_thread", lambda: False),
        (shell, "time", clock),
        (shell, "KeeperClient", seams.client),
        (keeper_decide, "os", here),
        (keeper_decide, "open_store", lambda _store: -1),
        (keeper_decide, "open_keeper", lambda _store: -1),
        (keeper_decide, "live_evidence", seams.live_evidence),
        (keeper_decide, "shut_door", seams.shut_door),
        (keeper_decide, "Evidence", seams.evidence),
    ]
    with ExitStack() as stack:
        for module, name, value in replaced:
            stack.enter_context(patch.object(module, name, value))
        yield seams
