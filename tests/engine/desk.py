"""An owner's desk: the engine over a log in memory, with a destination that does what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from nereus_cli.domain.instant import SECOND, Reading
from nereus_cli.domain.limits import TINY, Limits
from nereus_cli.domain.message import Message
from nereus_cli.domain.records import Command, Mutation, Outcome
from nereus_cli.engine.turns import Engine, Todo
from nereus_cli.ports import Batch, CannotStartError, DestinationAwayError, Start
from nereus_cli.projection.overlay import Overlay
from tests.domain.story import ENDS, Story


class LiveRows(Overlay):
    """A projection of a story: what was told is committed at once."""

    def commit(self, batch: Batch) -> None:
        raise AssertionError(batch)

    def close(self) -> None:
        """Nothing is held."""


class Door:
    """A destination. ``refuses`` says what materialising finds; ``decides`` what recovery knows."""

    def __init__(self) -> None:
        self.refuses: CannotStartError | DestinationAwayError | None = None
        self.decides: list[Outcome] = []
        self.materialised: list[str] = []
        self.recovered: list[Start] = []
        self.stopped: list[tuple[str, bool]] = []

    def materialise(self, message: Message, command: Command) -> object:
        self.materialised.append(message.message_id)
        if self.refuses is not None:
            raise self.refuses
        return ("work", command.command_id)

    def recover(self, starts: Sequence[Start]) -> Sequence[Outcome]:
        self.recovered += starts
        return self.decides

    def stop(self, attempt_id: str, *, kill: bool) -> None:
        self.stopped.append((attempt_id, kill))

    def start(self, starts: Sequence[Start]) -> None:
        raise AssertionError(starts)

    def pump(self) -> Sequence[Outcome]:
        return ()

    def wake_fds(self) -> tuple[Sequence[int], Sequence[int]]:
        return (), ()

    def close(self) -> None:
        """Nothing is held."""


class Desk:
    """A story, its engine, and what was started and not yet ended."""

    def __init__(self, story: Story | None = None, *, concurrency: int = 3, limits: Limits = TINY) -> None:
        self.story = story or Story(limits)
        if not self.story.head.epoch:
            self.story.own()
        self.door = Door()
        numbers = count()
        self.rows = LiveRows(None, self.story.fold.batch)
        self.engine = Engine(
            self.rows, self.door, limits, concurrency=concurrency, grace_ns=10 * SECOND,
            entropy=lambda size: next(numbers).to_bytes(size, "big"),
        )  # fmt: skip
        self.started: list[Start] = []

    def reading(self, *, width: int = 0) -> Reading:
        return Reading(self.story.now, self.story.now + width, 0, b"")

    def turn(self, *, gated: bool = False, width: int = 0) -> list[Mutation]:
        """The records the engine wants to append."""
        return list(self.engine.turn(self.reading(width=width), gated=gated))

    def append(self, records: Sequence[Mutation]) -> Todo:
        """They are durable; what comes back is looked at as one batch."""
        start = len(self.story.records)
        for record in records:
            self.story.do(record)
        return self.observe(start)

    def observe(self, start: int) -> Todo:
        """What the records from that many on did."""
        todo = self.engine.observe(self.story.applied[start:])
        self.started += todo.starts
        return todo

    def round(self) -> list[Mutation]:
        """A whole turn."""
        records = self.turn()
        self.append(records)
        return records

    def finish(self, how: str = "published") -> None:
        """All that was started ends the same way."""
        for start in self.started:
            self.engine.settle([outcome_of(start, how)])
        self.started.clear()


def outcome_of(start: Start, how: str) -> Outcome:
    return Outcome(message_id=start.message.message_id, attempt_id=start.attempt.attempt_id, **ENDS[how])
