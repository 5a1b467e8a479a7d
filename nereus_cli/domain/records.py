"""The closed union of everything that may stand in the log.

Client commands say what people ask; system mutations say what the owner decides. A command has a *stated*
part, which is hashed, and a *context*, of which the first capture wins and which is not hashed.
A field is only ever added, with a default; a default that was not stated is not written and so not hashed. What
equals its default is made the default itself: the encoder knows it by identity, and equal records are equal bytes.
Durations are nanoseconds, instants nanoseconds since the epoch; bytes are bytes, whatever they spell.
"""

from __future__ import annotations

from typing import TypeAlias

from nereus_cli.domain.outcome import Basis, Code, Disposition, SideEffect
from nereus_cli.domain.parts import (
    At,
    BytePairs,
    Expiry,
    In,
    Named,
    Now,
    Pairs,
    Part,
    Policy,
    Shell,
    Target,
    Webhook,
    When,
)

__all__ = [
    "Admission",
    "At",
    "BytePairs",
    "Cancel",
    "Catalog",
    "ClockStep",
    "ClockTrust",
    "Command",
    "Context",
    "Destination",
    "Evidence",
    "Expire",
    "Expiry",
    "Floor",
    "Hold",
    "In",
    "LaneControl",
    "LateHold",
    "MessageCommand",
    "Mutation",
    "Named",
    "Now",
    "Outcome",
    "OwnerAcquired",
    "Pairs",
    "Permission",
    "Policy",
    "Record",
    "Release",
    "Replay",
    "Reschedule",
    "Resolve",
    "Retire",
    "Schedule",
    "Shell",
    "Stated",
    "Stop",
    "Target",
    "TimeFence",
    "Usage",
    "Webhook",
    "When",
]


class Schedule(Part, frozen=True, tag="schedule"):
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


class Cancel(Part, frozen=True, tag="cancel"):
    """Not at all."""

    message_id: str
    if_version: int | None = None


class Reschedule(Part, frozen=True, tag="reschedule"):
    """At another time, as a new generation; with ``target`` also something else (edit)."""

    message_id: str
    when: When
    if_version: int | None = None
    expiry: Expiry = Expiry()
    allow_past: bool = False
    target: Target | None = None
    policy: Policy | None = None


class Hold(Part, frozen=True, tag="hold"):
    """Not before somebody says so."""

    message_id: str
    if_version: int | None = None


class Release(Part, frozen=True, tag="release"):
    """Go on where it was held."""

    message_id: str
    if_version: int | None = None


class Stop(Part, frozen=True, tag="stop"):
    """No further attempt; with ``kill`` the one in progress is ended too."""

    message_id: str
    if_version: int | None = None
    kill: bool = False


class Resolve(Part, frozen=True, tag="resolve"):
    """A named person's verdict on one attempt whose effect is unknown."""

    message_id: str
    attempt: int
    verdict: str
    evidence: str
    by: str = ""
    if_version: int | None = None


class Replay(Part, frozen=True, tag="replay"):
    """A dead letter once more, as a new generation."""

    message_id: str
    when: When = Now()
    accept_duplicate: bool = False
    new_key: bool = False
    if_version: int | None = None


class LaneControl(Part, frozen=True, tag="lane"):
    """Pause, resume or close a lane."""

    lane: str
    action: str
    until: At | None = None


class Destination(Part, frozen=True, tag="destination"):
    """Add or retire a named destination version."""

    name: str
    action: str
    settings: Pairs = ()


class ClockTrust(Part, frozen=True, tag="clock-trust"):
    """A person vouches for the clock as it stands."""

    evidence: str


MessageCommand: TypeAlias = Cancel | Reschedule | Hold | Release | Stop | Resolve | Replay
Stated: TypeAlias = Schedule | MessageCommand | LaneControl | Destination | ClockTrust


# ---------------------------------------------------------------------------------------- what was captured


class Permission(Part, frozen=True):
    """What allowed the command, as found when it was prepared for a store."""

    rule: str
    uid: int
    sudo_uid: int | None = None
    store_mode: int | None = None


class Context(Part, frozen=True):
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


class Command(Part, frozen=True):
    """A prepared command: its ids and bytes are fixed before any input or output."""

    command_id: str
    command_hash: bytes
    stated: Stated
    context: Context


# ------------------------------------------------------------------------------------------ what owners decide


class OwnerAcquired(Part, frozen=True, tag="owner"):
    """A new epoch begins. ``inode`` is that of the store directory, so that a copy can be told."""

    host: str
    pid: int
    inode: int
    version: str


class Admission(Part, frozen=True, tag="admission"):
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


class Usage(Part, frozen=True):
    """What a child used and printed; times in seconds, sizes in bytes, memory in KiB."""

    user_s: float = 0.0
    system_s: float = 0.0
    memory_kib: int = 0
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_kept: int = 0
    stderr_kept: int = 0
    survivors: int = 0


class Outcome(Part, frozen=True, tag="outcome"):
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


class Evidence(Part, frozen=True, tag="evidence"):
    """Something learnt about an attempt after its outcome."""

    message_id: str
    attempt_id: str
    side_effect: SideEffect
    detail: str


class Expire(Part, frozen=True, tag="expire"):
    """The last instant for an admission has passed."""

    message_id: str
    generation: int
    earliest: int


class LateHold(Part, frozen=True, tag="late-hold"):
    """Later than its policy allows: kept for a person, before its first attempt."""

    message_id: str
    generation: int
    earliest: int


class TimeFence(Part, frozen=True, tag="time-fence"):
    """Deadlines up to here are closed."""

    through: int


class ClockStep(Part, frozen=True, tag="clock-step"):
    """The wall clock moved against the monotonic one."""

    before: int
    after: int


class Catalog(Part, frozen=True, tag="catalog"):
    """A verified checkpoint exists under this name."""

    name: str
    position: int
    digest: bytes


class Floor(Part, frozen=True, tag="floor"):
    """Recovery will not need anything at or below this position."""

    position: int


class Retire(Part, frozen=True, tag="retire"):
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
