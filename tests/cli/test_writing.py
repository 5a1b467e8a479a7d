"""The verbs that change something: what they answer, and with which status."""

from __future__ import annotations

import pytest

from tests.cli.owning import DEAD, PUBLISHED, UNKNOWN, Owning
from tests.cli.running import Document, Nereus

ONE = ("schedule", "--in", "1h", "--id", "x", "--", "echo", "hi")


def test_a_generated_id_is_queued_and_a_given_one_is_answered(nereus: Nereus) -> None:
    status, queued = nereus.json("schedule", "--in", "1h", "--", "true")
    assert (status, queued["outcome"], queued["generation"], queued["state"]) == (0, "QUEUED", None, None)
    assert queued["message_id"].removeprefix("nm~") == queued["command_id"].removeprefix("nc~")
    assert queued["retry_until"] is not None
    status, applied = nereus.json(*ONE)
    assert (status, applied["outcome"], applied["generation"], applied["state_version"]) == (0, "APPLIED", 0, 1)
    assert (applied["state"], applied["retry_until"], applied["position"]) == ("SCHEDULED", None, 2)
    assert (applied["daemon"], applied["durability"]) == ("none", "local-fsync")


@pytest.mark.parametrize(
    ("flags", "outcome"),
    [(("--wait",), "APPLIED"), (("--no-wait", "--id", "y"), "QUEUED"), (("--command-id", "c"), "APPLIED")],
)
def test_waiting_is_what_was_asked_for(nereus: Nereus, flags: tuple[str, ...], outcome: str) -> None:
    status, receipt = nereus.json("schedule", "--in", "1h", *flags, "--", "true")
    assert (status, receipt["outcome"]) == (0, outcome)


def test_the_same_line_is_the_same_command_with_the_same_answer(nereus: Nereus) -> None:
    _, first = nereus.json(*ONE)
    status, again = nereus.json(*ONE)
    assert status == 0
    assert again == first | {"duplicate": True}
    nereus("cancel", "x")
    status, later = nereus.json(*ONE)
    assert (status, later) == (0, first | {"duplicate": True, "state": "CANCELED"})
    human = nereus(*ONE)
    assert human.status == 0
    assert human.text.startswith("already: cancelled")


def test_a_repeat_with_the_printed_command_id_is_the_same_command(nereus: Nereus) -> None:
    _, first = nereus.json("schedule", "--in", "1h", "--", "true")
    status, again = nereus.json("schedule", "--command-id", first["command_id"], "--in", "1h", "--", "true")
    assert (status, again["duplicate"], again["message_id"]) == (0, True, first["message_id"])
    assert (again["position"], again["deliver_at"]) == (first["position"], first["deliver_at"])


def test_b023_the_same_id_with_another_delay_is_a_conflict_with_both_times(nereus: Nereus) -> None:
    _, first = nereus.json("schedule", "--id", "x", "--in", "2h", "--", "true")
    status, clash = nereus.json("schedule", "--id", "x", "--in", "1h", "--", "true")
    assert (status, clash["reason"], clash["differing"]) == (10, "COMMAND_CONFLICT", ["in"])
    assert clash["existing_deliver_at"] == first["deliver_at"]
    human = nereus("schedule", "--id", "x", "--in", "1h", "--", "true")
    assert human.status == 10
    assert first["deliver_at"] in human.notes[0]
    assert "asked for" in human.notes[0]
    _, shown = nereus.json("show", "x")
    assert shown["deliver_at"] == first["deliver_at"]


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (("--in", "1h", "--env", "API_TOKEN=two", "--", "echo", "hi"), ["env"]),
        (("--in", "1h", "--env", "API_TOKEN=one", "--", "echo", "ho"), ["argv"]),
        (("--in", "1h", "--env", "API_TOKEN=one", "--tag", "a=b", "--timeout", "5s", "--", "echo", "hi"), None),
    ],
)
def test_b053_a_conflict_names_what_differs_and_never_a_value(
    nereus: Nereus, flags: tuple[str, ...], names: list[str] | None
) -> None:
    nereus("schedule", "--id", "x", "--in", "1h", "--env", "API_TOKEN=one", "--", "echo", "hi")
    ran = nereus("schedule", "--json", "--id", "x", *flags)
    assert ran.status == 10
    assert sorted(ran.document["differing"]) == (names or ["tags", "timeout"])
    assert b"two" not in ran.out


