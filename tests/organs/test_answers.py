"""What is known of a command after it was appended, and in what a conflicting one differs: names, never values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nereus_cli.answers import Answer, conflict, differing
from nereus_cli.domain.outcome import Decision, Reason
from nereus_cli.domain.records import At, Cancel, Expiry, Hold, In, Named, Now, Policy, Reschedule, Shell, Stated
from nereus_cli.ports import Appended
from nereus_cli.prepare.wishes import Prepared
from tests.domain.story import NOW, Story, command, schedule, told

HIDDEN = "not-to-be-shown"
PLAIN = schedule(target=Shell((b"x",)))


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, ()),
        ({"when": In("1h", 3600 * 10**9)}, ("in",)),
        ({"when": At("noon")}, ("in/at",)),
        ({"when": Now()}, ("in/at",)),
        ({"target": Shell((HIDDEN.encode(),))}, ("argv",)),
        ({"target": Shell(script=HIDDEN.encode())}, ("argv", "shell")),
        ({"target": Shell((b"x",), cwd=b"/not-to-be-shown")}, ("cwd",)),
        ({"target": Shell((b"x",), environment=((b"A", HIDDEN.encode()),))}, ("env",)),
        ({"target": Shell((b"x",), environment_file=b"/f", stdin=HIDDEN.encode())}, ("env-from-file", "stdin")),
        ({"target": Shell((b"x",), secrets=((b"A", "file:/not-to-be-shown"),))}, ("secret",)),
        ({"target": Shell((b"x",), ok=(1,), retry_on=(2,), fail_on=(3,))}, ("ok", "retry-on", "fail-on")),
        ({"target": Named(HIDDEN)}, ("target",)),
        ({"policy": Policy(1, 2, 3, 4, 5, "wait")}, (
            "timeout", "max-attempts", "retry-base", "retry-max", "retry-for", "on-uncertain",
        )),
        ({"expiry": Expiry(after_ns=1)}, ("expires",)),
        ({"late_after_ns": 1, "allow_past": True}, ("late-after", "allow-past")),
        ({"message_id": HIDDEN, "key": HIDDEN, "priority": 1, "tags": ((HIDDEN, HIDDEN),)}, (
            "id", "key", "priority", "tags",
        )),
    ],
    ids=str,
)  # fmt: skip
def test_what_differs_is_named_by_its_flag(fields: dict[str, Any], names: tuple[str, ...]) -> None:
    other = msgspec.structs.replace(PLAIN, **fields)
    assert set(differing(PLAIN, other)) == set(differing(other, PLAIN)) == set(names)
    assert HIDDEN not in str(differing(PLAIN, other))


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        (Cancel("m"), Hold("m"), ("verb",)),
        (Cancel("m"), Cancel("n", 3), ("id", "if-version")),
        (Reschedule("m", At("noon")), Reschedule("m", At("noon", "UTC")), ("tz",)),
        (Reschedule("m", At("a", "b", "c", "d")), Reschedule("m", At("e", "f", "g", "h")), ("at", "tz", "gap", "fold")),
        (Reschedule("m", Now()), Reschedule("m", Now(), policy=Policy()), ("policy",)),
    ],
    ids=str,
)
def test_verbs_differ_too(one: Stated, other: Stated, names: tuple[str, ...]) -> None:
    assert differing(one, other) == names


def answer(story: Story, name: str, position: int | None, **fields: object) -> Answer:
    prepared = Prepared(command(schedule(), name), b"")
    appended = None if position is None else Appended(position, NOW)
    plain = Answer(prepared=prepared, appended=appended, result=story.fold.batch.results.get(name))
    return msgspec.structs.replace(plain, **fields)


def test_a_repeat_is_known_by_the_position_of_the_first() -> None:
    story = told()
    assert not answer(story, "schedule", 2).duplicate
    assert answer(story, "schedule", 3).duplicate
    assert answer(story, "schedule", None).duplicate
    assert not answer(story, "not applied yet", 3).duplicate


def test_a_rejection_says_why() -> None:
    story = told()
    story.say(schedule(), "other")
    refused = answer(story, "other", 3)
    assert (refused.rejected, refused.why) == (True, Reason.MESSAGE_CONFLICT)
    assert story.fold.batch.results["other"].decision is Decision.REJECTED
    taken = answer(story, "schedule", 2)
    assert (taken.rejected, taken.why) == (False, None)
    assert (answer(story, "queued", 9).rejected, answer(story, "queued", 9).why) == (False, None)


def test_an_id_that_means_something_else_is_a_conflict_and_no_duplicate() -> None:
    story = told()
    first = answer(story, "schedule", 3)
    assert first.result is not None
    other = conflict(first.prepared, first.appended, first.result, story.message())
    assert (other.rejected, other.why, other.duplicate) == (True, Reason.COMMAND_CONFLICT, False)
