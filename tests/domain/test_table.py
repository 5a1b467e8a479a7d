"""The table of the design, written out by hand, against the code: as data and by walking every cell with records."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from nereus_cli.domain.facts import Result, Verdict
from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.message import TABLE, Kind, Message, State, Work, cell
from nereus_cli.domain.outcome import Decision, Ending, Reason
from nereus_cli.domain.records import (
    Cancel,
    Evidence,
    Expire,
    Hold,
    In,
    LateHold,
    MessageCommand,
    Mutation,
    Outcome,
    Release,
    Replay,
    Reschedule,
    Retire,
    Stop,
)
from tests.domain.states import MAKERS
from tests.domain.story import ENDS, Story, schedule

# g+1: a new generation, SCHEDULED; =: already so; where: where it was; close: no further admission; 1, 10, 11, 12:
# refused, by exit status; -: stale, nothing happens; learn, verdict: other rules decide.
DESIGN = """
            SCHEDULED  RETRY_WAIT  HELD      PUBLISHING  UNCERTAIN  PUBLISHED  EXPIRED  CANCELED  DEAD_LETTER
Schedule    10         10          10        10          10         10         10       10        10
Cancel      CANCELED   CANCELED    CANCELED  11          11         12         12       =         12
Reschedule  g+1        g+1         g+1       11          11         12         12       12        12
Hold        HELD       HELD        =         11          11         12         12       12        12
Release     =          =           where     =           =          12         12       12        12
Stop        CANCELED   CANCELED    CANCELED  close       close      12         12       =         12
Resolve     verdict    verdict     verdict   verdict     verdict    verdict    verdict  verdict   verdict
Replay      1          1           1         11          11         12         12       12        g+1
Admission   PUBLISHING PUBLISHING  -         -           again      -          -        -         -
Outcome     learn      learn       learn     settle      settle     learn      learn    learn     learn
Evidence    learn      learn       learn     learn       learn      learn      learn    learn     learn
Expire      EXPIRED    EXPIRED     EXPIRED   close       close      -          -        -         -
LateHold    HELD       -           -         -           -          -          -        -         -
Retire      -          -           -         -           -          tombstone  tombstone tombstone tombstone
"""

WORDS = {
    "canceled": "CANCELED",
    "generation + 1, scheduled": "g+1",
    "held": "HELD",
    "where it was": "where",
    "already so": "=",
    "no further admission": "close",
    "publishing": "PUBLISHING",
    "as it is, publishing, if a retry waits": "again",
    "by the outcome tables": "settle",
    "risk and obligations": "learn",
    "expired": "EXPIRED",
    "tombstone": "tombstone",
    "by the verdict": "verdict",
    "STALE": "-",
    "MESSAGE_CONFLICT": "10",
    "NOT_DEAD": "1",
    "TOO_LATE_PUBLISHING": "11",
    "TOO_LATE_UNCERTAIN": "11",
    "TOO_LATE_PUBLISHED": "12",
    "TOO_LATE_EXPIRED": "12",
    "TOO_LATE_CANCELED": "12",
    "TOO_LATE_DEAD_LETTER": "12",
}


def _design() -> dict[tuple[str, str], str]:
    head, *lines = [line.split() for line in DESIGN.strip().splitlines()]
    return {(row, state): cell for row, *cells in lines for state, cell in zip(head, cells, strict=True)}


CELLS = _design()
WAYS = [(state, maker) for state, makers in MAKERS.items() for maker in makers]


def _named(value: object) -> str | None:
    return getattr(value, "__name__", None)


def test_the_table_is_that_of_the_design_cell_by_cell() -> None:
    assert {(kind.value, state.value): WORDS[TABLE[kind][state].value] for kind, state in product(Kind, State)} == CELLS


def test_the_table_is_total_and_a_refusal_names_the_state_it_refuses() -> None:
    for kind, state in product(Kind, State):
        word = cell(kind, state).value
        if word.startswith("TOO_LATE"):
            assert word == f"TOO_LATE_{state.value}"


@pytest.mark.parametrize(("state", "maker"), WAYS, ids=_named)
def test_each_maker_makes_what_it_says(state: str, maker: Callable[[], Story]) -> None:
    assert maker().message().state.value == state


COMMANDS: dict[str, MessageCommand] = {
    "Cancel": Cancel("m"),
    "Reschedule": Reschedule("m", In("2m", 120 * SECOND)),
    "Hold": Hold("m"),
    "Release": Release("m"),
    "Stop": Stop("m"),
    "Replay": Replay("m", In("2m", 120 * SECOND)),
}


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize(("state", "maker"), WAYS, ids=_named)
def test_what_people_ask_in_every_state(state: str, maker: Callable[[], Story], kind: str) -> None:
    story = maker()
    before = story.message()
    result = story.say(COMMANDS[kind], "asked")
    _check(CELLS[kind, state], before, story.message(), result, state, story.now)


def _check(cell: str, before: Message, after: Message, result: Result, state: str, now: int) -> None:
    assert result.message_id == "m"
    if cell == "1":
        assert (result.decision, result.reason, after) == (Decision.REJECTED, Reason.NOT_DEAD, before)
        return
    if cell in ("11", "12"):
        assert (result.decision, result.reason) == (Decision.REJECTED, Reason(f"TOO_LATE_{state}"))
        assert (after, result.attempt) == (before, before.last_attempt)
        assert (result.reason in (Reason.TOO_LATE_PUBLISHING, Reason.TOO_LATE_UNCERTAIN)) is (cell == "11")
        return
    assert (result.decision, result.reason, result.already) == (Decision.APPLIED, None, cell == "=")
    assert (result.generation, result.state_version) == (after.generation, after.state_version)
    if cell == "=":
        assert after == before
        return
    assert after.state_version == before.state_version + 1
    assert after.generation == before.generation + (1 if cell == "g+1" else 0)
    match cell:
        case "g+1":
            assert (after.state, after.deliver_at, after.expire_at) == (
                State.SCHEDULED, now + 120 * SECOND, now + 180 * SECOND,
            )  # fmt: skip
            assert (after.counted, after.uncounted, after.first_admitted_at, after.late_judged) == (0, 0, None, False)
            assert after.attempts == before.attempts
        case "where":
            assert getattr(before.condition, "was", None) == after.condition
        case "close":
            assert after.state is before.state
            assert getattr(after.condition, "closing", None) == Ending.STOPPED
            assert after.work is (Work.PUBLISHING if before.work is Work.PUBLISHING else Work.NONE)
            assert after.timer is None
        case _:
            assert after.state.value == cell


@pytest.mark.parametrize(("state", "maker"), WAYS, ids=_named)
def test_a_second_schedule_of_a_known_message_is_a_conflict_in_every_state(
    state: str, maker: Callable[[], Story]
) -> None:
    story = maker()
    before = story.message()
    result = story.say(schedule(), "another")
    assert (result.decision, result.reason) == (Decision.REJECTED, Reason.MESSAGE_CONFLICT)
    assert (story.message(), story.message().state.value) == (before, state)


def _owner_record(kind: str, story: Story) -> Mutation:
    message = story.message()
    late = max(story.now, message.expire_at or 0)
    match kind:
        case "Admission":
            due = max(message.deliver_at, min(story.now, (message.expire_at or 0) - 1))
            return story.admission(earliest=due, latest=due)
        case "Expire":
            return Expire("m", message.generation, late)
        case "LateHold":
            return LateHold("m", message.generation, late)
        case "Outcome":
            return Outcome(message_id="m", attempt_id="of nobody", **ENDS["published"])
        case "Evidence":
            return Evidence("m", "a", ENDS["published"]["side_effect"], "a receipt")
        case _:
            return Retire(("m",))


# What each owner record does in each state; a cell may name what it depends on.
OWNER_EFFECTS = {
    ("Admission", "scheduled"): ("PUBLISHING", Verdict.ADMITTED),
    ("Admission", "retry_wait"): ("PUBLISHING", Verdict.ADMITTED),
    ("Admission", "uncertain_waiting"): ("UNCERTAIN", Verdict.ADMITTED),
    ("Expire", "scheduled"): ("EXPIRED", Verdict.TAKEN),
    ("Expire", "retry_wait"): ("EXPIRED", Verdict.TAKEN),
    ("Expire", "held"): ("EXPIRED", Verdict.TAKEN),
    ("Expire", "held_while_retrying"): ("EXPIRED", Verdict.TAKEN),
    ("Expire", "held_late"): ("EXPIRED", Verdict.TAKEN),
    ("Expire", "publishing"): ("PUBLISHING", Verdict.TAKEN),
    ("Expire", "publishing_again"): ("PUBLISHING", Verdict.TAKEN),
    ("Expire", "uncertain"): ("UNCERTAIN", Verdict.TAKEN),
    ("Expire", "uncertain_waiting"): ("UNCERTAIN", Verdict.TAKEN),
    ("Expire", "uncertain_publishing"): ("UNCERTAIN", Verdict.TAKEN),
    ("LateHold", "scheduled"): ("HELD", Verdict.TAKEN),
}


@pytest.mark.parametrize("kind", ["Admission", "Outcome", "Evidence", "Expire", "LateHold", "Retire"])
@pytest.mark.parametrize(("state", "maker"), WAYS, ids=_named)
def test_what_the_owner_decides_in_every_state(state: str, maker: Callable[[], Story], kind: str) -> None:
    story = maker()
    before = story.message()
    untouched = Verdict.TAKEN if kind in ("Evidence", "Retire") else Verdict.STALE
    wanted, verdict = OWNER_EFFECTS.get((kind, maker.__name__), (state, untouched))
    assert story.do(_owner_record(kind, story)) is verdict
    after = story.message()
    assert (after.state.value, after.state_version) == (wanted, before.state_version)
    if (kind, maker.__name__) not in OWNER_EFFECTS:
        assert after == before
    elif kind == "Admission":
        assert (after.work, after.attempts) == (Work.PUBLISHING, before.attempts + 1)
    elif kind == "Expire" and CELLS[kind, state] == "close":
        assert (getattr(after.condition, "closing", None), after.timer) == ("EXPIRED", None)


def test_the_effects_of_owner_records_cover_exactly_the_cells_that_have_one() -> None:
    effective = {
        (kind, state) for (kind, state), cell in CELLS.items() if cell not in ("-", "learn", "verdict", "tombstone")
    }
    walked = {(kind, state) for kind, name in OWNER_EFFECTS for state, m in WAYS if m.__name__ == name}
    assert walked == {(k, s) for k, s in effective if k in ("Admission", "Expire", "LateHold")}
