"""``dead``: what gave up is listed, explained, tried once more as a new generation, or seen off."""

from __future__ import annotations

import pytest

from tests.cli.owning import DEAD, PUBLISHED, Owning
from tests.cli.running import Nereus
from tests.cli.unsettled_states import MAKERS, SEEN, dead, exhausted, given_up, seen_off, uncertain

REPLAY = {
    "dead": 0, "exhausted": 1, "given up": 1, "seen off": 1, "publishing": 11, "again": 11, "uncertain": 11,
    "with attempts left": 11, "stopped": 11, "published": 12, "expired": 12, "canceled": 12,
}  # fmt: skip
REASONS = {"exhausted": "DUPLICATE_NOT_ACCEPTED", "given up": "DUPLICATE_NOT_ACCEPTED"}
REASONS |= {"seen off": "DUPLICATE_NOT_ACCEPTED"}


@pytest.mark.parametrize("state", MAKERS)
def test_replay_in_every_state(nereus: Nereus, owning: Owning, state: str) -> None:
    MAKERS[state](nereus, owning)
    before = nereus.json("show", "x")[1]
    status, receipt = nereus.json("dead", "replay", "x")
    assert (status, receipt["verb"]) == (REPLAY.get(state, 1), "replay")
    if status == 1:
        assert receipt["reason"] == REASONS.get(state, "NOT_DEAD")
    status, receipt = nereus.json("dead", "replay", "x", "--accept-duplicate")
    if before["state"] != "DEAD_LETTER":
        assert (status, receipt["outcome"]) == (REPLAY.get(state, 1), "REJECTED")
    elif state != "dead":
        assert (status, receipt["generation"], receipt["state"]) == (0, before["generation"] + 1, "SCHEDULED")


def test_a_replay_is_a_new_generation_with_its_lineage(nereus: Nereus, owning: Owning) -> None:
    dead(nereus, owning)
    status, receipt = nereus.json("dead", "replay", "x", "--in", "1h", "--command-id", "c", "--reason", "disk is back")
    assert (status, receipt["generation"], receipt["state"]) == (0, 1, "SCHEDULED")
    assert receipt["deliver_at"] is not None
    assert nereus.json("dead", "replay", "x", "--in", "1h", "--command-id", "c")[1] == receipt | {"duplicate": True}
    assert nereus.json("result", "c")[1]["generation"] == 1
    shown = nereus.json("show", "x")[1]
    assert (shown["deliver_at"], shown["state"], shown["work"]) == (receipt["deliver_at"], "SCHEDULED", "TIMELINE")
    assert [(one["event"], one["generation"]) for one in shown["history"]] == [
        ("Schedule", 0), ("Admission", 0), ("Outcome", 0), ("Replay", 1),
    ]  # fmt: skip
    assert shown["history"][-1]["detail"] == "disk is back"
    assert nereus("dead", "list").out == b""


def test_a_replay_says_which_key_the_receiver_sees_and_when(nereus: Nereus, owning: Owning) -> None:
    dead(nereus, owning)
    ran = nereus("dead", "replay", "x", "--at", "2027-01-01T09:00", "--tz", "Europe/Berlin")
    assert ran.text.startswith("replayed x  with the idempotency key it had  generation 1  position ")
    assert "due 2027-01-01T08:00:00.000Z (Fri 2027-01-01 09:00:00 +01:00 Europe/Berlin)" in ran.text
    assert ran.notes == ["nereus: no daemon: start `nereus run`"]
    nereus("run-now", "x")
    owning.end("x", owning.admit("x"), DEAD)
    assert "with a new idempotency key" in nereus("dead", "replay", "x", "--new-key").text


def test_a_replay_to_a_past_time_is_refused_before_it_is_sent(nereus: Nereus, owning: Owning) -> None:
    dead(nereus, owning)
    line = ("dead", "replay", "x", "--at", "2020-01-01T00:00:00Z")
    status, error = nereus.json(*line)
    assert (status, error["error"]) == (1, "PAST")
    assert nereus.json(*line, "--command-id", "c")[1]["reason"] == "PAST"
    assert nereus("dead", "list").status == 0


