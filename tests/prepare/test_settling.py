"""From a verdict, or the wish for one more try, to a command."""

from __future__ import annotations

import msgspec
import pytest

from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.outcome import Reason
from nereus_cli.domain.records import At, In, Now, Replay, Resolve
from nereus_cli.prepare import commands
from nereus_cli.prepare.wishes import Prepared, ReplayWish, ResolveWish, TimeWish, WishError
from tests.prepare.wishing import CAPTURE, NOW

VERDICT = ResolveWish(message_id="m", attempt=2, verdict="published", evidence="a receipt")
AGAIN = ReplayWish(message_id="m")
HOUR = 3_600 * 10**9


def resolve(**fields: object) -> Prepared:
    return commands.resolve(msgspec.structs.replace(VERDICT, **fields), CAPTURE, PRODUCTION)


def replay(**fields: object) -> Prepared:
    return commands.replay(msgspec.structs.replace(AGAIN, **fields), CAPTURE, PRODUCTION)


def test_a_verdict_is_what_was_said_and_not_who_asked() -> None:
    command = resolve(if_version=3, reason="month's end").command
    assert command.stated == Resolve("m", 2, "published", "a receipt", if_version=3)
    assert (command.context.requested_by, command.context.reason) == ("anna", "month's end")
    other = msgspec.structs.replace(CAPTURE, requested_by="bert", now=NOW + HOUR)
    again = commands.resolve(msgspec.structs.replace(VERDICT, if_version=3), other, PRODUCTION)
    assert again.command.command_hash == command.command_hash
    assert resolve(if_version=3, by="anna").command.command_hash != command.command_hash


def test_a_dead_letter_is_seen_off_as_attempt_0() -> None:
    assert resolve(attempt=None, verdict="give-up").command.stated == Resolve("m", 0, "give-up", "a receipt")


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("attempt", {"attempt": None}),
        ("attempt", {"attempt": None, "verdict": "retry"}),
        ("evidence", {"evidence": ""}),
        ("evidence", {"evidence": "\n \t"}),
        ("evidence", {"evidence": "y" * 4_097}),
        ("evidence", {"evidence": "\u00e9" * 2_049}),
        ("by", {"by": ""}),
        ("by", {"by": "\u2003"}),
        ("by", {"by": "y" * 4_097}),
        ("id", {"message_id": "a.b"}),
        ("command-id", {"command_id": "a.b"}),
        ("verdict", {"verdict": "perhaps"}),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value)[:40],
)
def test_what_is_no_verdict_is_refused_at_its_flag(field: str, fields: dict[str, object]) -> None:
    with pytest.raises(WishError) as caught:
        resolve(**fields)
    assert (caught.value.field, caught.value.reason) == (field, None)


def test_the_longest_evidence_fits() -> None:
    assert resolve(evidence="y" * 4_096, by="z" * 4_096).fresh


@pytest.mark.parametrize(
    ("time", "when", "instant"),
    [
        (TimeWish(), Now(), None),
        (TimeWish(delay="1h"), In("1h", HOUR), None),
        (TimeWish(at="2027-01-01T00:00:00Z"), At("2027-01-01T00:00:00Z"), 1_798_761_600 * 10**9),
        (TimeWish(at="2027-01-01T01:00", zone="Europe/Berlin"), At("2027-01-01T01:00", "Europe/Berlin"), None),
    ],
)
def test_a_replay_is_at_once_unless_a_time_is_said(time: TimeWish, when: object, instant: int | None) -> None:
    command = replay(time=time, accept_duplicate=True).command
    assert command.stated == Replay("m", when, accept_duplicate=True)  # type: ignore[arg-type] # a row of the table
    if instant is not None:
        assert command.context.instant == instant
    assert replay(time=time, new_key=True).command.command_hash != command.command_hash


@pytest.mark.parametrize(
    ("field", "why", "time"),
    [
        ("in", None, TimeWish(delay="1h", at="2027-01-01T00:00:00Z")),
        ("tz", None, TimeWish(zone="Europe/Berlin")),
        ("tz", None, TimeWish(gap="later")),
        ("tz", None, TimeWish(fold="first")),
        ("tz", None, TimeWish(delay="1h", zone="Europe/Berlin")),
        ("in", None, TimeWish(delay="soon")),
        ("at", Reason.PAST, TimeWish(at="2020-01-01T00:00:00Z")),
        ("at", Reason.TOO_FAR, TimeWish(at="2047-01-01T00:00:00Z")),
        ("in", Reason.TOO_FAR, TimeWish(delay="4000d")),
    ],
)
def test_a_time_that_cannot_be_is_refused_at_its_flag(field: str, why: Reason | None, time: TimeWish) -> None:
    with pytest.raises(WishError) as caught:
        replay(time=time)
    assert (caught.value.field, caught.value.reason) == (field, why)
    assert "--allow-past" not in str(caught.value)
