"""The small ports in memory: a clock that moves when told, a lease, and a destination that does what a table says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from nereus_cli.domain.instant import SECOND, Reading
from nereus_cli.domain.judge import Happened, judge
from nereus_cli.domain.message import Message
from nereus_cli.domain.records import Command, Outcome
from nereus_cli.ports import BusyError, CannotStartError, Start


class ManualClock:
    """A ``Clock`` that stands still. ``advance`` moves both clocks, ``step`` the wall clock alone."""

    def __init__(self, wall: int = 1_700_000_000 * SECOND, boot_id: bytes = b"manual-clock-one") -> None:
        self._wall = wall
        self._monotonic = 1_000 * SECOND
        self.boot_id = boot_id

    def read(self) -> Reading:
        return Reading(self._wall, self._wall, self._monotonic, self.boot_id)

    def sleep(self, seconds: float) -> None:
        """Time passes; nobody waits."""
        self.advance(int(seconds * SECOND))

    def advance(self, nanoseconds: int) -> None:
        """Both clocks go on, as in waking life and in suspend."""
        self._wall += nanoseconds
        self._monotonic += nanoseconds

    def step(self, nanoseconds: int) -> None:
        """Somebody set the wall clock."""
        self._wall += nanoseconds


class MemoryLease:
    """A ``Lease`` among the holders of one ``place``: any object that they share."""

    def __init__(self, place: threading.Lock, what: str = "it") -> None:
        self._place = place
        self._what = what
        self._mine = False

    def acquire(self, seconds: float = 0) -> None:
        taken = self._place.acquire(timeout=seconds) if seconds > 0 else self._place.acquire(blocking=False)
        if not taken:
            raise BusyError(f"{self._what} is held by another")
        self._mine = True

    def release(self) -> None:
        if self._mine:
            self._mine = False
            self._place.release()


class MemoryDestination:
    """A ``Destination`` whose attempts end as ``ending`` says: None means that it goes on until ``end`` or ``stop``.

    ``effects`` lists (message_id, generation, number) of every attempt that began, in order. ``remains`` is what a
    successor finds: attempts that still run, and ends that nobody took."""

    def __init__(self, ending: Callable[[Start], Happened | None], remains: Remains | None = None) -> None:
        self._ending = ending
        self._remains = Remains() if remains is None else remains
        self._ended: list[Outcome] = []
        self.effects = self._remains.effects

    def successor(self) -> MemoryDestination:
        """Another owner's destination over the same world, as after the death of this one."""
        return MemoryDestination(self._ending, self._remains)

    def materialise(self, message: Message, command: Command) -> object:
        if message.message_id in self._remains.cannot_start:
            raise CannotStartError("told so")
        return command.command_id

    def start(self, starts: Sequence[Start]) -> None:
        for start in starts:
            name = start.attempt.attempt_id
            if name in self._remains.doors:
                continue
            self._remains.doors[name] = True
            self.effects.append((start.message.message_id, start.attempt.generation, start.attempt.number))
            happened = self._ending(start)
            if happened is None:
                self._remains.running[name] = start
            else:
                self._remains.untaken[name] = outcome(start, happened)

    def recover(self, starts: Sequence[Start]) -> Sequence[Outcome]:
        found: list[Outcome] = []
        for start in starts:
            name = start.attempt.attempt_id
            if not self._remains.doors.setdefault(name, False):
                found.append(outcome(start, Happened.DOOR_CLOSED))
        return found

    def running(self) -> Sequence[str]:
        """The attempts in progress."""
        return tuple(self._remains.running)

    def refuse(self, message_id: str) -> None:
        """From now on attempts of this message cannot be materialised."""
        self._remains.cannot_start.add(message_id)

    def end(self, attempt_id: str, happened: Happened) -> None:
        """An attempt in progress ends."""
        self._remains.untaken[attempt_id] = outcome(self._remains.running.pop(attempt_id), happened)

    def pump(self) -> Sequence[Outcome]:
        ended = list(self._remains.untaken.values())
        self._remains.untaken.clear()
        return ended

    def stop(self, attempt_id: str, *, kill: bool) -> None:  # noqa: ARG002 -- the port's shape
        if attempt_id in self._remains.running:
            self.end(attempt_id, Happened.STOPPED)

    def wake_fds(self) -> tuple[Sequence[int], Sequence[int]]:
        return (), ()

    def close(self) -> None:
        """What runs goes on."""


class Remains:
    """The world behind a ``MemoryDestination``. ``doors`` maps attempts to whether they began."""

    def __init__(self) -> None:
        self.effects: list[tuple[str, int, int]] = []
        self.doors: dict[str, bool] = {}
        self.running: dict[str, Start] = {}
        self.untaken: dict[str, Outcome] = {}
        self.cannot_start: set[str] = set()


def outcome(start: Start, happened: Happened) -> Outcome:
    """The outcome that the table gives an attempt."""
    row = judge(happened)
    return Outcome(
        message_id=start.message.message_id,
        attempt_id=start.attempt.attempt_id,
        side_effect=row.side_effect,
        code=row.code,
        disposition=row.disposition,
        basis=row.basis,
    )
