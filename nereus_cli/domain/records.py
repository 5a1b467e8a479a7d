"""The closed union of everything that may stand in the log.

Client commands say what people ask; system mutations say what the owner decides. A command has a *stated*
part, which is hashed, and a *context*, of which the first capture wins and which is not hashed.
A field is only ever added, with a default; a default that was not stated is not written and so not hashed.
Durations are nanoseconds, instants nanoseconds since the epoch; bytes are bytes, whatever they spell.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from nereus_cli.domain.outcome import Basis, Code, Disposition, SideEffect

Pairs: TypeAlias = tuple[tuple[str, str], ...]
BytePairs: TypeAlias = tuple[tuple[bytes, bytes], ...]


# ------------------------------------------------------------------------------------------- what was stated


class In(msgspec.Struct, frozen=True, omit_defaults=True, tag="in"):
    """A delay: resolved in apply, from the instant the command was persisted."""

    text: str
    delay_ns: int


class At(msgspec.Struct, frozen=True, omit_defaults=True, tag="at"):
    """An instant as it was typed; what it resolved to travels in the context."""

    text: str
    zone: str | None = None
    gap: str | None = None
    fold: str | None = None


class Now(msgspec.Struct, frozen=True, omit_defaults=True, tag="now"):
    """As soon as it is persisted (run-now)."""


When: TypeAlias = In | At | Now


class Shell(msgspec.Struct, frozen=True, omit_defaults=True, tag="shell"):
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


class Webhook(msgspec.Struct, frozen=True, omit_defaults=True, tag="webhook"):
    """A request to an address."""

    url: str
    method: str = "POST"
    headers: Pairs = ()
    header_references: Pairs = ()
    body: bytes | None = None
    allow_http: bool = False


class Named(msgspec.Struct, frozen=True, omit_defaults=True, tag="named"):
    """A request to a destination that the log knows by name."""

    name: str
    body: bytes | None = None


Target: TypeAlias = Shell | Webhook | Named


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often and how long; None is the target's default."""

    timeout_ns: int | None = None
    max_attempts: int | None = None
    retry_base_ns: int | None = None
    retry_max_ns: int | None = None
    retry_for_ns: int | None = None
    on_uncertain: str | None = None


class Expiry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last instant for a new admission: ``after_ns`` counts from deliver_at, else ``at`` as typed."""

    after_ns: int | None = None
    at: At | None = None


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True, tag="schedule"):
    """Do this later."""

    message_id: str
    when: When
    target: Target
    policy: Policy = Policy()
    key: str | None = None
    priority: int = 0
    tags: Pairs = ()
    expiry: Expiry = Expiry()
    late_after_ns: int | None = None
    allow_past: bool = False


class Cancel(msgspec.Struct, frozen=True, omit_defaults=True, tag="cancel"):
    """Not at all."""

    message_id: str
    if_version: int | None = None


class Reschedule(msgspec.Struct, frozen=True, omit_defaults=True, tag="reschedule"):
    """At another time, as a new generation; with ``target`` also something else (edit)."""

    message_id: str
    when: When
    if_version: int | None = None
    expiry: Expiry = Expiry()
    allow_past: bool = False
    target: Target | None = None
    policy: Policy | None = None


class Hold(msgspec.Struct, frozen=True, omit_defaults=True, tag="hold"):
    """Not before somebody says so."""

    message_id: str
    if_version: int | None = None


class Release(msgspec.Struct, frozen=True, omit_defaults=True, tag="release"):
    """Go on where it was held."""

    message_id: str
    if_version: int | None = None


class Stop(msgspec.Struct, frozen=True, omit_defaults=True, tag="stop"):
    """No further attempt; with ``kill`` the one in progress is ended too."""

    message_id: str
    if_version: int | None = None
    kill: bool = False


class Resolve(msgspec.Struct, frozen=True, omit_defaults=True, tag="resolve"):
    """A named person's verdict on one attempt whose effect is unknown."""

    message_id: str
    attempt: int
    verdict: str
    evidence: str
    by: str = ""
    if_version: int | None = None


class Replay(msgspec.Struct, frozen=True, omit_defaults=True, tag="replay"):
    """A dead letter once more, as a new generation."""

    message_id: str
    when: When = Now()
    accept_duplicate: bool = False
    new_key: bool = False
    if_version: int | None = None


class LaneControl(msgspec.Struct, frozen=True, omit_defaults=True, tag="lane"):
    """Pause, resume or close a lane."""

    lane: str
    action: str
    until: At | None = None


