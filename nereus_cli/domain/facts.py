"""What apply is told and what it answers: facts in, one change out. The projection stores exactly this."""

from __future__ import annotations

import enum

import msgspec

from nereus_cli.domain.message import Attempt, Message
from nereus_cli.domain.outcome import Decision, Reason
from nereus_cli.domain.records import Command


class Verdict(enum.StrEnum):
    """What the fold said to an owner record."""

    TAKEN = "TAKEN"
    ADMITTED = "ADMITTED"
    STALE = "STALE"
    VOID = "VOID"


class Place(msgspec.Struct, frozen=True):
    """Where a record stands, and both clocks of its appender: the wall, and the one that counts suspend in that
    boot."""

    position: int
    persisted_at: int
    boot_id: bytes = b""
    monotonic_ns: int = 0


class OwnerFact(msgspec.Struct, frozen=True, array_like=True):
    """Who acquired the current epoch, where, and when."""

    position: int
    epoch: int
    since: int
    host: str
    pid: int
    inode: int
    boot_id: bytes


class Head(msgspec.Struct, frozen=True, array_like=True):
    """What the fold knows beside messages and results. ``owner_position`` is the end of the owner chain,
    ``fence`` the newest time fence; ``quarantined`` counts records that could not be decoded and
    ``quarantined_first`` names the earliest of them."""

    applied: int = 0
    epoch: int = 0
    owner_position: int = 0
    owner: OwnerFact | None = None
    fence: int = 0
    quarantined: int = 0
    quarantined_first: int | None = None
    clock_steps: int = 0
    clock_step: tuple[int, int, int] | None = None


class Result(msgspec.Struct, frozen=True, array_like=True):
    """The one result of a command. ``attempt`` is (id, number) of the attempt that made it too late."""

    command_id: str
    command_hash: bytes
    position: int
    persisted_at: int
    message_id: str
    decision: Decision
    reason: Reason | None = None
    already: bool = False
    generation: int | None = None
    state_version: int | None = None
    deliver_at: int | None = None
    attempt: tuple[str, int] | None = None


class History(msgspec.Struct, frozen=True, array_like=True):
    """One line of a message's history. ``detail`` is for people: a reason, a verdict, an instant."""

    message_id: str
    position: int
    persisted_at: int
    event: str
    generation: int
    detail: str = ""


class Descriptor(msgspec.Struct, frozen=True, array_like=True):
    """The command that says what a message delivers: stored once, fetched when it is needed."""

    position: int
    message_id: str
    command: Command


class Facts(msgspec.Struct, frozen=True):
    """All that apply may know about one record: fetched before, never read during."""

    head: Head
    result: Result | None = None
    message: Message | None = None


class Change(msgspec.Struct, frozen=True):
    """All that one record changes. ``attempts`` are rows that are new or changed."""

    head: Head
    message: Message | None = None
    result: Result | None = None
    history: History | None = None
    descriptor: Descriptor | None = None
    attempts: tuple[Attempt, ...] = ()
    verdict: Verdict | None = None
