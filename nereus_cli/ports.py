"""What the core needs from the world, as small protocols whose docstrings are the contract.

Positions are integers and the only order there is; 0 means "before the first record". Instants are
nanoseconds since the Unix epoch, monotonic readings are nanoseconds of the clock that counts suspend.
Each port has one conformance suite in ``tests/conformance`` that every adapter runs, the one in memory too.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from nereus_cli.domain.facts import Descriptor, Head, History, Result
from nereus_cli.domain.instant import Reading
from nereus_cli.domain.message import Attempt, Message, State
from nereus_cli.domain.records import Command, Outcome


class Kind(enum.IntEnum):
    """Who may append a record of this kind; the log knows no more of what it carries."""

    CLIENT = 1
    OWNER = 2


class Durability(enum.StrEnum):
    """What an acknowledgement of this log proves."""

    LOCAL_FSYNC = "local-fsync"
    QUORUM_FSYNC = "quorum-fsync"
    UNVERIFIED = "replicated-unverified"
    NONE = "unsynced"


class Link(msgspec.Struct, frozen=True):
    """The place of an owner record in the one owner chain: its epoch, the position of the owner record
    before it (0: none) and a random id by which its writer finds it again after a lost answer."""

    epoch: int
    prev: int
    rid: int


class OwnerHead(msgspec.Struct, frozen=True):
    """The last owner record: position 0 and epoch 0 when there is none."""

    position: int
    epoch: int


class LogRecord(msgspec.Struct, frozen=True):
    """One durable record as read back. ``persisted_at`` is the appender's wall clock, ``monotonic_ns`` and
    ``boot_id`` (16 bytes) its other clock at that moment; ``link`` is present exactly on owner records."""

    position: int
    kind: Kind
    persisted_at: int
    boot_id: bytes
    monotonic_ns: int
    link: Link | None
    payload: bytes


class Appended(msgspec.Struct, frozen=True):
    """Where a record stands once it is durable."""

    position: int
    persisted_at: int


class Bounds(msgspec.Struct, frozen=True):
    """First retained position, last durable one, and the last one anybody wrote (durable or not)."""

    first: int
    durable: int
    last: int


class LogError(Exception):
    """Base of what a log may say instead of a result."""


class NotQueuedError(LogError):
    """Proven: nothing of this call is in the log, nor ever will be. ``errno`` is 0 unless the system refused."""

    def __init__(self, message: str, *, errno: int = 0, holder: int | None = None) -> None:
        """``holder`` is the pid of the process that holds the lock waited for, where it is known."""
        super().__init__(message)
        self.errno = errno
        self.holder = holder


class EnqueueUncertainError(LogError):
    """The records may be in the log or not: send the same bytes again."""

    def __init__(self, message: str, *, holder: int | None = None, signal: int = 0) -> None:
        """``holder`` as in NotQueuedError; ``signal`` is the one that broke the wait off (it is used up), else 0."""
        super().__init__(message)
        self.holder = holder
        self.signal = signal


class FencedError(LogError):
    """Proven: this and every later append of this owner writer is refused."""


class CorruptLogError(LogError):
    """Something that was durable cannot be read; ``file`` and ``position`` say where."""

    def __init__(self, message: str, *, file: str, position: int, offset: int = 0) -> None:
        """``offset`` counts bytes from the start of ``file``; ``position`` is the first unreadable one."""
        super().__init__(message)
        self.file = file
        self.position = position
        self.offset = offset


class NewerFormatError(LogError):
    """Written by a newer version: nothing was touched."""


class TornTail(msgspec.Struct, frozen=True):
    """A tail that no proof of durability covered: copied aside to ``file``, then cut before ``position``."""

    file: str
    position: int
    bytes_cut: int


class OwnerWriter(Protocol):
    """The only way to append owner records. Not safe for several threads; one batch in flight."""

    @property
    def head(self) -> OwnerHead:
        """The last record this writer appended."""

    def append(self, payloads: Sequence[bytes]) -> Sequence[Appended]:
        """All or none, consecutive positions, one sync; durable on return.

        Raises NotQueuedError, EnqueueUncertainError (step down, touch nothing) or FencedError."""


class CommandLog(Protocol):
    """One shard's ordered log. Any process may hold one; only ``claim`` yields a writer of owner records."""

    @property
    def store_id(self) -> bytes:
        """16 random bytes that name this log for ever."""

    @property
    def durability(self) -> Durability:
        """What a return from ``append`` proves here."""

    def append(self, payloads: Sequence[bytes]) -> Sequence[Appended]:
        """Client records, in order, durable on return: one sync for the batch.

        Other writers' records may stand between those of one call. Raises NotQueuedError (none of them is in
        the log) or EnqueueUncertainError (any of them may be)."""

    def bounds(self) -> Bounds:
        """Advisory; never a barrier."""

    def barrier(self) -> int:
        """Syncs what anybody has written before this call and returns the durable position that covers it."""

    def read(self, after: int, *, through: int | None = None) -> Iterator[LogRecord]:
        """Durable records from ``after + 1`` on, without a hole, up to ``through`` or the durable end at the
        time of the call. Raises CorruptLogError at the first one that cannot be read."""

    def record_at(self, position: int) -> LogRecord | None:
        """The durable record there, or None when the log does not hold it (any more)."""

    def wait(self, after: int, seconds: float) -> int:
        """Returns the durable position as soon as it is above ``after``, or when the time is up. Wakes in well
        under a millisecond where the system allows, and never later than its poll interval of a second."""

    def claim(self, seen: OwnerHead, payload: bytes) -> OwnerWriter:
        """Appends the first record of epoch ``seen.epoch + 1`` behind ``seen``; the caller holds the lease.
        The writer trusts the fold, not itself, on whether its records took effect."""

    def close(self) -> None:
        """Gives back descriptors; what was appended stays."""