class Destination(msgspec.Struct, frozen=True, omit_defaults=True, tag="destination"):
    """Add or retire a named destination version."""

    name: str
    action: str
    settings: Pairs = ()


class ClockTrust(msgspec.Struct, frozen=True, omit_defaults=True, tag="clock-trust"):
    """A person vouches for the clock as it stands."""

    evidence: str


MessageCommand: TypeAlias = Cancel | Reschedule | Hold | Release | Stop | Resolve | Replay
Stated: TypeAlias = Schedule | MessageCommand | LaneControl | Destination | ClockTrust


# ---------------------------------------------------------------------------------------- what was captured


class Permission(msgspec.Struct, frozen=True, omit_defaults=True):
    """What allowed the command, as found when it was prepared for a store."""

    rule: str
    uid: int
    sudo_uid: int | None = None
    store_mode: int | None = None


class Context(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who, when, where; and what stated words resolved to at preparation. Not hashed: first capture wins."""

    requested_by: str
    requested_at: int
    host: str = ""
    reason: str = ""
    correlation: str = ""
    traceparent: str = ""
    decision: Permission | None = None
    environment: BytePairs = ()
    umask: int = 0o022
    instant: int | None = None
    expiry_instant: int | None = None
    zone_rule: str = ""
    zone_data: str = ""


class Command(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prepared command: its ids and bytes are fixed before any input or output."""

    command_id: str
    command_hash: bytes
    stated: Stated
    context: Context


# ------------------------------------------------------------------------------------------ what owners decide


class OwnerAcquired(msgspec.Struct, frozen=True, omit_defaults=True, tag="owner"):
    """A new epoch begins. ``inode`` is that of the store directory, so that a copy can be told."""

    host: str
    pid: int
    inode: int
    version: str


class Admission(msgspec.Struct, frozen=True, omit_defaults=True, tag="admission"):
    """Permission for one exact attempt, once it is read back as admitted: the point of no return."""

    message_id: str
    generation: int
    attempt_id: str
    descriptor_hash: bytes
    earliest: int
    latest: int
    clock_mode: str = "host"
    grace_ns: int = 0
    destination_version: int = 0


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a child used and printed; times in seconds, sizes in bytes, memory in KiB."""

    user_s: float = 0.0
    system_s: float = 0.0
    memory_kib: int = 0
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_kept: int = 0
    stderr_kept: int = 0
    survivors: int = 0


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True, tag="outcome"):
    """What became of an admitted attempt, with what proves it."""

    message_id: str
    attempt_id: str
    side_effect: SideEffect
    code: Code
    disposition: Disposition
    basis: Basis | None = None
    exit_code: int | None = None
    signal: int | None = None
    http_status: int | None = None
    errno: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    detail: str = ""
    usage: Usage | None = None
    retry_after_ns: int | None = None


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True, tag="evidence"):
    """Something learnt about an attempt after its outcome."""

    message_id: str
    attempt_id: str
    side_effect: SideEffect
    detail: str


class Expire(msgspec.Struct, frozen=True, omit_defaults=True, tag="expire"):
    """The last instant for an admission has passed."""

    message_id: str
    generation: int
    earliest: int


class LateHold(msgspec.Struct, frozen=True, omit_defaults=True, tag="late-hold"):
    """Later than its policy allows: kept for a person, before its first attempt."""

    message_id: str
    generation: int
    earliest: int


class TimeFence(msgspec.Struct, frozen=True, omit_defaults=True, tag="time-fence"):
    """Deadlines up to here are closed."""

    through: int


class ClockStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="clock-step"):
    """The wall clock moved against the monotonic one."""

    before: int
    after: int


class Catalog(msgspec.Struct, frozen=True, omit_defaults=True, tag="catalog"):
    """A verified checkpoint exists under this name."""

    name: str
    position: int
    digest: bytes


class Floor(msgspec.Struct, frozen=True, omit_defaults=True, tag="floor"):
    """Recovery will not need anything at or below this position."""

    position: int


class Retire(msgspec.Struct, frozen=True, omit_defaults=True, tag="retire"):
    """These settled messages become tombstones."""

    message_ids: tuple[str, ...]


Mutation: TypeAlias = (
    OwnerAcquired
    | Admission
    | Outcome
    | Evidence
    | Expire
    | LateHold
    | TimeFence
    | ClockStep
    | Catalog
    | Floor
    | Retire
)
Record: TypeAlias = Command | Mutation
