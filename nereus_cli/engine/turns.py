"""Turn by turn: from what is due to the records to append, and from what was read back to what may be done.

The order, which no code path may break (design §9): ``turn`` claims in memory and materialises; the daemon
appends the records durably; ``observe`` sees them come back from the log and hands out exactly those attempts
that the fold ADMITTED (I3); ``settle`` queues what became of them for the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from nereus_cli.domain import judge
from nereus_cli.domain.facts import Verdict
from nereus_cli.domain.identity import generated_attempt_id
from nereus_cli.domain.instant import MILLISECOND, SECOND, Reading
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import Attempt, Message
from nereus_cli.domain.plan import Admit, HoldLate, LetExpire, choose
from nereus_cli.domain.records import Admission, Command, Expire, LateHold, Mutation, Outcome, Stop
from nereus_cli.engine.timeline import Timeline
from nereus_cli.fold import Applied
from nereus_cli.ports import CannotStartError, Destination, DestinationAwayError, Projection, Start


class Claim(msgspec.Struct, frozen=True):
    """The owner's reversible reservation: in memory, until the admission is read back. ``failure`` is set when
    materialising found that the attempt cannot begin."""

    command: Command
    work: object
    failure: CannotStartError | None


class Todo(msgspec.Struct, frozen=True):
    """What the log now permits or asks: attempts to start, attempts to end."""

    starts: tuple[Start, ...]
    stops: tuple[tuple[str, bool], ...]


class Engine:
    """The owner's decisions. Talks to ports only; performs nothing. ``away`` is why nothing is admitted, or empty."""

    def __init__(
        self,
        projection: Projection,
        destination: Destination,
        limits: Limits,
        *,
        concurrency: int,
        grace_ns: int,
        entropy: Callable[[int], bytes],
    ) -> None:
        """``concurrency`` attempts at most are in progress; ``grace_ns`` is recorded with each."""
        self._projection = projection
        self._destination = destination
        self._limits = limits
        self._concurrency = concurrency
        self._grace_ns = grace_ns
        self._entropy = entropy
        self._timeline = Timeline(limits.window_messages_max)
        self._claims: dict[str, Claim] = {}
        self._running: dict[str, str] = {}
        self._outcomes: list[Outcome] = []
        self._away_until = 0
        self.admitting = True
        self.away = ""

    @property
    def running(self) -> int:
        """Attempts admitted and not settled."""
        return len(self._running)

    @property
    def idle(self) -> bool:
        """Nothing is in progress and nothing waits to be written."""
        return not (self._running or self._claims or self._outcomes)

    def recover(self) -> None:
        """Once, behind the start-up barrier: what an earlier owner left in progress is decided or adopted."""
        starts = []
        for message in self._projection.open_messages():
            starts += [self._restart(message, a) for a in message.open_attempts if a.side_effect is None]
        for start in starts:
            self._running[start.attempt.attempt_id] = start.message.message_id
        self.settle(self._destination.recover(starts))
        for start in starts:
            if start.attempt.kill:
                self._destination.stop(start.attempt.attempt_id, kill=True)

    def turn(self, reading: Reading, *, gated: bool = False) -> Sequence[Mutation]:
        """Records to append in one batch: outcomes first, then what is due, as far as there is room. While the
        clock is gated nothing is admitted and nothing expires."""
        records: list[Mutation] = [*self._outcomes]
        self._outcomes = []
        if self.admitting and not gated:
            records += self._due(reading)
        return records

    def observe(self, applied: Iterable[Applied]) -> Todo:
        """Looks at what was applied: timers that changed, attempts that may start, attempts to be ended."""
        starts, stops = [], []
        for item in applied:
            message = item.change.message
            if message is not None:
                self._timeline.learn(message)
            if isinstance(item.record, Admission):
                start = self._admitted(item.record, message, item.change.verdict)
                if start is not None:
                    starts.append(start)
            elif isinstance(item.record, Outcome):
                self._running.pop(item.record.attempt_id, None)
            elif message is not None and isinstance(item.record, Command) and isinstance(item.record.stated, Stop):
                stops += _stops(message, item.record.stated)
        return Todo(tuple(starts), tuple(stops))

    def abandon(self, records: Iterable[Mutation]) -> None:
        """The log took none of these: claims end, outcomes stay to be written, what was due is looked at again."""
        for record in records:
            if isinstance(record, Outcome):
                self._outcomes.append(record)
            elif isinstance(record, Admission):
                self._claims.pop(record.attempt_id, None)
        self._timeline = Timeline(self._limits.window_messages_max)

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """Queues what became of attempts for the next turn."""
        self._outcomes += outcomes

    def next_wake(self, now: int) -> int:
        """The wall instant at which a turn may have something to do; ``now`` if it has already. Without room for
        another attempt no timer matters: the end of one that runs rings by itself."""
        if self._outcomes:
            return now
        if not self.admitting or self.away or self._room() <= 0:
            return now + SECOND
        self._timeline.refill(now, self._projection)
        return self._timeline.next_timer()

    def _due(self, reading: Reading) -> list[Mutation]:
        room = self._room()
        if room <= 0 or reading.monotonic_ns < self._away_until:
            return []
        self.away = ""
        self._timeline.refill(reading.earliest, self._projection)
        ids = self._timeline.take(reading.earliest, room)
        messages = self._projection.messages(ids)
        plan = choose((message for message in messages.values() if message.timer is not None), reading, room)
        for message in plan.waiting:
            self._timeline.put_back(message)
        decided = [self._decided(decision, reading) for decision in plan.decisions]
        return [record for record in decided if record is not None]

    def _room(self) -> int:
        free = self._concurrency - len(self._running) - len(self._claims)
        return min(free, self._limits.turn_admissions_max)

    def _decided(self, decision: Admit | LetExpire | HoldLate, reading: Reading) -> Mutation | None:
        message = decision.message
        match decision:
            case LetExpire():
                return Expire(message.message_id, message.generation, reading.earliest)
            case HoldLate():
                return LateHold(message.message_id, message.generation, reading.earliest)
            case Admit():
                return self._claimed(message, reading)

    def _claimed(self, message: Message, reading: Reading) -> Admission | None:
        """None while the destination is away: the message waits as it is, and is looked at again in a second."""
        if not self.away:
            try:
                return self._claim(message, reading)
            except DestinationAwayError as error:
                self.away = str(error) or "the destination is away"
                self._away_until = reading.monotonic_ns + SECOND
        self._timeline.put_back(message)
        return None

    def _claim(self, message: Message, reading: Reading) -> Admission:
        attempt_id = generated_attempt_id(reading.latest // MILLISECOND, self._entropy(10))
        command = self._command(message)
        work, failure = None, None
        try:
            work = self._destination.materialise(message, command)
        except CannotStartError as error:
            failure = error
        self._claims[attempt_id] = Claim(command, work, failure)
        return Admission(
            message_id=message.message_id,
            generation=message.generation,
            attempt_id=attempt_id,
            descriptor_hash=message.descriptor_hash,
            earliest=reading.earliest,
            latest=reading.latest,
            grace_ns=self._grace_ns,
        )

    def _admitted(self, admission: Admission, message: Message | None, verdict: Verdict | None) -> Start | None:
        """The start of an attempt that this owner claimed and the fold admitted; a stale claim just ends."""
        claim = self._claims.pop(admission.attempt_id, None)
        if claim is None or message is None or verdict is not Verdict.ADMITTED:
            return None
        attempt = next(a for a in message.open_attempts if a.attempt_id == admission.attempt_id)
        self._running[attempt.attempt_id] = message.message_id
        if claim.failure is not None:
            self.settle([_not_started(message, attempt, claim.failure)])
            return None
        return Start(message, attempt, claim.command, claim.work)

    def _restart(self, message: Message, attempt: Attempt) -> Start:
        return Start(message, attempt, self._command(message), None)

    def _command(self, message: Message) -> Command:
        descriptor = self._projection.descriptor(message.descriptor_position)
        if descriptor is None:
            msg = f"the projection has no descriptor at {message.descriptor_position}"
            raise LookupError(msg)
        return descriptor.command


def _stops(message: Message, stop: Stop) -> list[tuple[str, bool]]:
    if not stop.kill:
        return []
    return [(a.attempt_id, True) for a in message.open_attempts if a.side_effect is None]


def _not_started(message: Message, attempt: Attempt, failure: CannotStartError) -> Outcome:
    happened = judge.Happened.NOT_STARTABLE if failure.permanent else judge.Happened.NO_RESOURCES
    row = judge.judge(happened)
    return Outcome(
        message_id=message.message_id,
        attempt_id=attempt.attempt_id,
        side_effect=row.side_effect,
        code=row.code,
        disposition=row.disposition,
        basis=row.basis,
        errno=failure.errno or None,
        detail=failure.detail,
    )