def test_the_replay_of_what_may_have_happened_is_asked_for_by_name(nereus: Nereus, owning: Owning) -> None:
    uncertain(nereus, owning)
    nereus("resolve", "x", "--attempt", "1", "--give-up", *SEEN)
    refused = nereus("dead", "replay", "x")
    assert (refused.status, "--accept-duplicate" in refused.notes[0]) == (1, True)
    assert nereus("dead", "replay", "x", "--accept-duplicate").status == 0


def test_a_replay_may_be_bound_to_a_version_and_prepared(nereus: Nereus, owning: Owning) -> None:
    dead(nereus, owning)
    assert nereus("dead", "replay", "x", "--if-version", "9").status == 14
    prepared = nereus("prepare", "dead", "replay", "x", "--if-version", "1")
    assert (prepared.status, prepared.document["verb"]) == (0, "replay")
    (nereus.store.parent / "file").write_bytes(prepared.out)
    assert nereus.json("submit", str(nereus.store.parent / "file"))[1]["generation"] == 1


def test_dead_letters_are_listed_with_their_reasons(nereus: Nereus, owning: Owning) -> None:
    for number, name in enumerate(("a", "b", "c")):
        when = ("--at", f"2026-01-0{number + 1}T00:00:00Z", "--allow-past")
        nereus("schedule", *when, "--id", name, "--tag", f"n={name}", "--", "true")
        owning.end(name, owning.admit(name), DEAD)
    nereus("schedule", "--in", "1h", "--id", "alive", "--", "true")
    nereus("resolve", "b", "--give-up", *SEEN)
    *found, end = nereus("dead", "list", "--json").documents
    assert [(one["message_id"], one["reason"], one["given_up"]) for one in found] == [
        ("a", "PERMANENT", False), ("b", "PERMANENT", True), ("c", "PERMANENT", False),
    ]  # fmt: skip
    assert (end["schema"], end["next"]) == ("nereus.end/1", None)
    text = nereus("dead", "list").text.splitlines()
    assert [line.split("\t")[:2] for line in text] == [
        ["a", "DEAD_LETTER PERMANENT"], ["b", "DEAD_LETTER PERMANENT seen off"], ["c", "DEAD_LETTER PERMANENT"],
    ]  # fmt: skip
    assert [line.split("\t")[0] for line in nereus("dead", "list", "--open").text.splitlines()] == ["a", "c"]
    assert nereus("dead", "list", "--tag", "n=c").text.startswith("c\t")


def test_a_list_of_open_ones_goes_on_where_it_ended(nereus: Nereus, owning: Owning) -> None:
    for name in "abcdef":
        nereus("schedule", "--in", "0s", "--id", name, "--", "true")
        owning.end(name, owning.admit(name), DEAD)
    for name in "bcf":
        nereus("resolve", name, "--give-up", *SEEN)
    for flags, pages in ((("--open",), [["a", "d"], ["e"]]), ((), [["a", "b"], ["c", "d"], ["e", "f"]])):
        cursor: tuple[str, ...] = ()
        for expected in pages:
            *page, end = nereus("dead", "list", "--json", "--limit", "2", *flags, *cursor).documents
            assert [one["message_id"] for one in page] == expected
            cursor = ("--cursor", end["next"] or "")
        assert cursor[1] == ""
    assert "--cursor" in nereus("dead", "list", "--limit", "1").notes[0]


