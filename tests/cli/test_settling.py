"""``resolve``: every verdict in every state, what it answers, and what is seen of it afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.owning import UNKNOWN, Owning
from tests.cli.running import Document, Nereus
from tests.cli.unsettled_states import MAKERS, SEEN, exhausted, uncertain, with_attempts_left

VERDICTS = ("published", "not-published", "retry", "give-up")
NONE, SETTLED = (1, "NO_SUCH_ATTEMPT"), (1, "ALREADY_SETTLED")
BUSY = (11, "TOO_LATE_PUBLISHING")

# What each verdict on attempt 1 answers: a state, or the exit status and the reason; "=" is already so.
TABLE: dict[str, tuple[str | tuple[int, str], ...]] = {
    "scheduled": (NONE, NONE, NONE, NONE),
    "retrying": (SETTLED, SETTLED, SETTLED, SETTLED),
    "held": (NONE, NONE, NONE, NONE),
    "canceled": (NONE, NONE, NONE, NONE),
    "expired": (NONE, NONE, NONE, NONE),
    "publishing": (BUSY, BUSY, BUSY, BUSY),
    "published": (SETTLED, SETTLED, SETTLED, SETTLED),
    "dead": (SETTLED, SETTLED, SETTLED, SETTLED),
    "uncertain": ("PUBLISHED", "DEAD_LETTER", "UNCERTAIN", "DEAD_LETTER"),
    "with attempts left": ("PUBLISHED", "RETRY_WAIT", "UNCERTAIN", "DEAD_LETTER"),
    "again": ("PUBLISHED", "PUBLISHING", "=", "UNCERTAIN"),
    "stopped": ("PUBLISHED", "DEAD_LETTER", (11, "TOO_LATE_UNCERTAIN"), "DEAD_LETTER"),
    "exhausted": ("DEAD_LETTER", "DEAD_LETTER", (12, "TOO_LATE_DEAD_LETTER"), "DEAD_LETTER"),
    "replayed": ("SCHEDULED", "SCHEDULED", NONE, "SCHEDULED"),
    "given up": (SETTLED, SETTLED, SETTLED, "="),
    "seen off": ("DEAD_LETTER", "DEAD_LETTER", (12, "TOO_LATE_DEAD_LETTER"), "DEAD_LETTER"),
}
CELLS = [(state, verdict, cell) for state, row in TABLE.items() for verdict, cell in zip(VERDICTS, row, strict=True)]


def settle(nereus: Nereus, verdict: str, *flags: str, attempt: int = 1) -> tuple[int, Document]:
    return nereus.json("resolve", "x", "--attempt", str(attempt), f"--{verdict}", *SEEN, *flags)


def attempts(nereus: Nereus) -> list[Document]:
    return list(nereus.json("show", "x")[1]["attempts"])


def test_the_table_has_every_state() -> None:
    assert TABLE.keys() == MAKERS.keys()


@pytest.mark.parametrize(("state", "verdict", "cell"), CELLS, ids=str)
def test_every_verdict_in_every_state(
    nereus: Nereus, owning: Owning, state: str, verdict: str, cell: str | tuple[int, str]
) -> None:
    MAKERS[state](nereus, owning)
    before = nereus.json("show", "x")[1]
    offered = {
        choice["verdict"]
        for item in nereus.json("uncertain", "report", "--all")[1]["items"]
        if item["attempt"] == 1
        for choice in item["choices"]
    }
    status, receipt = settle(nereus, verdict, "--by", "anna")
    after = nereus.json("show", "x")[1]
    takes_effect = isinstance(cell, str) and cell != "="
    assert (verdict in offered) is takes_effect
    if isinstance(cell, tuple):
        assert (status, receipt["outcome"], receipt["reason"]) == (cell[0], "REJECTED", cell[1])
    else:
        assert (status, receipt["outcome"], receipt["already"], receipt["verb"]) == (
            0,
            "APPLIED",
            cell == "=",
            "resolve",
        )
    if not takes_effect:
        assert after | {"as_of": 0} == before | {"as_of": 0}
        return
    assert (receipt["state"], after["state"]) == (cell, cell)
    assert after["state_version"] == before["state_version"] + 1 == receipt["state_version"]
    effect = {"published": "PUBLISHED", "not-published": "NOT_PUBLISHED"}.get(verdict, "UNKNOWN")
    basis = "PROVEN_ABSENT" if verdict == "not-published" else None
    first = after["attempts"][0]
    assert (first["side_effect"], first["basis"]) == (effect, basis)
    assert {**first["resolution"], "at": None} == {"verdict": verdict, "evidence": "seen", "by": "anna", "at": None}
    assert first["code"] == before["attempts"][0]["code"]
    assert (after["history"][-1]["event"], "anna" in after["history"][-1]["detail"]) == ("Resolve", True)


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [(one, one, "=") for one in VERDICTS]
    + [("retry", other, "") for other in VERDICTS if other != "retry"]
    + [(one, other, "SETTLED") for one in VERDICTS if one != "retry" for other in VERDICTS if other != one],
)
def test_a_second_verdict(nereus: Nereus, owning: Owning, first: str, second: str, answer: str) -> None:
    with_attempts_left(nereus, owning)
    assert settle(nereus, first)[0] == 0
    status, receipt = settle(nereus, second, "--by", "bert")
    if answer == "SETTLED":
        assert (status, receipt["reason"]) == SETTLED
        assert "by whom" in nereus("resolve", "x", "--attempt", "1", f"--{second}", *SEEN).notes[0]
    else:
        assert (status, receipt["already"]) == (0, answer == "=")
    (attempt,) = attempts(nereus)
    assert attempt["resolution"]["verdict"] == (second if answer == "" else first)


def test_a_verdict_of_retry_is_one_more_attempt_beyond_the_budget(nereus: Nereus, owning: Owning) -> None:
    uncertain(nereus, owning)
    settle(nereus, "retry")
    shown = nereus.json("show", "x")[1]
    assert (shown["state"], shown["work"], shown["next_attempt_at"] is not None) == ("UNCERTAIN", "TIMELINE", True)
    assert [item["attempt"] for item in nereus.json("uncertain")[1]["items"]] == [1]
    owning.end("x", owning.admit("x"), UNKNOWN)
    assert [one["side_effect"] for one in attempts(nereus)] == ["UNKNOWN", "UNKNOWN"]
    assert nereus.json("show", "x")[1]["next_attempt_at"] is None
    settle(nereus, "not-published")
    assert settle(nereus, "not-published", attempt=2)[1]["state"] == "DEAD_LETTER"


def test_two_effects_are_a_confirmed_duplicate(nereus: Nereus, owning: Owning) -> None:
    exhausted(nereus, owning)
    assert nereus.json("show", "x")[1]["duplicate_risk"] == "possible"
    settle(nereus, "published")
    settle(nereus, "published", attempt=2)
    assert nereus.json("show", "x")[1]["duplicate_risk"] == "confirmed"


def test_a_message_nobody_knows_and_numbers_there_are_not(nereus: Nereus, owning: Owning) -> None:
    uncertain(nereus, owning)
    assert nereus.json("resolve", "nobody", "--attempt", "1", "--retry", *SEEN)[0] == 13
    for number in (2, 10**17):
        assert settle(nereus, "published", attempt=number)[1]["reason"] == "NO_SUCH_ATTEMPT"
    assert nereus("resolve", "x", "--attempt", "2", "--retry", *SEEN).notes == [
        "nereus: refused x: it has no such attempt to judge: nereus show lists them"
    ]


def test_the_same_command_again_is_no_second_verdict(nereus: Nereus, owning: Owning) -> None:
    uncertain(nereus, owning)
    status, first = settle(nereus, "published", "--command-id", "c")
    assert (status, first["duplicate"]) == (0, False)
    status, again = settle(nereus, "published", "--command-id", "c")
    assert (status, again) == (0, first | {"duplicate": True})
    assert nereus.json("result", "c")[1]["position"] == first["position"]
    assert nereus("result", "c").status == 0
    assert [one["event"] for one in nereus.json("show", "x")[1]["history"]].count("Resolve") == 1


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (("--attempt", "1", "--published", "--evidence", "something else"), ["evidence"]),
        (("--attempt", "2", "--published", *SEEN), ["attempt"]),
        (("--attempt", "1", "--retry", *SEEN), ["verdict"]),
        (("--attempt", "1", "--published", *SEEN, "--by", "bert"), ["by"]),
        (("--attempt", "1", "--published", *SEEN, "--if-version", "1"), ["if-version"]),
    ],
)
def test_the_same_command_id_with_another_verdict_is_a_conflict(
    nereus: Nereus, owning: Owning, flags: tuple[str, ...], names: list[str]
) -> None:
    uncertain(nereus, owning)
    settle(nereus, "published", "--command-id", "c")
    status, clash = nereus.json("resolve", "x", *flags, "--command-id", "c")
    assert (status, clash["reason"], clash["differing"]) == (10, "COMMAND_CONFLICT", names)
    assert nereus("resolve", "x", *flags, "--command-id", "c").status == 10


def test_a_verdict_may_be_bound_to_a_version(nereus: Nereus, owning: Owning) -> None:
    uncertain(nereus, owning)
    assert settle(nereus, "published", "--if-version", "7")[0] == 14
    assert settle(nereus, "published", "--if-version", "1")[1]["state_version"] == 2


def test_a_refused_verdict_is_known_by_its_command_id(nereus: Nereus, owning: Owning) -> None:
    uncertain(nereus, owning)
    assert settle(nereus, "published", "--command-id", "c", attempt=5)[0] == 1
    status, receipt = nereus.json("result", "c")
    assert (status, receipt["reason"]) == NONE


def test_a_verdict_is_by_whoever_asks_unless_a_name_is_said(
    nereus: Nereus, owning: Owning, monkeypatch: pytest.MonkeyPatch
) -> None:
    uncertain(nereus, owning)
    monkeypatch.setattr("nereus_cli.capture.user_name", lambda: "carla")
    assert nereus("resolve", "x", "--attempt", "1", "--retry", *SEEN).text.startswith(
        "settled x  attempt 1 stays uncertain: one more attempt, allowed by carla  generation 0"
    )
    assert attempts(nereus)[0]["resolution"]["by"] == "carla"
    assert "attempt 1   retry, says carla at " in nereus("show", "x").text


def test_a_colleague_may_repeat_the_line(nereus: Nereus, owning: Owning, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks is captured, not said: only a name that was typed makes it another command."""
    uncertain(nereus, owning)
    settle(nereus, "published", "--command-id", "c")
    monkeypatch.setattr("nereus_cli.capture.user_name", lambda: "carla")
    assert settle(nereus, "published", "--command-id", "c")[1]["duplicate"] is True


