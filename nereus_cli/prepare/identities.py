"""Which ids a command gets: chosen, derived from the other one, or generated."""

from __future__ import annotations

from nereus_cli.domain import identity
from nereus_cli.prepare.wishes import Capture, ControlWish, WishError


def identities(command_id: str | None, message_id: str | None, capture: Capture) -> tuple[str, str, bool]:
    """Either gives the other; neither: both are generated."""
    command_id = checked_id(command_id, "command-id")
    message_id = checked_id(message_id, "id")
    fresh = command_id is None and message_id is None
    if command_id is None:
        command_id = generate(capture) if message_id is None else identity.command_id_for(message_id)
    return command_id, message_id or identity.message_id_for(command_id), fresh


def control_identity(wish: ControlWish, capture: Capture) -> tuple[str, bool]:
    """The command id of a verb that moves one message, and whether it was generated just now."""
    command_id = checked_id(wish.command_id, "command-id")
    return (command_id, False) if command_id else (generate(capture), True)


def generate(capture: Capture) -> str:
    """A fresh command id from the clock reading and ten random bytes."""
    return identity.generated_command_id(capture.now // 1_000_000, capture.entropy(10))


def message(wish: ControlWish) -> str:
    """The message a verb names, checked."""
    checked = checked_id(wish.message_id, "id")
    return checked or ""


def checked_id(text: str | None, field: str) -> str | None:
    """``text`` if it may be an id or is None; ``field`` names the flag in the refusal."""
    if text is None:
        return None
    if not identity.is_id(text):
        msg = f"{field}: use 1 to 128 of A-Z a-z 0-9 _ : @ = + ~ -, not starting with -"
        raise WishError(msg, field=field)
    if identity.is_misformed(text):
        msg = f"{field}: ids beginning with {text[:3]} are reserved for generated ones"
        raise WishError(msg, field=field)
    return text
