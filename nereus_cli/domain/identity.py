"""Ids: which are allowed, how they are made, and how one is derived from another.

A generated id carries the instant of its making (UUID version 7 behind a reserved prefix); a chosen or
derived one carries no time and therefore never ages out by a fence.
"""

from __future__ import annotations

from hashlib import sha256

from nereus_cli.domain.instant import MILLISECOND

ID_BYTES_MAX = 128
_ALLOWED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:@=+~-")
_HEX = frozenset("0123456789abcdef")
COMMAND_PREFIX = "nc~"
MESSAGE_PREFIX = "nm~"
ATTEMPT_PREFIX = "na~"
_DERIVED_COMMAND = "dc~"
_DERIVED_MESSAGE = "dm~"
_UUID_DIGITS = 32
_RANDOM_BYTES = 10


def is_id(text: str) -> bool:
    """Whether ``text`` may name a command, a message or a key."""
    return 0 < len(text) <= ID_BYTES_MAX and text[0] != "-" and _ALLOWED.issuperset(text)


def uuid7(unix_ms: int, entropy: bytes) -> str:
    """32 hexadecimal digits of a UUID version 7; ``entropy`` is ten random bytes."""
    if len(entropy) != _RANDOM_BYTES:
        msg = "a UUID takes ten random bytes"
        raise ValueError(msg)
    tail = int.from_bytes(entropy, "big")
    random_a = tail >> 62 & 0xFFF
    random_b = tail & ((1 << 62) - 1)
    return f"{(unix_ms & (1 << 48) - 1) << 80 | 7 << 76 | random_a << 64 | 2 << 62 | random_b:032x}"


def generated_command_id(unix_ms: int, entropy: bytes) -> str:
    """A fresh command id, free of full stops."""
    return COMMAND_PREFIX + uuid7(unix_ms, entropy)


def generated_attempt_id(unix_ms: int, entropy: bytes) -> str:
    """A fresh attempt id, free of full stops."""
    return ATTEMPT_PREFIX + uuid7(unix_ms, entropy)


def is_generated(identity: str, prefix: str) -> bool:
    """Whether ``identity`` is one of ours with that prefix, and well formed."""
    digits = identity[len(prefix) :]
    return (
        identity.startswith(prefix)
        and len(digits) == _UUID_DIGITS
        and digits[12] == "7"
        and digits[16] in "89ab"
        and _HEX.issuperset(digits)
    )


def is_misformed(identity: str) -> bool:
    """Whether it uses a reserved prefix without being such an id: refused, so that no chosen id ages."""
    return any(
        identity.startswith(prefix) and not is_generated(identity, prefix)
        for prefix in (COMMAND_PREFIX, MESSAGE_PREFIX)
    )


def made_at(generated: str) -> int:
    """The instant inside a generated id, in nanoseconds since the epoch."""
    return int(generated[3:15], 16) * MILLISECOND


def command_id_for(message_id: str) -> str:
    """The command id of ``schedule --id MESSAGE_ID``: the same line is the same command."""
    if is_generated(message_id, MESSAGE_PREFIX):
        return COMMAND_PREFIX + message_id[len(MESSAGE_PREFIX) :]
    return _DERIVED_COMMAND + _digest("schedule", message_id)


def message_id_for(command_id: str) -> str:
    """The message id of ``schedule --command-id COMMAND_ID``; for a generated one it is the same UUID."""
    if is_generated(command_id, COMMAND_PREFIX):
        return MESSAGE_PREFIX + command_id[len(COMMAND_PREFIX) :]
    return _DERIVED_MESSAGE + _digest("message", command_id)


def retry_until(command_id: str, window_ns: int) -> int | None:
    """Until when a repeat of this command is recognised; None: for ever."""
    return made_at(command_id) + window_ns if is_generated(command_id, COMMAND_PREFIX) else None


def _digest(purpose: str, identity: str) -> str:
    return sha256(f"nereus.{purpose}-id/1\0{identity}".encode()).hexdigest()[:40]
