"""A simulated process: it runs until it calls a port, and there it may be made to wait, be refused, or die."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from greenlet import greenlet  # type: ignore[import-untyped] # it brings no types

from nereus_cli.domain.instant import SECOND
from nereus_cli.ports import BusyError, LogError, ProjectionStalledError
from nereus_cli.testing import CrashedError
from tests.sim.disk import SimDisk
from tests.sim.machine import SimFile

if TYPE_CHECKING:
    from tests.sim.world import World

EVER = 1 << 62
_CALL_NS = 2_000
_SYNC_NS = 300_000


class Process:
    """``main`` is all it does. ``die_in`` counts down the calls after which it is killed; ``stopped_until`` is the end
    of a SIGSTOP."""

    def __init__(self, world: World, pid: int, name: str, main: Callable[[Process], None]) -> None:
        self.world = world
        self.pid = pid
        self.name = name
        self.disk = SimDisk(world.machine, self)
        self.dead = False
        self.ended = False
        self.rung = False
        self.die_in: int | None = None
        self.stopped_until = 0
        self.at_end: list[Callable[[], None]] = []
        self._main = main
        self._until = 0
        self._wants: Callable[[], bool] | None = None
        self._task = greenlet(self._run, world.hub)

    # -- called by the world

    def can_run(self, now: int) -> bool:
        """Whether it would do something now."""
        if now < self.stopped_until:
            return False
        return self._wants is None or now >= self._until or self._wants()

    def wakes_at(self) -> int:
        """When it goes on by itself at the latest."""
        return max(self._until if self._wants is not None else 0, self.stopped_until)

    def resume(self) -> None:
        """Gives it its turn."""
        self._task.switch()

    # -- called by the process, through its ports

    def touch(self, name: str, *, changes: bool = False, what: int = 0, size: int = 0) -> int | None:
        """Every call of a port begins here. Returns how many bytes of a write are taken before the process dies in the
        middle of it; None: all. Raises CrashedError, or the OSError of a disk in trouble."""
        self._live()
        world = self.world
        world.steps += 1
        world.note(f"{self.pid} {name} {what}\n")
        world.now += _SYNC_NS if name.startswith("sync") else _CALL_NS
        if world.chance.random() < world.features.switching:
            self._give_way(None, 0)
        if world.cut_in is not None:
            world.cut_in -= 1
            if world.cut_in <= 0:
                self._give_way(None, 0)
        if self.die_in is not None:
            self.die_in -= 1
            if self.die_in <= 0:
                if size > 1 and world.chance.random() < 0.5:
                    return world.chance.randrange(size)
                self.die()
        number = world.trouble.strikes(world, name, changes=changes)
        if number:
            world.sometimes(
                f"{errno.errorcode[number]} from {name}" if changes else f"{errno.errorcode[number]} on a look"
            )
            raise OSError(number, os.strerror(number))
        return None

    def die(self) -> None:
        """SIGKILL, at this very call."""
        self.dead = True
        self.world.sometimes(f"a {self.name} killed")
        raise CrashedError

    def wait_until(self, wants: Callable[[], bool], seconds: float) -> None:
        """Sleeps until ``wants()`` or until the time is up."""
        self._live()
        self._give_way(wants, self.world.now + int(seconds * SECOND))

    def sleep(self, seconds: float) -> None:
        """Waits on the monotonic clock."""
        self.wait_until(lambda: False, seconds)

    def wrote(self, file: SimFile) -> None:
        """Bytes changed: those who watch the mark look again."""
        self.world.written_at = self.world.now
        if file is self.world.mark_file():
            self.world.ring()

    def _live(self) -> None:
        if self.dead:
            raise CrashedError

    def _give_way(self, wants: Callable[[], bool] | None, until: int) -> None:
        if self.world.current is not self:
            raise RuntimeError(f"{self.name} called by somebody else")
        self._wants, self._until = wants, until
        self.world.hub.switch()
        self._wants = None
        self._live()

    def _run(self) -> None:
        try:
            self._live()
            self._main(self)
        except CrashedError:
            pass
        except (OSError, LogError, ProjectionStalledError, BusyError) as error:
            if not self.dead:
                self.world.note(f"{self.pid} ends: {type(error).__name__}\n")
                self.world.trouble.judge(self.world, self, error)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the run has to stop and say it
            if not self.dead:
                self.world.failure = error
        finally:
            self.dead = self.ended = True
            self.disk.release()
            for call in self.at_end:
                call()
