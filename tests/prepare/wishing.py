"""Short ways to wish, for the tests beside this file."""

from __future__ import annotations

import msgspec
import pytest

from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.outcome import Reason
from nereus_cli.domain.records import Schedule
from nereus_cli.prepare import commands
from nereus_cli.prepare.wishes import Capture, ControlWish, Prepared, ScheduleWish, ShellWish, TimeWish, WishError

NOW = 1_796_133_600 * 10**9
CAPTURE = Capture(now=NOW, entropy=lambda size: bytes(range(size)), requested_by="anna", host="h", cwd=b"/srv")
SOON = TimeWish(delay="10m")


def wish(**fields: object) -> ScheduleWish:
    return msgspec.structs.replace(ScheduleWish(time=SOON, target=ShellWish(argv=(b"true",))), **fields)


def schedule(capture: Capture = CAPTURE, /, **fields: object) -> Prepared:
    return commands.schedule(wish(**fields), capture, PRODUCTION)


def stated(**fields: object) -> Schedule:
    said = schedule(**fields).command.stated
    assert isinstance(said, Schedule)
    return said


def control(**fields: object) -> ControlWish:
    return msgspec.structs.replace(ControlWish(message_id="m", time=SOON), **fields)


def refused(field: str, why: Reason | None = None, /, **fields: object) -> str:
    """What the person is told."""
    with pytest.raises(WishError) as caught:
        schedule(**fields)
    assert (caught.value.field, caught.value.reason) == (field, why)
    return str(caught.value)