@pytest.mark.parametrize(
    ("state", "verdict", "said"),
    [
        ("uncertain", "published", "attempt 1 published: settled by anna  generation"),
        ("exhausted", "published", "attempt 1 published: settled by anna  the message is a dead letter"),
        ("with attempts left", "not-published", "attempt 1 not published: settled by anna  tried again now"),
        ("uncertain", "not-published", "attempt 1 not published: settled by anna  the message is a dead letter"),
        ("again", "not-published", "attempt 1 not published: settled by anna  another attempt is in progress"),
        ("uncertain", "retry", "attempt 1 stays uncertain: one more attempt, allowed by anna"),
        ("uncertain", "give-up", "attempt 1 given up: settled by anna  the message is a dead letter"),
    ],
)
def test_people_are_told_what_follows(nereus: Nereus, owning: Owning, state: str, verdict: str, said: str) -> None:
    MAKERS[state](nereus, owning)
    ran = nereus("resolve", "x", "--attempt", "1", f"--{verdict}", *SEEN, "--by", "anna")
    assert (ran.status, ran.text.startswith("settled x  "), said in ran.text) == (0, True, True), ran
    moves = nereus.json("show", "x")[1]["work"] == "TIMELINE"
    assert ran.notes == (["nereus: no daemon: start `nereus run`"] if moves else [])
    again = nereus("resolve", "x", "--attempt", "1", f"--{verdict}", *SEEN)
    assert (again.status, again.text.startswith("already: ")) == (0, True)


