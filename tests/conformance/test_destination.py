"""The contract of a destination: real children behind a keeper, and a table in memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import pytest

from nereus_cli.clock import HostClock
from nereus_cli.destinations.shell import ShellDestination
from nereus_cli.domain.apply import apply_command
from nereus_cli.domain.facts import Facts, Head, Place
from nereus_cli.domain.judge import Happened
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.message import Attempt, Message
from nereus_cli.domain.outcome import Code, SideEffect
from nereus_cli.domain.records import Command, Outcome, Schedule, Shell
from nereus_cli.ports import CannotStartError, Destination, Start
from nereus_cli.prepare.commands import schedule
from nereus_cli.prepare.wishes import Capture, ScheduleWish, ShellWish, TimeWish
from nereus_cli.testing import MemoryDestination


class World(Protocol):
    """One place where effects happen, and the destinations of one owner after the other."""

    def owner(self) -> Destination:
        """A destination as a new owner has it."""

    def message(self, name: str, ending: Happened | None) -> tuple[Message, Command]:
        """A message whose attempts end so; None: they go on until ``let_go``."""

    def effects(self) -> Sequence[str]:
        """The messages whose attempts began, once for each time."""

    def let_go(self) -> None:
        """What went on ends well."""


def message_of(name: str, script: str, place: Path) -> tuple[Message, Command]:
    capture = Capture(now=time.time_ns(), entropy=os.urandom, environment=((b"PATH", os.environb[b"PATH"]),))
    target = ShellWish(argv=(b"sh", b"-c", script.encode()), cwd=bytes(place))
    command = schedule(
        ScheduleWish(time=TimeWish(delay="0s"), target=target, message_id=name), capture, PRODUCTION
    ).command
    message = apply_command(Facts(Head()), command, Place(1, time.time_ns()), PRODUCTION).message
    assert message is not None
    return message, command


class ShellWorld:
    """Children of a real keeper; what they do is written down by themselves."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._store = place / "store"
        (self._store / "keeper").mkdir(parents=True, mode=0o700)
        (self._store / "attempts").mkdir(mode=0o700)
        self._owners: list[ShellDestination] = []

    def owner(self) -> Destination:
        made = ShellDestination(str(self._store), PRODUCTION, HostClock().read().boot_id)
        self._owners.append(made)
        return made

    def message(self, name: str, ending: Happened | None) -> tuple[Message, Command]:
        endings = {
            Happened.EXIT_OK: "exit 0",
            Happened.EXIT_PERMANENT: "exit 64",
            Happened.SIGNALED: "kill -9 $$",
            None: "while [ ! -e go ]; do sleep 0.02; done",
        }
        return message_of(name, f"echo {name} >> effects; {endings[ending]}", self._place)

    def effects(self) -> Sequence[str]:
        file = self._place / "effects"
        return file.read_text("ascii").split() if file.exists() else []

    def let_go(self) -> None:
        (self._place / "go").touch()

    def close(self) -> None:
        self.let_go()
        for owner in self._owners:
            owner.close()


