"""The parts that commands are made of: when, what, how often, until when. See ``records`` for the rules of fields."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import msgspec

Pairs: TypeAlias = tuple[tuple[str, str], ...]
BytePairs: TypeAlias = tuple[tuple[bytes, bytes], ...]


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of all that is written to the log. The encoder leaves a default out by identity, so what merely equals a
    default is made the default itself: equal records are equal bytes, whoever made them and of which objects."""

    def __post_init__(self) -> None:
        for name, default in _distinct_defaults(type(self)):
            value = getattr(self, name)
            if value is not default and value == default:
                msgspec.structs.force_setattr(self, name, default)


@cache
def _distinct_defaults(kind: type[Part]) -> tuple[tuple[str, object], ...]:
    """Those defaults of which Python may hold a second, equal object."""
    fields, defaults = kind.__struct_fields__, kind.__struct_defaults__
    return tuple(
        (name, default)
        for name, default in zip(fields[len(fields) - len(defaults) :], defaults, strict=True)
        if isinstance(default, float | msgspec.Struct) or (isinstance(default, str | bytes) and default)
    )


class In(Part, frozen=True, tag="in"):
    """A delay: resolved in apply, from the instant the command was persisted."""

    text: str
    delay_ns: int


class At(Part, frozen=True, tag="at"):
    """An instant as it was typed; what it resolved to travels in the context."""

    text: str
    zone: str | None = None
    gap: str | None = None
    fold: str | None = None


class Now(Part, frozen=True, tag="now"):
    """As soon as it is persisted (run-now)."""


When: TypeAlias = In | At | Now


class Shell(Part, frozen=True, tag="shell"):
    """A command for this machine. ``script`` runs through ``sh -c`` and stands instead of ``argv``;
    ``secrets`` maps environment names to references, never to values."""

    argv: tuple[bytes, ...] = ()
    script: bytes | None = None
    cwd: bytes = b"/"
    environment: BytePairs = ()
    environment_file: bytes | None = None
    secrets: tuple[tuple[bytes, str], ...] = ()
    stdin: bytes | None = None
    ok: tuple[int, ...] = ()
    retry_on: tuple[int, ...] = ()
    fail_on: tuple[int, ...] = ()


class Webhook(Part, frozen=True, tag="webhook"):
    """A request to an address."""

    url: str
    method: str = "POST"
    headers: Pairs = ()
    header_references: Pairs = ()
    body: bytes | None = None
    allow_http: bool = False


class Named(Part, frozen=True, tag="named"):
    """A request to a destination that the log knows by name."""

    name: str
    body: bytes | None = None


Target: TypeAlias = Shell | Webhook | Named


class Policy(Part, frozen=True):
    """How often and how long; None is the target's default."""

    timeout_ns: int | None = None
    max_attempts: int | None = None
    retry_base_ns: int | None = None
    retry_max_ns: int | None = None
    retry_for_ns: int | None = None
    on_uncertain: str | None = None


class Expiry(Part, frozen=True):
    """The last instant for a new admission: ``after_ns`` counts from deliver_at, else ``at`` as typed."""

    after_ns: int | None = None
    at: At | None = None
