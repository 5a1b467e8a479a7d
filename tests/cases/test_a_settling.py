"""Section A once more, with a person in it: what a verdict starts, what it can never undo, and what a replay delivers.

Real daemons and real children: the effects on disk are counted.
"""

from __future__ import annotations

import pytest

from tests.cases.world import Case, Document

SEEN = ("--evidence", "seen", "--by", "anna")
KILLED = "kill -KILL $$"


def killed(case: Case, name: str, *flags: str) -> Document:
    """One attempt that left its effect and was killed before it could say so."""
    work = f"echo $NEREUS_MESSAGE_ID >> {case.effects}; {KILLED}"
    assert case.schedule(name, *flags, "--", "sh", "-c", work).status == 0
    assert case.run("--until-idle") == 30
    shown = case.show(name)
    assert shown["state"] == "UNCERTAIN"
    return shown


def test_b012_a_verdict_of_retry_is_exactly_one_more_attempt(case: Case) -> None:
    killed(case, "p")
    for attempts in (2, 3):
        last = str(attempts - 1)
        assert case.call("resolve", "p", "--attempt", last, "--retry", *SEEN).status == 0
        assert case.run("--until-idle") == 30
        assert len(case.show("p")["attempts"]) == attempts == case.seen().count("p")
    assert case.run("--until-idle") == 30
    assert case.seen() == ["p"] * 3
    assert case.show("p")["duplicate_risk"] == "possible"
    case.attest(["p"])


def test_b009_no_verdict_overwrites_what_is_recorded(case: Case) -> None:
    """Nor is anything tried again that was once said to have been published."""
    killed(case, "p", "--max-attempts", "5", "--on-uncertain", "wait")
    assert case.call("resolve", "p", "--attempt", "1", "--published", *SEEN).status == 0
    for verdict in ("--not-published", "--retry", "--give-up"):
        assert case.call("resolve", "p", "--attempt", "1", verdict, *SEEN).status == 1
    assert case.call("dead", "replay", "p", "--accept-duplicate").status == 12
    assert case.run("--until-idle") == 0
    assert (case.seen(), case.show("p")["state"]) == (["p"], "PUBLISHED")
    case.attest(["p"])


def test_b011_what_was_never_done_goes_on_with_the_attempts_that_are_left(case: Case) -> None:
    work = f"[ $NEREUS_ATTEMPT = 1 ] && {KILLED}; echo $NEREUS_MESSAGE_ID >> {case.effects}"
    case.schedule("p", "--max-attempts", "2", "--on-uncertain", "wait", "--", "sh", "-c", work)
    assert case.run("--until-idle") == 30
    assert case.call("resolve", "p", "--attempt", "1", "--not-published", *SEEN).status == 0
    assert case.run("--until-idle") == 0
    shown = case.show("p")
    assert (case.seen(), shown["state"], shown["duplicate_risk"]) == (["p"], "PUBLISHED", "none")
    assert [one["basis"] for one in shown["attempts"]] == ["PROVEN_ABSENT", None]


@pytest.mark.parametrize("again", [(), ("--new-key",)], ids=["old key", "new key"])
def test_b012_a_dead_letter_is_replayed_with_the_key_that_was_asked_for(case: Case, again: tuple[str, ...]) -> None:
    work = f"echo $NEREUS_IDEMPOTENCY_KEY $NEREUS_GENERATION $NEREUS_ATTEMPT >> {case.effects}; exit 64"
    case.schedule("p", "--", "sh", "-c", work)
    assert case.run("--until-idle") == 30
    for generation in (1, 2):
        assert case.call("dead", "replay", "p", *again).document()["generation"] == generation
        assert case.run("--until-idle") == 30
    keys = [f"p:{generation if again else 0}" for generation in range(3)]
    assert case.seen() == [word for n, key in enumerate(keys) for word in (key, str(n), str(n + 1))]
    assert case.call("dead", "show", "p").document()["dead"]["last_attempt"] == 3


def test_b013_from_a_failed_check_to_a_settled_one(case: Case) -> None:
    """The report alone tells what to do, and the effect on disk what to say."""
    killed(case, "p")
    check = case.call("status", "--check")
    assert check.status == 30
    (attention,) = check.document()["attention"]
    report = case.call(*attention["command"].split()[1:])
    assert report.status == 30
    (item,) = report.document()["items"]
    assert (item["known"], item["evidence"]["signal"]) == ("signal 9 (SIGKILL) ended it", 9)
    assert case.seen() == ["p"]
    assert case.call("resolve", "p", "--attempt", str(item["attempt"]), "--published", *SEEN).status == 0
    assert case.call("status", "--check").status == 0
    assert case.call("verify").status == 0
