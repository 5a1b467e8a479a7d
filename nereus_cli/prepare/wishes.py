"""What people may wish for, still as they typed it, and what a process knows of itself."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nereus_cli.domain.outcome import Reason
from nereus_cli.domain.records import BytePairs, Command, Permission
from nereus_cli.wish.refusal import Refusal


class WishError(Exception):
    """A wish that cannot become a command: ``field`` names the flag, ``reason`` is set when it is a refusal with
    a stable reason and not a matter of usage."""

    def __init__(
        self, message: str, *, field: str = "", reason: Reason | None = None, refusal: Refusal | None = None
    ) -> None:
        """``refusal`` carries the candidates of a time that was ambiguous."""
        super().__init__(message)
        self.field = field
        self.reason = reason
        self.refusal = refusal


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """What a process knows of itself. ``now`` is its wall clock; ``entropy(n)`` gives n random bytes."""

    now: int
    entropy: Callable[[int], bytes]
    requested_by: str = ""
    host: str = ""
    cwd: bytes = b"/"
    environment: BytePairs = ()
    umask: int = 0o022
    traceparent: str = ""
    decision: Permission | None = None


class TimeWish(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly one of ``delay`` and ``at``, as typed."""

    delay: str | None = None
    at: str | None = None
    zone: str | None = None
    gap: str | None = None
    fold: str | None = None
    expires_after: str | None = None
    expires_at: str | None = None
    allow_past: bool = False


class ShellWish(msgspec.Struct, frozen=True, kw_only=True):
    """A command vector or a script, and what surrounds it; exit codes as typed (``0,3,10-12``)."""

    argv: tuple[bytes, ...] = ()
    script: bytes | None = None
    cwd: bytes | None = None
    environment: tuple[bytes, ...] = ()
    environment_file: bytes | None = None
    secrets: tuple[str, ...] = ()
    stdin: bytes | None = None
    ok: str = ""
    retry_on: str = ""
    fail_on: str = ""


class ScheduleWish(msgspec.Struct, frozen=True, kw_only=True):
    """Everything ``schedule`` takes, still as text."""

    time: TimeWish
    target: ShellWish
    message_id: str | None = None
    command_id: str | None = None
    key: str | None = None
    priority: int = 0
    tags: tuple[str, ...] = ()
    if_late: str | None = None
    late_after: str | None = None
    timeout: str | None = None
    max_attempts: int | None = None
    retry_base: str | None = None
    retry_max: str | None = None
    retry_for: str | None = None
    on_uncertain: str | None = None
    reason: str = ""
    correlation: str = ""


class ControlWish(msgspec.Struct, frozen=True, kw_only=True):
    """What the verbs that move one message take."""

    message_id: str
    command_id: str | None = None
    if_version: int | None = None
    reason: str = ""
    time: TimeWish = TimeWish()


class ResolveWish(ControlWish, frozen=True, kw_only=True):
    """A verdict on one attempt; ``attempt`` None is the message itself, and ``by`` None whoever asks."""

    attempt: int | None
    verdict: str
    evidence: str
    by: str | None = None


class ReplayWish(ControlWish, frozen=True, kw_only=True):
    """A dead letter once more; without a time at once."""

    accept_duplicate: bool = False
    new_key: bool = False


class Prepared(msgspec.Struct, frozen=True):
    """A command whose every physical retry sends ``payload``. ``fresh``: its ids were generated just now, so it
    cannot be a repeat."""

    command: Command
    payload: bytes
    fresh: bool = False
