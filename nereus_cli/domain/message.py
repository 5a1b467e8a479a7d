"""The life of a message: its states, and the total table of what each record does in each of them.

A state carries only the data that is valid in it. The table has a cell for every state and every kind of
record that names a message; ``docs/lifecycle.md`` is drawn from it.
"""

from __future__ import annotations

import enum
from typing import Final, TypeAlias

import msgspec

from nereus_cli.domain.outcome import Basis, Code, Disposition, Ending, Risk, SideEffect
from nereus_cli.domain.records import Expiry, Pairs, Policy, Usage


class State(enum.StrEnum):
    """What a person is told."""

    SCHEDULED = "SCHEDULED"
    RETRY_WAIT = "RETRY_WAIT"
    HELD = "HELD"
    PUBLISHING = "PUBLISHING"
    UNCERTAIN = "UNCERTAIN"
    PUBLISHED = "PUBLISHED"
    EXPIRED = "EXPIRED"
    CANCELED = "CANCELED"
    DEAD_LETTER = "DEAD_LETTER"


TERMINAL: Final = frozenset({State.PUBLISHED, State.EXPIRED, State.CANCELED, State.DEAD_LETTER})


class Work(enum.StrEnum):
    """What the machine is doing about it."""

    NONE = "NONE"
    TIMELINE = "TIMELINE"
    CLAIMED = "CLAIMED"
    PUBLISHING = "PUBLISHING"


class Scheduled(msgspec.Struct, frozen=True, tag="scheduled", array_like=True):
    """Waits for ``deliver_at``."""


class RetryWait(msgspec.Struct, frozen=True, tag="retry-wait", array_like=True):
    """Waits ``delay_ns`` from ``since``, the instant the failure was recorded."""

    since: int
    delay_ns: int


class Held(msgspec.Struct, frozen=True, tag="held", array_like=True):
    """Kept, ``by`` PERSON or LATE; release puts it back where it was."""

    by: str
    was: Scheduled | RetryWait


class Publishing(msgspec.Struct, frozen=True, tag="publishing", array_like=True):
    """An attempt is in progress; ``closing`` is the ending it gets instead of a further admission."""

    closing: str = ""


class Uncertain(msgspec.Struct, frozen=True, tag="uncertain", array_like=True):
    """An attempt of this generation is UNKNOWN; ``closing`` as above. ``again`` is the wait before a further
    attempt, which may deliver twice; None: one is in progress, or only evidence or a person moves it."""

    closing: str = ""
    again: RetryWait | None = None


class Published(msgspec.Struct, frozen=True, tag="published", array_like=True):
    """The destination took it."""


class Expired(msgspec.Struct, frozen=True, tag="expired", array_like=True):
    """Its last instant passed first."""


class Canceled(msgspec.Struct, frozen=True, tag="canceled", array_like=True):
    """A person decided against it."""


class DeadLetter(msgspec.Struct, frozen=True, tag="dead-letter", array_like=True):
    """Delivery stopped, and why."""

    ending: Ending


PUBLISHED: Final = "published"
NOT_PUBLISHED: Final = "not-published"
RETRY: Final = "retry"
GIVE_UP: Final = "give-up"
VERDICTS: Final = (PUBLISHED, NOT_PUBLISHED, RETRY, GIVE_UP)
"""What a person may say of an attempt of unknown effect."""

Condition: TypeAlias = (
    Scheduled | RetryWait | Held | Publishing | Uncertain | Published | Expired | Canceled | DeadLetter
)

STATE_OF: Final[dict[type, State]] = {
    Scheduled: State.SCHEDULED,
    RetryWait: State.RETRY_WAIT,
    Held: State.HELD,
    Publishing: State.PUBLISHING,
    Uncertain: State.UNCERTAIN,
    Published: State.PUBLISHED,
    Expired: State.EXPIRED,
    Canceled: State.CANCELED,
    DeadLetter: State.DEAD_LETTER,
}


class Resolution(msgspec.Struct, frozen=True, array_like=True):
    """A named person's verdict on an attempt of unknown effect, and what they saw; ``at`` is when it was recorded."""

    verdict: str
    evidence: str
    by: str
    at: int
    position: int


