"""The table of exit statuses, and what each exception becomes."""

from __future__ import annotations

import errno

import pytest

from nereus_cli import ports, trust
from nereus_cli.cli.exits import MEANINGS, REASONS, Failure, classify, of_system, together
from nereus_cli.codec import NewerRecordError
from nereus_cli.domain.outcome import Reason
from nereus_cli.store import NoStoreError

CONTRACT = {
    10: "COMMAND_CONFLICT MESSAGE_CONFLICT",
    11: "TOO_LATE_PUBLISHING TOO_LATE_UNCERTAIN",
    12: "TOO_LATE_PUBLISHED TOO_LATE_CANCELED TOO_LATE_EXPIRED TOO_LATE_DEAD_LETTER",
    13: "NOT_FOUND",
    14: "VERSION_CONFLICT",
    16: "OUTSIDE_HORIZON",
    1: (
        "PAST TOO_FAR ID_FROM_FUTURE EXPIRES_BEFORE_DELIVERY WINDOW_TOO_NARROW LIMIT LANE_CLOSED DESTINATION_UNKNOWN "
        "DESTINATION_RETIRED NO_SUCH_ATTEMPT ALREADY_SETTLED DUPLICATE_NOT_ACCEPTED NOT_DEAD"
    ),
}


def test_every_reason_has_the_status_of_the_contract() -> None:
    assert {Reason(name): status for status, names in CONTRACT.items() for name in names.split()} == REASONS


def test_the_table_of_meanings_is_that_of_the_contract() -> None:
    statuses = {*range(4), *range(10, 17), 20, 21, 22, 30, 65, 66, 69, 70, 73, 74, 75, 76, 77, 78, 130, 141}
    assert set(MEANINGS) == statuses
    assert set(REASONS.values()) <= statuses


EXCEPTIONS: list[tuple[BaseException, int]] = [
    (ports.NotQueuedError("locked", holder=7), 75),
    (ports.NotQueuedError("full", errno=errno.ENOSPC), 75),
    (ports.NotQueuedError("full", errno=errno.EDQUOT), 75),
    (ports.NotQueuedError("broken", errno=errno.EIO), 74),
    (ports.NotQueuedError("not ours", errno=errno.EACCES), 77),
    (ports.NotQueuedError("read only", errno=errno.EROFS), 77),
    (ports.EnqueueUncertainError("maybe", holder=7), 3),
    (ports.CorruptLogError("bad", file="f", position=3, offset=9), 65),
    (ports.NewerFormatError("newer"), 76),
    (NewerRecordError("newer"), 76),
    (ports.BusyError("owned", holder=7), 75),
    (NoStoreError("none"), 66),
    (trust.UnsafeError("open"), 78),
    (trust.ForeignError("theirs"), 77),
    (PermissionError(errno.EACCES, "no"), 77),
    (OSError(errno.EIO, "no"), 74),
    (OSError(errno.ENOSPC, "no"), 75),
    (KeyboardInterrupt(), 130),
    (Failure("X", "x", 42), 42),
    (ZeroDivisionError("x"), 70),
    (RuntimeError(), 70),
]


@pytest.mark.parametrize(("error", "status"), EXCEPTIONS, ids=lambda value: repr(value)[:50])
def test_every_exception_has_a_status_and_one_line(error: BaseException, status: int) -> None:
    failure = classify(error)
    assert failure.status == status
    assert failure.message
    assert "\n" not in failure.message


def test_a_damaged_store_is_located() -> None:
    failure = classify(ports.CorruptLogError("bad", file="1.seg", position=3, offset=9))
    assert failure.details == {"file": "1.seg", "position": 3, "offset": 9}
    assert "1.seg, position 3" in failure.message


def test_what_keeps_a_store_from_being_made_is_73_unless_it_passes() -> None:
    assert of_system(OSError(errno.EACCES, "no"), creating=True).status == 73
    assert of_system(OSError(errno.ENOTDIR, "no"), creating=True).status == 73
    assert of_system(OSError(errno.ENOSPC, "no"), creating=True).status == 75
    assert of_system(OSError(errno.EIO, "no"), creating=True).status == 74


def test_several_answers_have_one_status() -> None:
    assert together([]) == 0
    assert together([0, 0]) == 0
    assert together([12, 12]) == 12
    assert together([0, 12]) == 1
    assert together([0, 3, 12]) == 3
