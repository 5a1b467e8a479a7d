"""What a client command is answered: one result each, applied or rejected for a stable reason."""

from __future__ import annotations

from nereus_cli.domain.facts import Change, Descriptor, Facts, History, Place, Result
from nereus_cli.domain.message import Attempt, Message
from nereus_cli.domain.outcome import Decision, Reason
from nereus_cli.domain.records import Command, Replay, Reschedule, Schedule, Stated


class Refused(Exception):  # noqa: N818 -- a value that unwinds one decision, not an error
    """Carries the stable reason to the one place that makes it a result."""

    def __init__(self, reason: Reason) -> None:
        """``reason`` is what the person is told."""
        super().__init__(reason)
        self.reason = reason


def applied(  # noqa: PLR0913 -- each is a part of the change, most have a default
    facts: Facts,
    command: Command,
    place: Place,
    message: Message,
    *,
    event: str,
    already: bool = False,
    carries: bool = False,
    detail: str | None = None,
    attempts: tuple[Attempt, ...] = (),
) -> Change:
    """The change of a command that took effect, or found things so already. ``carries``: it says what is delivered."""
    names_time = isinstance(command.stated, Schedule | Reschedule | Replay)
    result = Result(
        command_id=command.command_id,
        command_hash=command.command_hash,
        position=place.position,
        persisted_at=place.persisted_at,
        message_id=message.message_id,
        decision=Decision.APPLIED,
        already=already,
        generation=message.generation,
        state_version=message.state_version,
        deliver_at=message.deliver_at if names_time else None,
    )
    return Change(
        facts.head,
        message=None if already else message,
        result=result,
        history=None if already else _line(message, place, event, detail or command.context.reason),
        descriptor=Descriptor(place.position, message.message_id, command) if carries else None,
        attempts=attempts,
    )


def _line(message: Message, place: Place, event: str, detail: str) -> History:
    return History(message.message_id, place.position, place.persisted_at, event, message.generation, detail)


def target_message(stated: Stated) -> str:
    """The message a command names, or the empty string."""
    return getattr(stated, "message_id", "")


def rejected(facts: Facts, command: Command, place: Place, reason: Reason) -> Change:
    """The change of a command that was refused: its result, and nothing else."""
    message = facts.message
    too_late = reason.value.startswith("TOO_LATE") and message is not None
    result = Result(
        command_id=command.command_id,
        command_hash=command.command_hash,
        position=place.position,
        persisted_at=place.persisted_at,
        message_id=target_message(command.stated),
        decision=Decision.REJECTED,
        reason=reason,
        generation=message.generation if message else None,
        state_version=message.state_version if message else None,
        attempt=message.last_attempt if too_late and message else None,
    )
    return Change(facts.head, result=result)