class Attempt(msgspec.Struct, frozen=True, array_like=True):
    """One admitted side effect. Until its outcome is recorded ``side_effect`` is None. ``boot_id`` and
    ``admitted_monotonic_ns`` are those of the record that holds its admission: evidence is judged against them.
    ``kill``: a person asked for its end, and whoever owns it when that is read has to see to it."""

    attempt_id: str
    number: int
    generation: int
    admitted_position: int
    admitted_at: int
    lateness_ns: int
    grace_ns: int
    timeout_ns: int | None = None
    boot_id: bytes = b""
    admitted_monotonic_ns: int = 0
    clock_mode: str = "host"
    earliest: int = 0
    latest: int = 0
    side_effect: SideEffect | None = None
    basis: Basis | None = None
    disposition: Disposition = Disposition.NONE
    code: Code | None = None
    exit_code: int | None = None
    signal: int | None = None
    http_status: int | None = None
    errno: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    detail: str = ""
    usage: Usage | None = None
    counted: bool = True
    kill: bool = False
    resolution: Resolution | None = None

    @property
    def given_up(self) -> bool:
        """Of unknown effect for good: a person decided not to look any more."""
        return self.resolution is not None and self.resolution.verdict == GIVE_UP


class Message(msgspec.Struct, frozen=True, array_like=True):
    """One delayed message as the fold knows it. ``order_position`` is that of the schedule or reschedule which
    began the generation; ``descriptor_position`` that of the record whose target it delivers.
    ``open_attempts`` are those in progress and those whose effect is unknown. ``published`` counts effects that are
    known, ``settled`` names attempts by number with a person's verdict, ``given_up`` marks a dead letter that a person
    has seen off, and ``key_generation`` is the generation that stands in the idempotency key."""

    message_id: str
    created_position: int
    order_position: int
    descriptor_position: int
    descriptor_hash: bytes
    generation: int
    state_version: int
    deliver_at: int
    condition: Condition
    lane: str
    policy: Policy
    expiry: Expiry
    expire_at: int | None = None
    late_after_ns: int | None = None
    key: str | None = None
    priority: int = 0
    tags: Pairs = ()
    attempts: int = 0
    counted: int = 0
    uncounted: int = 0
    open_attempts: tuple[Attempt, ...] = ()
    last_attempt: tuple[str, int] | None = None
    first_admitted_at: int | None = None
    late_judged: bool = False
    risk: Risk = Risk.NONE
    requested_by: str = ""
    requested_at: int = 0
    reason: str = ""
    correlation: str = ""
    published: int = 0
    settled: tuple[tuple[int, str], ...] = ()
    given_up: bool = False
    key_generation: int = 0

    @property
    def state(self) -> State:
        """The one state."""
        return STATE_OF[type(self.condition)]

    @property
    def work(self) -> Work:
        """The one work; a claim is known to the owner only."""
        if any(attempt.side_effect is None for attempt in self.open_attempts):
            return Work.PUBLISHING
        return Work.TIMELINE if self.waits else Work.NONE

    @property
    def waits(self) -> Scheduled | RetryWait | None:
        """What it waits for before its next admission, or None when no admission is foreseen."""
        match self.condition:
            case (Scheduled() | RetryWait()) as waiting:
                return waiting
            case Uncertain(again=again):
                return again
            case _:
                return None

    @property
    def timer(self) -> int | None:
        """When the owner has to look at it next, or None when only a person or an outcome moves it."""
        if isinstance(self.condition, Held):
            return self.expire_at
        match self.waits:
            case Scheduled():
                wake = self.deliver_at
            case RetryWait(since=since, delay_ns=delay):
                wake = since + delay
            case _:
                return None
        return wake if self.expire_at is None else min(wake, self.expire_at)


class Kind(enum.StrEnum):
    """The records that can move a message, as the rows of the table."""

    SCHEDULE = "Schedule"
    CANCEL = "Cancel"
    RESCHEDULE = "Reschedule"
    HOLD = "Hold"
    RELEASE = "Release"
    STOP = "Stop"
    RESOLVE = "Resolve"
    REPLAY = "Replay"
    ADMISSION = "Admission"
    OUTCOME = "Outcome"
    EVIDENCE = "Evidence"
    EXPIRE = "Expire"
    LATE_HOLD = "LateHold"
    RETIRE = "Retire"


