"""What is true in a simulated world, and the invariants that hold whatever happens in it.

The oracle is told everything once: each record that any process reads as durable, each answer a client gets, each
command that really begins and how it really ends. It folds the log by itself, one record at a time, and compares.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from nereus_cli.answers import Answer
from nereus_cli.domain.facts import Result, Verdict
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import TERMINAL, Message, RetryWait, Scheduled, State
from nereus_cli.domain.outcome import Basis, Decision, SideEffect
from nereus_cli.domain.records import (
    Admission,
    Cancel,
    Command,
    Expire,
    LateHold,
    Outcome,
    OwnerAcquired,
    Replay,
    Reschedule,
    Resolve,
)
from nereus_cli.fold import Applied, Fold, Nothing, decode_record, named_message
from nereus_cli.ports import LogRecord
from nereus_cli.presence import Beat
from nereus_cli.projection.overlay import Overlay
from nereus_cli.projection.sqlite import SqliteProjection
from tests.sim.machine import SimDirectory, SimFile
from tests.sim.world import Violation, World

_FOR_EVER = 1 << 62
_DIGEST_EVERY = 1_000


class Permission(msgspec.Struct, frozen=True):
    """An attempt that the fold admitted."""

    position: int
    payload: bytes
    message_id: str
    generation: int
    action_at: int
    boot: int
    admitted_at: int


class Oracle:
    """``shadow`` is the state by the oracle's own fold, ``records`` what stands in the log."""

    def __init__(self, world: World, limits: Limits) -> None:
        self.world = world
        self.records: list[LogRecord] = []
        self.shadow = Fold(Nothing(), limits)
        self.acknowledged: dict[int, bytes] = {}
        self.asked: dict[bytes, int] = {}
        self.refused: dict[bytes, int] = {}
        self.permissions: dict[str, Permission] = {}
        self.began: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self.never: set[str] = set()
        self.settled: dict[str, SideEffect] = {}
        self.barred: dict[str, int] = {}
        self.answers: dict[str, Result] = {}
        self.beat: Beat | None = None
        self._gap: dict[int, LogRecord] = {}
        self._digested = 0

    # -- the log

    def saw(self, record: LogRecord) -> None:
        """A process read this as durable: it stands there for ever (I1)."""
        if record.position <= len(self.records):
            if self.records[record.position - 1] != record:
                raise Violation(f"I1: position {record.position} was durable and has changed")
            return
        known = self._gap.setdefault(record.position, record)
        if known != record:
            raise Violation(f"I1: position {record.position} was durable and has changed")
        while (record_ := self._gap.pop(len(self.records) + 1, None)) is not None:
            self._next(record_)

    def _next(self, record: LogRecord) -> None:
        expected = self.acknowledged.get(record.position)
        if expected is not None and expected != record.payload:
            raise Violation(f"I1: position {record.position} was acknowledged with other bytes")
        self.records.append(record)
        before = self.shadow.batch.messages.get(named_message(decode_record(record)))
        (applied,) = self.shadow.apply([record])
        self._judge(record, applied, before)

    def _judge(self, record: LogRecord, applied: Applied, before: Message | None) -> None:
        after = applied.change.message
        if applied.record is None:
            raise Violation(f"position {record.position} cannot be decoded")
        if after is not None:
            _check_life(before, after)
        match applied.record:
            case Admission() as admission if before is not None:
                self._admission(record, admission, applied, before)
            case Outcome() as outcome if applied.change.verdict is Verdict.TAKEN:
                self._outcome(outcome)
            case OwnerAcquired() if applied.change.verdict is Verdict.TAKEN:
                self.world.sometimes("an owner began")
            case Expire() | LateHold() if applied.change.verdict is Verdict.TAKEN:
                self.world.sometimes(type(applied.record).__name__)
            case Command() as command:
                self._result(command, applied.change.result)
            case _:
                if applied.change.verdict is Verdict.VOID:
                    self.world.sometimes("an owner record void")

    def _admission(self, record: LogRecord, admission: Admission, applied: Applied, before: Message) -> None:
        if applied.change.verdict is not Verdict.ADMITTED:
            self.world.sometimes(f"admission {applied.change.verdict}")
            return
        action_at = _action_at(before)
        if action_at is None or admission.earliest < action_at:
            raise Violation(f"I2: {admission.attempt_id} admitted at {admission.earliest}, due {action_at}")
        self.permissions[admission.attempt_id] = Permission(
            record.position, record.payload, before.message_id, before.generation, action_at,
            self.world.boot, record.monotonic_ns,
        )  # fmt: skip

    def _outcome(self, outcome: Outcome) -> None:
        name, truth = outcome.attempt_id, self.ended.get(outcome.attempt_id)
        first = self.settled.setdefault(name, outcome.side_effect)
        if first is not outcome.side_effect:
            raise Violation(f"I8: {name} was {first} and became {outcome.side_effect}")
        self.world.sometimes(f"outcome {outcome.code}")
        code = None if truth is None or not os.WIFEXITED(truth) else os.WEXITSTATUS(truth)
        match outcome.side_effect, outcome.basis:
            case SideEffect.PUBLISHED, _ if code != 0:
                raise Violation(f"{name} said to be published, it ended with {truth}")
            case SideEffect.NOT_PUBLISHED, Basis.NOT_SENT:
                self.never.add(name)
                if name in self.began:
                    raise Violation(f"{name} said never to have begun, and it had")
            case SideEffect.NOT_PUBLISHED, _ if code != outcome.exit_code or code in (None, 0):
                raise Violation(f"{name} said to have refused with {outcome.exit_code}, it ended with {truth}")
            case _:
                return

    def _result(self, command: Command, result: Result | None) -> None:
        first = self.answers.setdefault(command.command_id, result) if result is not None else None
        if first is not None and first != result:
            raise Violation(f"I5: {command.command_id} has another result")
        if result is None:
            self.world.sometimes("a repeat or a conflict in the log")
        elif result.reason is not None:
            self.world.sometimes(f"rejected {result.reason}")
        elif isinstance(command.stated, Resolve | Replay):
            self.world.sometimes(f"a person said {getattr(command.stated, 'verdict', 'replay')}")

    # -- what clients are told

    def asks(self, payloads: Sequence[bytes]) -> None:
        """A client is about to append these."""
        for payload in payloads:
            self.asked[payload] = self.asked.get(payload, 0) + 1

    def refuses(self, payloads: Sequence[bytes]) -> None:
        """A client was told that nothing of this call is in the log."""
        for payload in payloads:
            self.refused[payload] = self.refused.get(payload, 0) + 1

    def acknowledges(self, position: int, payload: bytes) -> None:
        """A client was told that it is durable there."""
        if self.acknowledged.setdefault(position, payload) != payload:
            raise Violation(f"position {position} was acknowledged twice")
        if position <= len(self.records) and self.records[position - 1].payload != payload:
            raise Violation(f"I1: position {position} was acknowledged, and holds something else")
        self._durable(payload, f"position {position}")

    def answers_client(self, answer: Answer) -> None:
        """A client was told APPLIED or REJECTED."""
        result = answer.result
        if result is None or answer.prepared.command.command_hash != result.command_hash:
            self.world.sometimes("a conflict was answered")
            return
        known = self.answers.get(result.command_id)
        if known is not None and known != result:
            raise Violation(f"I5: {result.command_id} was answered otherwise")
        stated = answer.prepared.command.stated
        if result.decision is Decision.APPLIED and not result.already:
            if isinstance(stated, Cancel):
                self.barred[stated.message_id] = _FOR_EVER
            elif isinstance(stated, Reschedule) and result.generation is not None:
                self.barred[stated.message_id] = max(self.barred.get(stated.message_id, 0), result.generation)

    # -- what really happens

    def begins(self, attempt_id: str) -> None:
        """A command begins, this very moment."""
        if attempt_id in self.began:
            raise Violation(f"I7: {attempt_id} began twice")
        self.began[attempt_id] = self.world.wall
        permission = self.permissions.get(attempt_id)
        if permission is None:
            raise Violation(f"I3: {attempt_id} began without an admission that was read back as admitted")
        self._durable(permission.payload, f"the admission of {attempt_id}")
        if attempt_id in self.never:
            raise Violation(f"{attempt_id} began after it was said never to")
        if permission.generation < self.barred.get(permission.message_id, 0):
            raise Violation(f"I9: {attempt_id} of generation {permission.generation} began after its end was answered")
        believed = not self.world.set_back_since(permission.boot, permission.admitted_at)
        if believed and self.world.wall < permission.action_at:
            raise Violation(f"I2: {attempt_id} began at {self.world.wall}, due {permission.action_at}")

    def ends(self, attempt_id: str, status: int) -> None:
        """A command ended."""
        self.ended[attempt_id] = status

    def _durable(self, payload: bytes, what: str) -> None:
        """Judged by the medium itself: a power cut now would leave it."""
        log = self.world.machine.root.durable.get("log")
        assert isinstance(log, SimDirectory)
        for name in sorted(log.durable, reverse=True):
            node = log.durable[name]
            if name.endswith(".seg") and isinstance(node, SimFile) and payload in node.durable:
                return
        raise Violation(f"I1: {what} is not on the medium")

    # -- comparing

    def compare(self, projection: SqliteProjection) -> None:
        """The owner has stored rows: what it changed is what the oracle has, and now and then all of it (I4)."""
        head = projection.head()
        if head.applied != len(self.records):
            return
        if head != self.shadow.head:
            raise Violation(f"I4: the heads differ at {head.applied}")
        if head.applied - self._digested >= _DIGEST_EVERY:
            self._digested = head.applied
            self.check_digest(projection.digest())

    def check_digest(self, digest: str) -> None:
        """The state as a whole, at the end of the log as far as it was seen."""
        if digest != Overlay(None, self.shadow.batch).digest():
            raise Violation(f"I4: the digests differ at {len(self.records)}")

    def check_end(self) -> None:
        """When all is quiet: everything acknowledged stands, nothing refused does, nothing due was left."""
        for position, payload in self.acknowledged.items():
            if position > len(self.records) or self.records[position - 1].payload != payload:
                raise Violation(f"I1: position {position} was acknowledged and is not there")
        stored = {record.payload for record in self.records}
        for payload, count in self.refused.items():
            if count >= self.asked[payload] and payload in stored:
                raise Violation("a command was said not to be queued, and it is")
        for message in self.shadow.batch.messages.values():
            if message.state in (State.SCHEDULED, State.RETRY_WAIT, State.PUBLISHING):
                raise Violation(f"{message.message_id} was left {message.state}")
            self._check_effects(message)

    def _check_effects(self, message: Message) -> None:
        attempts = [a for (name, _), a in self.shadow.batch.attempts.items() if name == message.message_id]
        taken = sum(self.ended.get(a.attempt_id) == 0 for a in attempts)
        judged = any(a.resolution is not None for a in attempts)
        if message.state is State.PUBLISHED and not taken and not judged:
            raise Violation(f"{message.message_id} is published, and nothing was")
        if taken > 1 and not judged and not any(a.side_effect is SideEffect.UNKNOWN for a in attempts):
            raise Violation(f"I7: {message.message_id} had {taken} effects and no uncertain attempt")
        if taken > 1:
            self.world.sometimes("two effects, one of them uncertain")


def _action_at(message: Message) -> int | None:
    """When the next attempt may begin. A retry counts from the failure: a clock set back adds nothing to it."""
    match message.waits:
        case Scheduled():
            return message.deliver_at
        case RetryWait(since=since, delay_ns=delay):
            return since + delay
        case _:
            return None


def _check_life(before: Message | None, after: Message) -> None:
    """One state, one work (I14); what is over is over."""
    state = after.state
    if state in TERMINAL and after.waits is not None:
        raise Violation(f"I14: {after.message_id} is {state} and waits")
    if before is None:
        return
    replayed = before.state is State.DEAD_LETTER and after.generation == before.generation + 1
    if before.state in TERMINAL and state is not before.state and not replayed:
        raise Violation(f"{after.message_id} was {before.state} and became {state}")
    if after.generation < before.generation or after.state_version < before.state_version:
        raise Violation(f"{after.message_id} went back to an earlier version")