class Lease(Protocol):
    """Liveness of the one owner. Losing it means stop; holding it alone proves nothing to the fold."""

    def acquire(self) -> None:
        """Takes it or raises BusyError at once."""

    def release(self) -> None:
        """Gives it back; harmless when not held."""


class BusyError(Exception):
    """Somebody else holds it; ``holder`` is their pid where it is known."""

    def __init__(self, message: str, *, holder: int | None = None) -> None:
        """``message`` names the thing that is held."""
        super().__init__(message)
        self.holder = holder


class Clock(Protocol):
    """Reads time; decides nothing."""

    def read(self) -> Reading:
        """The wall clock as an interval, the monotonic clock that counts suspend, and the boot it belongs to."""

    def sleep(self, seconds: float) -> None:
        """Waits on the monotonic clock."""


class Batch(msgspec.Struct):
    """What a run of records changed, newest value per row; ``head.applied`` is the position it is true at."""

    head: Head
    messages: dict[str, Message]
    results: dict[str, Result]
    descriptors: dict[int, Descriptor]
    attempts: dict[tuple[str, int], Attempt]
    history: list[History]


class FactsSource(Protocol):
    """What apply has to know before it can judge a record; ids that are not known are left out."""

    def head(self) -> Head:
        """The head as of the position this source is true at."""

    def results(self, command_ids: Collection[str]) -> Mapping[str, Result]:
        """The results of those commands."""

    def messages(self, message_ids: Collection[str]) -> Mapping[str, Message]:
        """Those messages."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages a list shows, in the order of (deliver_at, message_id). ``after`` is where the last page
    ended; ``due_before`` is exclusive; ``states`` empty means those that are not terminal."""

    states: tuple[State, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    lane: str | None = None
    key: str | None = None
    due_before: int | None = None
    after: tuple[int, str] | None = None
    limit: int | None = None


class Views(FactsSource, Protocol):
    """Read-only questions about the state at one position."""

    def attempts_of(self, message_id: str) -> Sequence[Attempt]:
        """All attempts of a message by number."""

    def history_of(self, message_id: str) -> Sequence[History]:
        """All that happened to a message, in log order."""

    def descriptor(self, position: int) -> Descriptor | None:
        """What the record at that position said to deliver."""

    def select(self, selection: Selection) -> Iterator[Message]:
        """The chosen messages, in order."""

    def counts(self) -> Mapping[State, int]:
        """How many messages are in each state."""

    def due(self, through: int, limit: int) -> Sequence[tuple[int, str]]:
        """(timer, message_id) of the earliest messages whose timer is not above ``through``."""

    def open_messages(self) -> Sequence[Message]:
        """Messages that have an attempt in progress or of unknown effect."""

    def digest(self) -> str:
        """SHA-256 over every row in key order: equal states give equal digests, whatever their history."""


class ProjectionStalledError(Exception):
    """The rows could not be written now, for want of space or because the disk refuses. Nothing changed and nothing
    is lost: the log has it all, and the same batch may be committed later."""


class Projection(Views, Protocol):
    """The stored fold. It may lag behind the log, never lead it; it may be deleted at any time."""

    def commit(self, batch: Batch) -> None:
        """Rows and applied position in one transaction, or ProjectionStalledError and neither."""

    def close(self) -> None:
        """Gives back descriptors."""


class Start(msgspec.Struct, frozen=True):
    """An admitted attempt and what ``materialise`` made of its message: everything a destination needs."""

    message: Message
    attempt: Attempt
    command: Command
    work: object


class CannotStartError(Exception):
    """Found before anything was sent: this attempt cannot begin. ``outcome_detail`` is free of secrets."""

    def __init__(self, detail: str, *, errno: int = 0, permanent: bool = True) -> None:
        """``permanent``: trying again would find the same."""
        super().__init__(detail)
        self.detail = detail
        self.errno = errno
        self.permanent = permanent


class DestinationAwayError(Exception):
    """What would carry out attempts cannot be reached now: nothing of this message is at fault, and nothing is lost by
    waiting. No Admission is made meanwhile."""


class Destination(Protocol):
    """Where effects happen: off the apply loop, never blocking it. One thread calls all of these."""

    def materialise(self, message: Message, command: Command) -> object:
        """Reads and checks everything that can fail before sending.

        Raises CannotStartError, or DestinationAwayError."""

    def start(self, starts: Sequence[Start]) -> None:
        """Begins attempts that were read back as admitted; what cannot begin comes back as an outcome."""

    def recover(self, starts: Sequence[Start]) -> Sequence[Outcome]:
        """Decides attempts that an earlier owner admitted: evidence first, UNKNOWN only for what has none. Those
        that may still be running are adopted and come back from ``pump``. ``work`` is None here."""

    def pump(self) -> Sequence[Outcome]:
        """What ended since the last call; never waits."""

    def stop(self, attempt_id: str, *, kill: bool) -> None:
        """Ends an attempt in progress, by its own ladder of signals."""

    def wake_fds(self) -> tuple[Sequence[int], Sequence[int]]:
        """Descriptors that become readable, and writable, when ``pump`` has something to do."""

    def close(self) -> None:
        """Lets go without ending what runs."""


class Disk(Protocol):
    """The system calls behind files, one method each: the seam where faults are injected.

    Every path is a name below an open directory descriptor; every file is opened no-follow and close-on-exec,
    and is refused unless it is a regular file of this user with at most ``links`` names. Methods raise OSError."""

    def open_directory(self, path: str, *, below: int | None = None) -> int: ...
    def make_directory(self, name: str, *, below: int) -> None: ...
    def open_file(
        self,
        name: str,
        *,
        below: int,
        create: bool = False,
        exclusive: bool = False,
        write: bool = True,
        links: int = 1,
    ) -> int: ...
    def close(self, fd: int) -> None: ...
    def read_at(self, fd: int, size: int, offset: int) -> bytes: ...
    def write_at(self, fd: int, data: bytes, offset: int) -> int: ...
    def size(self, fd: int) -> int: ...
    def inode(self, fd: int) -> int: ...
    def inode_of(self, name: str, *, below: int) -> int | None: ...
    def truncate(self, fd: int, size: int) -> None: ...
    def sync_data(self, fd: int) -> None: ...
    def sync_directory(self, fd: int) -> None: ...
    def link(self, source: str, target: str, *, below: int) -> None: ...
    def rename(self, source: str, target: str, *, below: int) -> None: ...
    def unlink(self, name: str, *, below: int) -> None: ...
    def names(self, directory: int) -> Iterable[str]: ...
    def try_lock(self, fd: int) -> bool: ...
    def lock(self, fd: int, seconds: float) -> bool: ...
    def unlock(self, fd: int) -> None: ...
    def lock_holder(self, fd: int) -> int | None: ...
