"""Exit statuses: the one table of what each means, and which status every failure has."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from nereus_cli.domain.outcome import Reason

MEANINGS: Final = {
    0: "done; or already so",
    1: "refused for a stable reason without a status of its own; batch: some lines refused",
    2: "usage",
    3: "uncertain: it may be in the log; send the same bytes again",
    10: "conflict: this id already means something else",
    11: "too late: an attempt is in progress or uncertain",
    12: "too late: the message has ended",
    13: "no such id is known",
    14: "version conflict",
    15: "queued, not applied within the wait",
    16: "outside the horizon: retry window closed, result expired",
    20: "wait: ended without publishing",
    21: "wait: uncertain with no work under way",
    22: "wait: timed out",
    30: "something needs a person",
    65: "the store is damaged",
    66: "no store here",
    69: "the engine behind the store cannot be reached",
    70: "a bug in Nereus",
    73: "cannot create: definitely not queued",
    74: "input-output error: definitely not queued",
    75: "try again later: definitely not queued; run: another owner",
    76: "written by a newer version: nothing was touched",
    77: "not permitted",
    78: "unsafe permissions or configuration",
    130: "interrupted before anything was written",
    141: "the reader went away",
}

DONE, REFUSED, USAGE, UNCERTAIN, UNKNOWN, PENDING, EXPIRED = 0, 1, 2, 3, 13, 15, 16
NEEDS_A_PERSON, DAMAGED, NO_STORE, BUG, CANNOT_CREATE, IO, LATER = 30, 65, 66, 70, 73, 74, 75
NEWER, NOT_PERMITTED, UNSAFE, INTERRUPTED, READER_GONE = 76, 77, 78, 130, 141

_CONFLICT, _IN_PROGRESS, _ENDED, _VERSION = 10, 11, 12, 14
REASONS: Final[Mapping[Reason, int]] = dict.fromkeys(Reason, REFUSED) | {
    Reason.COMMAND_CONFLICT: _CONFLICT,
    Reason.MESSAGE_CONFLICT: _CONFLICT,
    Reason.TOO_LATE_PUBLISHING: _IN_PROGRESS,
    Reason.TOO_LATE_UNCERTAIN: _IN_PROGRESS,
    Reason.TOO_LATE_PUBLISHED: _ENDED,
    Reason.TOO_LATE_CANCELED: _ENDED,
    Reason.TOO_LATE_EXPIRED: _ENDED,
    Reason.TOO_LATE_DEAD_LETTER: _ENDED,
    Reason.NOT_FOUND: UNKNOWN,
    Reason.VERSION_CONFLICT: _VERSION,
    Reason.OUTSIDE_HORIZON: EXPIRED,
}

_PASSING: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR}
)
_REFUSED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class Failure(Exception):  # noqa: N818 -- what the caller is told, and with which status
    """Ends a verb with an error document and its exit status. ``details`` must be free of secrets."""

    def __init__(self, code: str, message: str, status: int, details: Mapping[str, object] | None = None) -> None:
        """``code`` is stable, ``message`` one line for people."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.details = dict(details or {})


def usage(message: str, **details: object) -> Failure:
    """The line was not understood; nothing was done."""
    return Failure("USAGE", message, USAGE, details)


def together(statuses: Iterable[int]) -> int:
    """The status of several answers: 3 if any is uncertain, else the one they share, else 1."""
    seen = set(statuses)
    if UNCERTAIN in seen:
        return UNCERTAIN
    return seen.pop() if len(seen) == 1 else REFUSED if seen else DONE


def of_system(error: OSError, *, creating: bool = False) -> Failure:
    """What a refusal of the operating system means; nothing was queued."""
    where = f": {_printable(error.filename)}" if error.filename is not None else ""
    message = f"{error.strerror or error}{where}"
    details = {"errno": errno.errorcode.get(error.errno or 0, str(error.errno))}
    if error.errno in _PASSING:
        return Failure("TRY_LATER", message, LATER, details)
    if creating and error.errno != errno.EIO:
        return Failure("CANNOT_CREATE", f"cannot create the store: {message}", CANNOT_CREATE, details)
    if error.errno in _REFUSED:
        return Failure("NOT_PERMITTED", message, NOT_PERMITTED, details)
    return Failure("IO", message, IO, details)


def classify(error: BaseException) -> Failure:
    """Every exception that may leave a verb, as what people and scripts are told."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, OSError):
        return of_system(error)
    if isinstance(error, KeyboardInterrupt):
        return Failure("INTERRUPTED", "interrupted before anything was written", INTERRUPTED)
    return _ours(error) or _of_database(error) or Failure("BUG", f"a bug in Nereus: {_described(error)}", BUG)


def _ours(error: BaseException) -> Failure | None:
    """The exceptions that our own parts document."""
    from nereus_cli import ports, trust
    from nereus_cli.codec import NewerRecordError
    from nereus_cli.store import NoStoreError

    text = str(error)
    match error:
        case ports.NotQueuedError():
            return _not_queued(error)
        case ports.EnqueueUncertainError():
            return Failure("UNCERTAIN", text, UNCERTAIN, {"holder": error.holder})
        case ports.CorruptLogError():
            where = {"file": error.file, "position": error.position, "offset": error.offset}
            message = f"the store is damaged: {text} ({error.file}, position {error.position})"
            return Failure("DAMAGED", message, DAMAGED, where)
        case ports.NewerFormatError() | NewerRecordError():
            return Failure("NEWER", f"written by a newer version, nothing was touched: {text}", NEWER)
        case ports.BusyError():
            return Failure("BUSY", text, LATER, {"holder": error.holder})
        case ports.ProjectionStalledError():
            return Failure("TRY_LATER", text, LATER)
        case NoStoreError():
            return Failure("NO_STORE", text, NO_STORE)
        case trust.UnsafeError():
            return Failure("UNSAFE", text, UNSAFE)
        case trust.ForeignError():
            return Failure("NOT_PERMITTED", text, NOT_PERMITTED)
        case _:
            return None


def _not_queued(error: object) -> Failure:
    number, holder = getattr(error, "errno", 0), getattr(error, "holder", None)
    if not number:
        return Failure("TRY_LATER", str(error), LATER, {"holder": holder})
    failure = of_system(OSError(number, str(error)))
    return Failure(failure.code, str(error), failure.status, {**failure.details, "holder": holder})


def _of_database(error: BaseException) -> Failure | None:
    """The projection is a file too: it may be busy, or its disk may fail. The log is not touched by that."""
    module = sys.modules.get("nereus_cli.projection.sqlite")
    if module is not None and isinstance(error, module.ProjectionError):
        return Failure("PROJECTION", f"{error}; it may be deleted: the log gives it back", IO)
    if type(error).__module__ != "sqlite3":
        return None
    if "locked" in str(error) or "full" in str(error):
        return Failure("TRY_LATER", f"the projection is busy: {error}", LATER)
    return Failure("IO", f"the projection: {error}", IO)


def _described(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _printable(name: object) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)
