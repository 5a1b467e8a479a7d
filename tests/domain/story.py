"""A log told step by step: each record is encoded, appended, folded at once, and kept for other ways of folding it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nereus_cli.codec import encode_command, encode_mutation, hash_stated
from nereus_cli.domain.facts import Head, Result, Verdict
from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.limits import PRODUCTION, Limits
from nereus_cli.domain.message import Attempt, Message
from nereus_cli.domain.outcome import Basis, Code, Disposition, SideEffect
from nereus_cli.domain.records import (
    Admission,
    Command,
    Context,
    In,
    Mutation,
    Outcome,
    OwnerAcquired,
    Policy,
    Schedule,
    Shell,
    Stated,
)
from nereus_cli.fold import Applied, Fold, Nothing
from nereus_cli.ports import Kind, Link, LogRecord, Start

NOW = 1_800_000_000 * SECOND
BOOT = b"boot-boot-boot-1"
SHELL = Shell(argv=(b"true",))

# What may become of an attempt, by a short name.
ENDS: dict[str, dict[str, Any]] = {
    "published": {"side_effect": SideEffect.PUBLISHED, "code": Code.EXIT_0, "disposition": Disposition.NONE},
    "retriable": {
        "side_effect": SideEffect.NOT_PUBLISHED,
        "code": Code.EXIT_NONZERO,
        "disposition": Disposition.RETRIABLE,
        "basis": Basis.REFUSED,
    },
    "permanent": {
        "side_effect": SideEffect.NOT_PUBLISHED,
        "code": Code.EXIT_NONZERO,
        "disposition": Disposition.PERMANENT,
        "basis": Basis.REFUSED,
    },
    "door": {
        "side_effect": SideEffect.NOT_PUBLISHED,
        "code": Code.DOOR_CLOSED,
        "disposition": Disposition.RETRIABLE,
        "basis": Basis.NOT_SENT,
    },
    "unknown": {"side_effect": SideEffect.UNKNOWN, "code": Code.TIMED_OUT, "disposition": Disposition.UNCERTAIN},
    "lost": {"side_effect": SideEffect.UNKNOWN, "code": Code.NO_EVIDENCE, "disposition": Disposition.UNCERTAIN},
}


def command(stated: Stated, command_id: str, **context: object) -> Command:
    """A prepared command as some process made it."""
    captured = msgspec.structs.replace(Context("anna", NOW), **context)
    return Command(command_id, hash_stated(stated), stated, captured)


def schedule(message_id: str = "m", *, policy: Mapping[str, object] | None = None, **fields: object) -> Schedule:
    """A Schedule due in ten seconds, unless told otherwise."""
    stated = Schedule(message_id, In("10s", 10 * SECOND), SHELL, msgspec.structs.replace(Policy(), **(policy or {})))
    return msgspec.structs.replace(stated, **fields)


class Story:
    """One log and its fold from the very beginning. ``now`` is every appender's wall clock."""

    def __init__(self, limits: Limits = PRODUCTION, *, now: int = NOW) -> None:
        self.limits = limits
        self.now = now
        self.boot = BOOT
        self.records: list[LogRecord] = []
        self.applied: list[Applied] = []
        self.fold = Fold(Nothing(), limits)
        self._rid = 0

    # ------------------------------------------------------------------------------------------------- telling

    def say(self, stated: Stated, command_id: str = "", **context: object) -> Result:
        """A client command and its result."""
        name = command_id or f"c{len(self.records) + 1}"
        self.tell(encode_command(command(stated, name, **context)))
        return self.fold.batch.results[name]

    def own(self, *, epoch: int | None = None, prev: int | None = None) -> Verdict:
        """A new owner."""
        head = self.fold.head
        link = self._link(head.epoch + 1 if epoch is None else epoch, head.owner_position if prev is None else prev)
        return self._verdict(self.tell(encode_mutation(OwnerAcquired("host", 7, 11, "0")), link))

    def do(self, mutation: Mutation, *, epoch: int | None = None, prev: int | None = None) -> Verdict:
        """A record of the current owner, unless told otherwise."""
        head = self.fold.head
        link = self._link(head.epoch if epoch is None else epoch, head.owner_position if prev is None else prev)
        return self._verdict(self.tell(encode_mutation(mutation), link))

    def tell(self, payload: bytes, link: Link | None = None) -> Applied:
        """Any bytes at all."""
        kind = Kind.CLIENT if link is None else Kind.OWNER
        record = LogRecord(len(self.records) + 1, kind, self.now, self.boot, self.now - NOW, link, payload)
        self.records.append(record)
        self.applied += self.fold.apply([record])
        return self.applied[-1]

    def admission(self, name: str = "m", attempt_id: str = "", **fields: object) -> Admission:
        """An admission that fits the message as it stands, once it is due."""
        message = self.message(name)
        reading = max(self.now, message.deliver_at)
        admission = Admission(
            message_id=name,
            generation=message.generation,
            attempt_id=attempt_id or f"a{len(self.records) + 1}",
            descriptor_hash=message.descriptor_hash,
            earliest=reading,
            latest=reading,
            grace_ns=10 * SECOND,
        )
        return msgspec.structs.replace(admission, **fields)

    def admit(self, name: str = "m", attempt_id: str = "") -> Attempt:
        """Waits until it is due, and admits it."""
        self.now = max(self.now, self.message(name).timer or 0)
        assert self.do(self.admission(name, attempt_id)) is Verdict.ADMITTED
        return self.message(name).open_attempts[-1]

    def end(self, how: str, name: str = "m", **fields: object) -> Message:
        """The attempt in progress ends."""
        [running] = [a for a in self.message(name).open_attempts if a.side_effect is None]
        outcome = Outcome(message_id=name, attempt_id=running.attempt_id, **ENDS[how])
        assert self.do(msgspec.structs.replace(outcome, **fields)) is Verdict.TAKEN
        return self.message(name)

    def attempt(self, how: str, name: str = "m", **fields: object) -> Message:
        """One attempt from admission to end."""
        self.admit(name)
        return self.end(how, name, **fields)

    # ------------------------------------------------------------------------------------------------- looking

    def message(self, name: str = "m") -> Message:
        return self.fold.batch.messages[name]

    @property
    def head(self) -> Head:
        return self.fold.head

    def _link(self, epoch: int, prev: int) -> Link:
        self._rid += 1
        return Link(epoch, prev, self._rid)

    @staticmethod
    def _verdict(applied: Applied) -> Verdict:
        assert applied.change.verdict is not None
        return applied.change.verdict


def told(*, policy: Mapping[str, object] | None = None, **fields: object) -> Story:
    """An owned log with one scheduled message, ``m``."""
    story = Story()
    story.own()
    story.say(msgspec.structs.replace(schedule(policy=policy), **fields), "schedule")
    return story


def publishing_start() -> Start:
    """An attempt in progress, as a destination is handed it by an owner that recovers."""
    story = told()
    attempt = story.admit()
    descriptor = story.fold.batch.descriptors[story.message().descriptor_position]
    return Start(story.message(), attempt, descriptor.command, None)