def test_a_verdict_can_be_prepared_and_sent_later(nereus: Nereus, owning: Owning, tmp_path: Path) -> None:
    uncertain(nereus, owning)
    prepared = nereus("prepare", "resolve", "x", "--attempt", "1", "--published", *SEEN)
    assert (prepared.status, prepared.document["verb"]) == (0, "resolve")
    file = tmp_path / "verdict"
    file.write_bytes(prepared.out)
    assert nereus.json("submit", str(file))[1]["state"] == "PUBLISHED"
    assert nereus.json("submit", str(file))[1]["duplicate"] is True
    assert nereus.json("result", str(file))[0] == 0


def test_nothing_is_settled_by_a_dry_run_or_before_it_is_asked_for(nereus: Nereus, owning: Owning) -> None:
    uncertain(nereus, owning)
    line = ("resolve", "x", "--attempt", "1", "--published", *SEEN)
    assert nereus.json(*line, "--dry-run")[1]["dry_run"] is True
    assert nereus("uncertain").status == 30
    assert nereus.json(*line, "--no-wait")[1]["outcome"] == "QUEUED"
    assert nereus("uncertain").status == 0
    assert nereus("resolve", "x", "--attempt", "1", "--published", *SEEN, "-q").text == "x\n"


def test_no_store_is_made_for_a_verdict(nereus: Nereus) -> None:
    for line in (
        ("resolve", "x", "--give-up", *SEEN),
        ("dead", "replay", "x"),
        ("uncertain", "report"),
        ("dead", "list"),
    ):
        assert nereus(*line).status == 66, line
        assert not nereus.store.exists()


def test_events_say_what_was_decided(nereus: Nereus, owning: Owning) -> None:
    uncertain(nereus, owning)
    nereus("resolve", "x", "--attempt", "1", "--give-up", "--evidence", "line\nfeed \x1b[31m", "--by", "anna")
    nereus("dead", "replay", "x", "--accept-duplicate")
    *_, settled, replay = nereus("events", "--json").documents
    facts = {"event": "resolve", "attempt": 1, "verdict": "give-up", "by": "anna", "evidence": "line\nfeed \x1b[31m"}
    assert facts.items() <= settled.items()
    assert {"event": "replay", "accept_duplicate": True, "new_key": False}.items() <= replay.items()
    first, second = nereus("events").text.splitlines()[-2:]
    assert first.endswith("resolve  x  attempt 1  give-up  by anna  line\\nfeed \\x1b[31m")
    assert second.endswith("replay  x  accept-duplicate")
