"""What is known of a command after it was appended: the fold's answer, and in what a conflicting one differs."""

from __future__ import annotations

from typing import Final

import msgspec

from nereus_cli.domain.facts import Result
from nereus_cli.domain.message import Message
from nereus_cli.domain.outcome import Decision, Reason
from nereus_cli.domain.records import At, Command, In, Stated
from nereus_cli.ports import Appended
from nereus_cli.prepare.wishes import Prepared

_FLAGS: Final = {
    "expiry": "expires",
    "late_after_ns": "late-after",
    "environment_file": "env-from-file",
    "environment": "env",
    "secrets": "secret",
    "script": "shell",
    "timeout_ns": "timeout",
    "retry_base_ns": "retry-base",
    "retry_max_ns": "retry-max",
    "retry_for_ns": "retry-for",
    "message_id": "id",
}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One command and what became of it. ``result`` is None while it is only queued; ``appended`` is None when
    that is uncertain. ``message`` is how the message stands now."""

    prepared: Prepared
    appended: Appended | None = None
    result: Result | None = None
    message: Message | None = None
    reason: Reason | None = None
    differing: tuple[str, ...] = ()
    original: Command | None = None
    original_deliver_at: int | None = None

    @property
    def duplicate(self) -> bool:
        """The same command was in the log before."""
        return self.result is not None and self.reason is None and self.result.position != self._position

    @property
    def rejected(self) -> bool:
        """The fold decided against it."""
        return self.reason is not None or (self.result is not None and self.result.decision is Decision.REJECTED)

    @property
    def why(self) -> Reason | None:
        """The stable reason of a rejection."""
        return self.reason or (self.result.reason if self.result else None)

    @property
    def _position(self) -> int | None:
        return self.appended.position if self.appended else None


def conflict(prepared: Prepared, appended: Appended | None, result: Result, message: Message | None) -> Answer:
    """The id of this command already means something else."""
    return Answer(prepared=prepared, appended=appended, result=result, message=message, reason=Reason.COMMAND_CONFLICT)


def differing(mine: Stated, other: Stated) -> tuple[str, ...]:
    """Names of the flags in which two commands differ; never a value."""
    if type(mine) is not type(other):
        return ("verb",)
    names: list[str] = []
    for field in mine.__struct_fields__:
        ours, theirs = getattr(mine, field), getattr(other, field)
        if ours == theirs:
            continue
        if field == "when":
            names += _times(ours, theirs)
        elif isinstance(ours, msgspec.Struct) and type(ours) is type(theirs) and field in ("target", "policy"):
            inner = (name for name in ours.__struct_fields__ if getattr(ours, name) != getattr(theirs, name))
            names += [_FLAGS.get(name, name.replace("_", "-")) for name in inner]
        else:
            names.append(_FLAGS.get(field, field.replace("_", "-")))
    return tuple(names)


def _times(ours: object, theirs: object) -> list[str]:
    if isinstance(ours, At) and isinstance(theirs, At):
        pairs = (("text", "at"), ("zone", "tz"), ("gap", "gap"), ("fold", "fold"))
        return [flag for name, flag in pairs if getattr(ours, name) != getattr(theirs, name)]
    return ["in"] if isinstance(ours, In) and isinstance(theirs, In) else ["in/at"]
