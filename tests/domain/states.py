"""A message in each state, brought there by records and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nereus_cli.domain.facts import Verdict
from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.records import Cancel, Expire, Expiry, Hold, LateHold, Stop
from tests.domain.story import Story, told

MINUTE = 60 * SECOND
EXPIRING: Final[dict[str, Any]] = {"expiry": Expiry(after_ns=MINUTE), "late_after_ns": 5 * SECOND}


def scheduled() -> Story:
    return told(**EXPIRING)


def retry_wait() -> Story:
    story = told(policy={"max_attempts": 3, "retry_base_ns": SECOND, "on_uncertain": "wait"}, **EXPIRING)
    story.attempt("retriable")
    return story


def held() -> Story:
    story = scheduled()
    story.say(Hold("m"))
    return story


def held_while_retrying() -> Story:
    story = retry_wait()
    story.say(Hold("m"))
    return story


def held_late() -> Story:
    story = scheduled()
    story.now = story.message().deliver_at + 6 * SECOND
    assert story.do(LateHold("m", 0, story.now)) is Verdict.TAKEN
    return story


def publishing() -> Story:
    story = scheduled()
    story.admit()
    return story


def publishing_again() -> Story:
    story = retry_wait()
    story.admit()
    return story


def stopping() -> Story:
    story = publishing_again()
    story.say(Stop("m"))
    return story


def uncertain() -> Story:
    story = scheduled()
    story.attempt("unknown")
    return story


def uncertain_waiting() -> Story:
    story = told(policy={"max_attempts": 3, "retry_base_ns": SECOND}, **EXPIRING)
    story.attempt("unknown")
    return story


def uncertain_publishing() -> Story:
    story = uncertain_waiting()
    story.admit()
    return story


def published() -> Story:
    story = scheduled()
    story.attempt("published")
    return story


def expired() -> Story:
    story = scheduled()
    expire_at = story.message().expire_at
    assert expire_at is not None
    story.now = expire_at
    assert story.do(Expire("m", 0, expire_at)) is Verdict.TAKEN
    return story


def canceled() -> Story:
    story = scheduled()
    story.say(Cancel("m"))
    return story


def dead_letter() -> Story:
    story = scheduled()
    story.attempt("permanent")
    return story


MAKERS: Final[dict[str, tuple[Callable[[], Story], ...]]] = {
    "SCHEDULED": (scheduled,),
    "RETRY_WAIT": (retry_wait,),
    "HELD": (held, held_while_retrying, held_late),
    "PUBLISHING": (publishing, publishing_again, stopping),
    "UNCERTAIN": (uncertain, uncertain_waiting, uncertain_publishing),
    "PUBLISHED": (published,),
    "EXPIRED": (expired,),
    "CANCELED": (canceled,),
    "DEAD_LETTER": (dead_letter,),
}
