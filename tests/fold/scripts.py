"""Random logs: steps that make plausible records, and implausible ones, from a handful of ids and instants."""

from __future__ import annotations

from typing import Final, TypeAlias

from hypothesis import strategies as st

from nereus_cli.codec import encode_command
from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.limits import TINY
from nereus_cli.domain.message import VERDICTS, Message
from nereus_cli.domain.records import (
    Cancel,
    ClockStep,
    Evidence,
    Expire,
    Expiry,
    Floor,
    Hold,
    In,
    LaneControl,
    LateHold,
    Now,
    Outcome,
    Policy,
    Release,
    Replay,
    Reschedule,
    Resolve,
    Schedule,
    Shell,
    Stated,
    Stop,
    TimeFence,
)
from nereus_cli.ports import Link
from tests.domain.story import ENDS, SHELL, Story, command

Step: TypeAlias = tuple[str, int, int]
NAMES: Final = ("a", "b", "c")
HOWS: Final = ("published", "retriable", "retriable", "permanent", "door", "unknown", "unknown", "lost")
_LENGTHS: Final = (0, 1, SECOND, 3 * SECOND, 60 * SECOND)
_POLICIES: Final = (
    Policy(),
    Policy(max_attempts=2, retry_base_ns=SECOND),
    Policy(max_attempts=3, on_uncertain="wait"),
    Policy(max_attempts=2, timeout_ns=SECOND, on_uncertain="retry"),
    Policy(max_attempts=50, retry_for_ns=3 * SECOND),
)
PEOPLE: Final = ("schedule", "cancel", "reschedule", "hold", "release", "stop", "edit", "other")
OWNERS: Final = ("admit", "admit", "admit", "admit", "end", "end", "end", "expire", "late", "mark")
GARBAGE: Final = b"\xc1"
ODD: Final = ("own", "repeat", "garbage", "void", "foreign", "stale", "clock")

steps: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from((*PEOPLE, *OWNERS, *OWNERS, *OWNERS, *ODD)), st.integers(0, 2), st.integers(0, 59)
)
scripts = st.lists(steps, max_size=12) | st.lists(steps, min_size=25, max_size=80)


def play(script: list[Step]) -> Story:
    """The log that the steps make, owned from its first record on."""
    story = Story(TINY)
    story.own()
    for step in script:
        perform(story, step)
    return story


stories = scripts.map(play)


def perform(story: Story, step: Step) -> None:
    """One step: one record, or none where there is nothing it could be about."""
    verb, which, detail = step
    name = NAMES[which]
    known = name in story.fold.batch.messages
    if verb in PEOPLE:
        _person(story, verb if known or detail % 8 == 0 else "schedule", name, detail)
    elif verb in ODD:
        _odd(story, verb, name, detail)
    elif known:
        _owner(story, verb, name, detail)


def _person(story: Story, verb: str, name: str, detail: int) -> None:
    version = (None, None, 1, 2)[detail % 4]
    length = _LENGTHS[detail % 5]
    later = In(f"{length}ns", length)
    stated: dict[str, Stated] = {
        "schedule": Schedule(
            name, later, SHELL, _POLICIES[detail % 5], key=("k", None, None)[detail % 3],
            tags=(("t", str(detail % 2)),), expiry=Expiry(after_ns=(None, 2 * SECOND)[detail % 2]),
            late_after_ns=(None, None, SECOND)[detail % 3],
        ),
        "cancel": Cancel(name, version),
        "reschedule": Reschedule(name, later, version, Expiry(after_ns=(None, 5 * SECOND)[detail % 2])),
        "hold": Hold(name, version),
        "release": Release(name, version),
        "stop": Stop(name, version, kill=bool(detail % 2)),
        "edit": Reschedule(name, Now(), target=Shell((b"edited",)), policy=_POLICIES[detail % 5]),
        "other": (
            Resolve(name, detail % 5, VERDICTS[detail % 4], "seen", if_version=version),
            Replay(name, later, accept_duplicate=bool(detail % 2), new_key=bool(detail % 4), if_version=version),
            LaneControl("shell", "pause"),
        )[detail % 3],
    }  # fmt: skip
    reused = f"{verb}-{name}" if detail % 7 == 0 else ""
    story.say(stated[verb], reused, requested_at=story.now)


def _owner(story: Story, verb: str, name: str, detail: int) -> None:
    message = story.message(name)
    match verb:
        case "admit":
            story.now = max(story.now, message.timer or 0) if detail % 3 else story.now
            story.do(story.admission(name, earliest=story.now, latest=story.now + detail % 2))
        case "end":
            running = [a for a in message.open_attempts if a.side_effect is None] or message.open_attempts
            if running:
                how = ENDS[HOWS[detail % len(HOWS)]]
                story.do(Outcome(message_id=name, attempt_id=running[detail % len(running)].attempt_id, **how))
        case "expire":
            story.do(Expire(name, message.generation, _when(story, message.expire_at, detail)))
        case "late":
            late = _when(story, message.deliver_at + (message.late_after_ns or 0) + 1, detail)
            story.do(LateHold(name, message.generation, late))
        case _:
            _mark(story, message, detail)


def _when(story: Story, instant: int | None, detail: int) -> int:
    return instant if instant is not None and detail % 3 else story.now


def _mark(story: Story, message: Message, detail: int) -> None:
    effect = ENDS["published"]["side_effect"]
    marks = (
        TimeFence(story.now - detail),
        ClockStep(detail, 2 * detail),
        Floor(detail),
        Evidence(message.message_id, "a1", effect, "x"),
    )
    story.do(marks[detail % 4])


def _odd(story: Story, verb: str, name: str, detail: int) -> None:
    match verb:
        case "own":
            story.own()
        case "repeat":
            record = story.records[detail % len(story.records)]
            if record.link is None:
                story.tell(record.payload)
        case "garbage":
            story.tell(GARBAGE, Link(1, detail, 0) if detail % 2 else None)
        case "void":
            story.do(Floor(1), epoch=story.head.epoch + detail % 3 - 1, prev=story.head.owner_position - detail % 2)
        case "foreign":
            story.tell(encode_command(command(Schedule(name, Now(), SHELL), "nc~x" * (detail % 3))))
        case "stale":
            story.do(Outcome(message_id=name, attempt_id="nobody's", **ENDS["published"]))
        case _:
            story.now += (detail - 20) * SECOND