class MemoryWorld:
    """No children: a table says how attempts end."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._endings: dict[str, Happened | None] = {}
        self._first = MemoryDestination(lambda start: self._endings[start.message.message_id])
        self._latest = self._first

    def owner(self) -> Destination:
        self._latest = self._latest.successor()
        return self._latest

    def message(self, name: str, ending: Happened | None) -> tuple[Message, Command]:
        self._endings[name] = ending
        return message_of(name, "true", self._place)

    def effects(self) -> Sequence[str]:
        return [name for name, _, _ in self._first.effects]

    def let_go(self) -> None:
        for attempt_id in list(self._latest.running()):
            self._latest.end(attempt_id, Happened.EXIT_OK)

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture(params=[ShellWorld, MemoryWorld])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    tmp_path.chmod(0o700)
    made = request.param(tmp_path)
    yield made
    made.close()


def admitted(owner: Destination, message: Message, command: Command, number: int = 1) -> Start:
    """As the engine does it: materialise, then an admission that is younger than everything before it."""
    work = owner.materialise(message, command)
    now = HostClock().read()
    attempt = Attempt(
        attempt_id=f"na~{time.time_ns() // 1_000_000:012x}7{number:03x}8{os.urandom(7).hex()}0",
        number=number,
        generation=0,
        admitted_position=10 + number,
        admitted_at=now.latest,
        lateness_ns=0,
        grace_ns=1_000_000_000,
        boot_id=now.boot_id,
        admitted_monotonic_ns=now.monotonic_ns,
    )
    return Start(msgspec.structs.replace(message, open_attempts=(attempt,)), attempt, command, work)


def pumped(owner: Destination, count: int, found: Sequence[Outcome] = ()) -> list[Outcome]:
    """Pumps until that many outcomes came, and makes sure that no more come."""
    outcomes, end = list(found), time.monotonic() + 20
    while len(outcomes) < count and time.monotonic() < end:
        outcomes += owner.pump()
        time.sleep(0.01)
    outcomes += owner.pump()
    assert len(outcomes) == count
    return outcomes


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("ending", "side_effect"),
    [
        (Happened.EXIT_OK, SideEffect.PUBLISHED),
        (Happened.EXIT_PERMANENT, SideEffect.NOT_PUBLISHED),
        (Happened.SIGNALED, SideEffect.UNKNOWN),
    ],
)
def test_an_attempt_begins_once_and_its_end_comes_once(world: World, ending: Happened, side_effect: SideEffect) -> None:
    owner = world.owner()
    start = admitted(owner, *world.message("x", ending))
    owner.start([start])
    (outcome,) = pumped(owner, 1)
    assert (outcome.message_id, outcome.attempt_id) == ("x", start.attempt.attempt_id)
    assert outcome.side_effect is side_effect
    assert world.effects() == ["x"]
    owner.start([start])
    time.sleep(0.1)
    assert world.effects() == ["x"]


def test_many_attempts_of_one_batch_all_end(world: World) -> None:
    owner = world.owner()
    starts = [admitted(owner, *world.message(f"m{n}", Happened.EXIT_OK), number=n + 1) for n in range(20)]
    owner.start(starts)
    assert {outcome.message_id for outcome in pumped(owner, 20)} == {f"m{n}" for n in range(20)}
    assert sorted(world.effects()) == sorted(f"m{n}" for n in range(20))


def test_what_was_admitted_and_never_started_is_not_sent_and_never_starts(world: World) -> None:
    first = world.owner()
    start = admitted(first, *world.message("x", Happened.EXIT_OK))
    first.close()
    second = world.owner()
    (outcome,) = pumped(second, 1, second.recover([start]))
    assert (outcome.side_effect, outcome.code) == (SideEffect.NOT_PUBLISHED, Code.DOOR_CLOSED)
    second.start([start])
    time.sleep(0.1)
    assert world.effects() == []


def test_what_ended_while_nobody_looked_is_found(world: World) -> None:
    first = world.owner()
    start = admitted(first, *world.message("x", Happened.EXIT_PERMANENT))
    first.start([start])
    until(lambda: list(world.effects()) == ["x"])
    time.sleep(0.2)
    first.close()
    second = world.owner()
    (outcome,) = pumped(second, 1, second.recover([start]))
    assert outcome.side_effect is SideEffect.NOT_PUBLISHED
    assert outcome.code is Code.EXIT_NONZERO


def test_what_still_runs_is_adopted(world: World) -> None:
    first = world.owner()
    start = admitted(first, *world.message("x", None))
    first.start([start])
    until(lambda: list(world.effects()) == ["x"])
    first.close()
    second = world.owner()
    assert list(second.recover([start])) == []
    assert list(second.pump()) == []
    world.let_go()
    (outcome,) = pumped(second, 1)
    assert outcome.side_effect is SideEffect.PUBLISHED
    assert world.effects() == ["x"]


def test_what_is_stopped_is_of_unknown_effect(world: World) -> None:
    owner = world.owner()
    start = admitted(owner, *world.message("x", None))
    owner.start([start])
    until(lambda: list(world.effects()) == ["x"])
    owner.stop(start.attempt.attempt_id, kill=True)
    (outcome,) = pumped(owner, 1)
    assert (outcome.side_effect, outcome.code) == (SideEffect.UNKNOWN, Code.STOPPED)
    owner.stop(start.attempt.attempt_id, kill=True)
    owner.stop("na~nobody", kill=False)


def test_its_descriptors_can_be_waited_for(world: World) -> None:
    import select

    owner = world.owner()
    owner.start([admitted(owner, *world.message("x", Happened.EXIT_OK))])
    readable, writable = owner.wake_fds()
    if readable:
        assert select.select(readable, writable, (), 20)[0]
    assert len(pumped(owner, 1)) == 1


def test_what_cannot_begin_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    shell, memory = ShellWorld(tmp_path), MemoryWorld(tmp_path)
    message, command = shell.message("x", Happened.EXIT_OK)
    stated = command.stated
    assert isinstance(stated, Schedule)
    assert isinstance(stated.target, Shell)
    target = msgspec.structs.replace(stated.target, secrets=((b"TOKEN", "file:/nowhere/at-all"),))
    secret = msgspec.structs.replace(command, stated=msgspec.structs.replace(stated, target=target))
    with pytest.raises(CannotStartError, match="file:/nowhere/at-all"):
        shell.owner().materialise(message, secret)
    refusing = memory.owner()
    assert isinstance(refusing, MemoryDestination)
    refusing.refuse("x")
    with pytest.raises(CannotStartError):
        refusing.materialise(*memory.message("x", Happened.EXIT_OK))
    shell.close()