def test_another_command_for_a_known_message_is_a_conflict_too(nereus: Nereus) -> None:
    nereus(*ONE)
    status, clash = nereus.json("schedule", "--id", "x", "--command-id", "other", "--in", "1h", "--", "echo", "hi")
    assert (status, clash["reason"], clash["differing"]) == (10, "MESSAGE_CONFLICT", [])


def test_cancel_and_its_repeat(nereus: Nereus) -> None:
    nereus(*ONE)
    status, first = nereus.json("cancel", "x")
    assert (status, first["outcome"], first["already"], first["state"]) == (0, "APPLIED", False, "CANCELED")
    status, second = nereus.json("cancel", "x")
    assert (status, second["already"], second["duplicate"]) == (0, True, False)
    status, third = nereus.json("cancel", "x", "--command-id", first["command_id"])
    assert (status, third["already"], third["duplicate"]) == (0, False, True)
    assert third["position"] == first["position"]


def test_reschedule_makes_a_new_generation(nereus: Nereus) -> None:
    nereus(*ONE)
    status, moved = nereus.json("reschedule", "x", "--in", "3h")
    assert (status, moved["generation"], moved["state_version"], moved["state"]) == (0, 1, 2, "SCHEDULED")
    _, shown = nereus.json("show", "x")
    assert shown["deliver_at"] == moved["deliver_at"]
    assert shown["when"] == {"kind": "in", "text": "3h"}


def test_hold_release_run_now_stop(nereus: Nereus) -> None:
    nereus(*ONE)
    steps = [
        ("hold", "HELD"),
        ("hold", "HELD"),
        ("release", "SCHEDULED"),
        ("run-now", "SCHEDULED"),
        ("stop", "CANCELED"),
    ]
    for verb, state in steps:
        status, receipt = nereus.json(verb, "x")
        assert (status, receipt["state"]) == (0, state), verb


def test_versions_are_compared(nereus: Nereus) -> None:
    nereus(*ONE)
    status, refused = nereus.json("cancel", "x", "--if-version", "2")
    assert (status, refused["reason"], refused["state_version"]) == (14, "VERSION_CONFLICT", 1)
    assert nereus("cancel", "x", "--if-version", "1").status == 0


def ended(nereus: Nereus, owning: Owning, state: str) -> Document:
    """Brings x into a state."""
    nereus("schedule", "--in", "0s", "--id", "x", "--expires-after", "1h", "--", "true")
    if state == "CANCELED":
        nereus("cancel", "x")
    elif state == "EXPIRED":
        owning.expire("x", 1 << 62)
    else:
        attempt = owning.admit("x")
        how = {"PUBLISHED": PUBLISHED, "DEAD_LETTER": DEAD, "UNCERTAIN": UNKNOWN}.get(state)
        if how:
            owning.end("x", attempt, how)
    _, shown = nereus.json("show", "x")
    assert shown["state"] == state
    return shown


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("PUBLISHING", 11), ("UNCERTAIN", 11), ("PUBLISHED", 12),
        ("EXPIRED", 12), ("DEAD_LETTER", 12), ("CANCELED", 12),
    ],
)  # fmt: skip
def test_too_late_names_the_state_and_the_attempt(nereus: Nereus, owning: Owning, state: str, status: int) -> None:
    shown = ended(nereus, owning, state)
    for verb in ("cancel", "reschedule", "hold"):
        if (verb, state) == ("cancel", "CANCELED"):
            continue
        flags = ("--in", "1h") if verb == "reschedule" else ()
        got, refused = nereus.json(verb, "x", *flags)
        assert (got, refused["outcome"], refused["reason"]) == (status, "REJECTED", f"TOO_LATE_{state}"), verb
        assert refused["state"] == state
        if shown["attempts"]:
            assert refused["attempt"] == {"attempt_id": shown["attempts"][0]["attempt_id"], "number": 1}
        human = nereus(verb, "x", *flags)
        assert (human.status, human.out, len(human.notes)) == (status, b"", 1)
        assert "too late" in human.notes[0]