@pytest.mark.parametrize("state", ["dead", "exhausted", "given up", "seen off"])
def test_a_dead_letter_says_why_and_its_lines_work(nereus: Nereus, owning: Owning, state: str) -> None:
    MAKERS[state](nereus, owning)
    status, shown = nereus.json("dead", "show", "x")
    facts = shown["dead"]
    assert (status, facts["reason"], facts["given_up"]) == (0, shown["reason"], state == "seen off")
    assert facts["unknown_attempts"] == ([1, 2] if state in ("exhausted", "seen off") else [])
    text = nereus("dead", "show", "x").text
    for line in (facts["why"], facts["replay"], *facts["commands"]):
        assert line in text
    assert ("--accept-duplicate" in facts["replay"]) is (state != "dead")
    assert any(line.startswith("nereus resolve x --give-up") for line in facts["commands"]) is (state != "seen off")
    assert nereus(*facts["replay"].split()[1:-2]).status == 0


def test_what_is_not_dead_is_not_shown_as_such(nereus: Nereus, owning: Owning) -> None:
    nereus("schedule", "--in", "1h", "--id", "x", "--", "true")
    status, error = nereus.json("dead", "show", "x")
    assert (status, error["error"], error["details"]) == (1, "NOT_DEAD", {"message_id": "x", "state": "SCHEDULED"})
    assert nereus("dead", "show", "nobody").status == 13
    assert owning is not None


def attention(nereus: Nereus) -> dict[str, str]:
    return {one["code"]: one["command"] for one in nereus.json("status")[1]["attention"]}


def test_what_was_seen_off_asks_for_nobody(nereus: Nereus, owning: Owning) -> None:
    exhausted(nereus, owning)
    assert (nereus("status", "--check").status, nereus("uncertain").status) == (30, 30)
    assert attention(nereus) == {"DEAD_LETTER": "nereus dead list --open"}
    ran = nereus("resolve", "x", "--give-up", *SEEN, "--by", "anna")
    assert "the dead letter was seen off by anna" in ran.text
    assert (nereus("status", "--check").status, nereus("uncertain").status, attention(nereus)) == (0, 0, {})
    assert nereus("uncertain", "--all").status == 30
    assert nereus.json("resolve", "x", "--give-up", *SEEN)[1]["already"] is True
    assert "seen off" in nereus("show", "x").text
    assert nereus.json("show", "x")[1]["given_up"] is True


@pytest.mark.parametrize(
    "state", [name for name in MAKERS if name not in ("dead", "exhausted", "given up", "seen off")]
)
def test_only_a_dead_letter_is_seen_off(nereus: Nereus, owning: Owning, state: str) -> None:
    MAKERS[state](nereus, owning)
    status, receipt = nereus.json("resolve", "x", "--give-up", *SEEN)
    assert (status, receipt["reason"]) == (1, "NO_SUCH_ATTEMPT")


def test_a_replayed_letter_that_dies_again_asks_anew(nereus: Nereus, owning: Owning) -> None:
    dead(nereus, owning)
    nereus("resolve", "x", "--give-up", *SEEN)
    nereus("dead", "replay", "x")
    owning.end("x", owning.admit("x"), DEAD)
    assert nereus("status", "--check").status == 30
    nereus("dead", "replay", "x")
    owning.end("x", owning.admit("x"), PUBLISHED)
    assert nereus("status", "--check").status == 0


def test_what_was_given_up_attempt_by_attempt_is_one_dead_letter(nereus: Nereus, owning: Owning) -> None:
    given_up(nereus, owning)
    assert nereus("uncertain", "--all").status == 0
    assert attention(nereus) == {"DEAD_LETTER": "nereus dead list --open"}
    seen = nereus.json("resolve", "x", "--give-up", *SEEN)
    assert (seen[0], seen[1]["already"], attention(nereus)) == (0, False, {})


def test_dead_letters_are_counted_however_many_were_seen_off(nereus: Nereus, owning: Owning) -> None:
    seen_off(nereus, owning)
    nereus("schedule", "--in", "0s", "--id", "y", "--", "true")
    owning.end("y", owning.admit("y"), DEAD)
    (one,) = nereus.json("status")[1]["attention"]
    assert (one["code"], one["count"]) == ("DEAD_LETTER", 1)
    assert nereus.json("status")[1]["counts"] == {"DEAD_LETTER": 2}