class Cell(enum.StrEnum):
    """What a record does. Lower case: it takes effect; upper case: the reason it does not."""

    CONFLICT = "MESSAGE_CONFLICT"
    CANCEL = "canceled"
    NEW_GENERATION = "generation + 1, scheduled"
    HOLD = "held"
    RELEASE = "where it was"
    ALREADY = "already so"
    CLOSE = "no further admission"
    ADMIT = "publishing"
    AGAIN = "as it is, publishing, if a retry waits"
    SETTLE = "by the outcome tables"
    LEARN = "risk and obligations"
    EXPIRE = "expired"
    RETIRE = "tombstone"
    VERDICT = "by the verdict"
    STALE = "STALE"
    TOO_LATE_PUBLISHING = "TOO_LATE_PUBLISHING"
    TOO_LATE_UNCERTAIN = "TOO_LATE_UNCERTAIN"
    TOO_LATE_PUBLISHED = "TOO_LATE_PUBLISHED"
    TOO_LATE_EXPIRED = "TOO_LATE_EXPIRED"
    TOO_LATE_CANCELED = "TOO_LATE_CANCELED"
    TOO_LATE_DEAD_LETTER = "TOO_LATE_DEAD_LETTER"
    NOT_DEAD = "NOT_DEAD"


_TOO_LATE: Final = {
    State.PUBLISHING: Cell.TOO_LATE_PUBLISHING,
    State.UNCERTAIN: Cell.TOO_LATE_UNCERTAIN,
    State.PUBLISHED: Cell.TOO_LATE_PUBLISHED,
    State.EXPIRED: Cell.TOO_LATE_EXPIRED,
    State.CANCELED: Cell.TOO_LATE_CANCELED,
    State.DEAD_LETTER: Cell.TOO_LATE_DEAD_LETTER,
}


def _row(scheduled: Cell, retry: Cell, held: Cell, **other: Cell) -> dict[State, Cell]:
    """A row of the table: the three waiting states, and what differs from "too late" in the others."""
    row = {State.SCHEDULED: scheduled, State.RETRY_WAIT: retry, State.HELD: held, **_TOO_LATE}
    return row | {State(name): cell for name, cell in other.items()}


def _everywhere(cell: Cell, **other: Cell) -> dict[State, Cell]:
    return dict.fromkeys(State, cell) | {State(name): value for name, value in other.items()}


TABLE: Final[dict[Kind, dict[State, Cell]]] = {
    Kind.SCHEDULE: _everywhere(Cell.CONFLICT),
    Kind.CANCEL: _row(Cell.CANCEL, Cell.CANCEL, Cell.CANCEL, CANCELED=Cell.ALREADY),
    Kind.RESCHEDULE: _row(Cell.NEW_GENERATION, Cell.NEW_GENERATION, Cell.NEW_GENERATION),
    Kind.HOLD: _row(Cell.HOLD, Cell.HOLD, Cell.ALREADY),
    Kind.RELEASE: _row(Cell.ALREADY, Cell.ALREADY, Cell.RELEASE, PUBLISHING=Cell.ALREADY, UNCERTAIN=Cell.ALREADY),
    Kind.STOP: _row(
        Cell.CANCEL, Cell.CANCEL, Cell.CANCEL, PUBLISHING=Cell.CLOSE, UNCERTAIN=Cell.CLOSE, CANCELED=Cell.ALREADY
    ),
    Kind.RESOLVE: _everywhere(Cell.VERDICT),
    Kind.REPLAY: _row(Cell.NOT_DEAD, Cell.NOT_DEAD, Cell.NOT_DEAD, DEAD_LETTER=Cell.NEW_GENERATION),
    Kind.ADMISSION: _everywhere(Cell.STALE, SCHEDULED=Cell.ADMIT, RETRY_WAIT=Cell.ADMIT, UNCERTAIN=Cell.AGAIN),
    Kind.OUTCOME: _everywhere(Cell.LEARN, PUBLISHING=Cell.SETTLE, UNCERTAIN=Cell.SETTLE),
    Kind.EVIDENCE: _everywhere(Cell.LEARN),
    Kind.EXPIRE: _everywhere(
        Cell.STALE,
        SCHEDULED=Cell.EXPIRE,
        RETRY_WAIT=Cell.EXPIRE,
        HELD=Cell.EXPIRE,
        PUBLISHING=Cell.CLOSE,
        UNCERTAIN=Cell.CLOSE,
    ),
    Kind.LATE_HOLD: _everywhere(Cell.STALE, SCHEDULED=Cell.HOLD),
    Kind.RETIRE: _everywhere(
        Cell.STALE, PUBLISHED=Cell.RETIRE, EXPIRED=Cell.RETIRE, CANCELED=Cell.RETIRE, DEAD_LETTER=Cell.RETIRE
    ),
}


def cell(kind: Kind, state: State) -> Cell:
    """What a record of that kind does to a message in that state. Total."""
    return TABLE[kind][state]