def test_several_ids_get_one_receipt_each_and_share_a_status(nereus: Nereus) -> None:
    for name in ("a", "b", "c"):
        nereus("schedule", "--in", "1h", "--id", name, "--", "true")
    ran = nereus("cancel", "--json", "a", "b")
    assert (ran.status, [one["message_id"] for one in ran.documents]) == (0, ["a", "b"])
    assert nereus("cancel", "y", "z").status == 13
    mixed = nereus("cancel", "--json", "c", "nobody", "not.an.id")
    assert mixed.status == 1
    assert [one["outcome"] for one in mixed.documents] == ["APPLIED", "REJECTED", "NOT_QUEUED"]
    from_stdin = nereus.process("cancel", "--json", "-", stdin=b"a\nb\n")
    assert (from_stdin.status, [one["already"] for one in from_stdin.documents]) == (0, [True, True])
    assert nereus("cancel", "a", "b", "--command-id", "one").status == 2


def test_a_past_time_is_refused_for_a_first_command_and_repeated_for_a_known_one(nereus: Nereus) -> None:
    past = "2020-01-01T00:00:00Z"
    status, error = nereus.json("schedule", "--at", past, "--", "true")
    assert (status, error["error"], nereus.store.exists()) == (1, "PAST", False)
    status, refused = nereus.json("schedule", "--at", past, "--id", "x", "--", "true")
    assert (status, refused["reason"], refused["outcome"]) == (1, "PAST", "REJECTED")
    assert nereus("show", "x").status == 13
    status, allowed = nereus.json("schedule", "--at", past, "--allow-past", "--id", "y", "--", "true")
    assert (status, allowed["deliver_at"]) == (0, "2020-01-01T00:00:00.000Z")
    nereus("schedule", "--in", "1h", "--id", "z", "--", "true")
    status, error = nereus.json("reschedule", "z", "--at", past)
    assert (status, error["error"]) == (1, "PAST")
    status, refused = nereus.json("reschedule", "z", "--at", past, "--command-id", "mine")
    assert (status, refused["reason"]) == (1, "PAST")


def test_expiry_lateness_and_priority_are_kept(nereus: Nereus) -> None:
    flags = ("--expires-after", "5m", "--if-late", "hold", "--late-after", "2s", "--priority", "7", "--timeout", "3s")
    status, receipt = nereus.json("schedule", "--in", "1h", "--id", "x", *flags, "--", "true")
    assert (status, receipt["timeout_ms"]) == (0, 3_000)
    _, shown = nereus.json("show", "x")
    assert shown["policy"]["late_after_ms"] == 2_000
    assert (shown["priority"], shown["expire_at"] is not None) == (7, True)
    status, refused = nereus.json(
        "schedule", "--at", "2027-01-02T00:00:00Z", "--expires-at", "2027-01-01T00:00:00Z", "--id", "y", "--", "true"
    )
    assert (status, refused["reason"]) == (1, "EXPIRES_BEFORE_DELIVERY")


def test_a_dry_run_writes_nothing(nereus: Nereus) -> None:
    status, dry = nereus.json("schedule", "--dry-run", "--in", "1h", "--id", "x", "--", "true")
    assert (status, dry["outcome"], dry["dry_run"], dry["message_id"]) == (0, "NOT_QUEUED", True, "x")
    assert dry["deliver_at"] is not None
    assert not nereus.store.exists()
    assert nereus("schedule", "--dry-run", "--at", "2020-01-01T00:00:00Z", "--id", "x", "--", "true").status == 1


def test_one_line_for_people_holds_all_that_matters(nereus: Nereus) -> None:
    ran = nereus("schedule", "--in", "1h", "--", "true")
    (line,) = ran.text.splitlines()
    _, shown = nereus.json("show", line.split()[1])
    for part in (shown["message_id"], "generation 0", "position 1", shown["deliver_at"], "repeats recognised until"):
        assert part in line
    assert ran.notes == ["nereus: no daemon: start `nereus run`"]
    assert nereus("schedule", "-q", "--in", "1h", "--id", "x", "--", "true") == (0, b"x\n", b"")


def test_a_literal_secret_is_warned_about(nereus: Nereus) -> None:
    ran = nereus("schedule", "-q", "--in", "1h", "--env", "DB_PASSWORD=hush", "--", "true")
    (note,) = ran.notes
    assert "--secret DB_PASSWORD=file:PATH" in note
    assert "hush" not in note
