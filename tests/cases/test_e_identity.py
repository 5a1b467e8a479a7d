"""Section E: the same id, another payload."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.cases.world import PACKAGE_ROOT, Case

SECRET = "c4n4ry-value"  # noqa: S105 -- the secret that must not be told


def schedule(case: Case, word: str, *flags: str) -> tuple[int, str]:
    called = case.call(
        "schedule", "--id", "x", "--in", "0s", *flags, "--", "sh", "-c", f"echo {word} >> {case.effects}"
    )
    return called.status, called.out + called.err


@pytest.mark.parametrize("when", ["waiting", "running", "delivered", "canceled", "dead", "restarted"])
def test_b053_another_payload_is_a_conflict_at_every_time(case: Case, when: str) -> None:
    work = {"running": f"echo A >> {case.effects}; sleep 60", "dead": "exit 64"}.get(when, f"echo A >> {case.effects}")
    wish = ("schedule", "--id", "x", "--in", "1h" if when in {"waiting", "canceled"} else "0s", "--shell", work)
    assert case.call(*wish).status == 0
    if when == "running":
        case.daemon()
        case.until(lambda: case.seen() == ["A"])
    elif when == "canceled":
        case.call("cancel", "x")
    elif when != "waiting":
        case.run("--until-idle")
        if when == "restarted":
            case.run("--until-idle")
    before = case.show("x")
    other = case.call(*wish[:-1], work.replace("A", "B") + ":")
    assert other.status == 10
    receipt = other.document()
    assert (receipt["outcome"], receipt["reason"]) == ("REJECTED", "COMMAND_CONFLICT")
    assert receipt["differing"] == ["shell"]
    repeat = case.call(*wish)
    assert (repeat.status, repeat.document()["duplicate"]) == (0, True)
    after = case.show("x")
    assert {**after, "as_of": 0} == {**before, "as_of": 0}
    if when == "running":
        assert case.call("stop", "x", "--kill").status in {0, 11}
        case.until(lambda: case.state("x") == "UNCERTAIN")


def test_b053_the_field_that_differs_is_named_and_its_secret_value_is_not(case: Case) -> None:
    assert schedule(case, "A", "--env", f"API_TOKEN={SECRET}1", "--tag", "a=b")[0] == 0
    status, said = schedule(case, "A", "--env", f"API_TOKEN={SECRET}2", "--tag", "a=c")
    assert status == 10
    named = json.loads(said.splitlines()[0])["differing"]
    assert sorted(named) in (["env", "tag"], ["env", "tags"])
    assert SECRET not in said


@pytest.mark.parametrize("daemon", [False, True])
def test_b053_of_twenty_racing_processes_one_payload_wins(case: Case, daemon: bool) -> None:
    if daemon:
        case.call("init")
        case.daemon()
    command = [sys.executable, "-m", "nereus_cli", "--store", str(case.store), "--json", "schedule", "--id", "x"]
    words = [[*command, "--in", "0s", "--cwd", "/", *case.tick("AB"[n % 2])] for n in range(20)]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
    racing = [
        subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd="/", text=True)
        for one in words
    ]
    answers = [(process.communicate(timeout=60)[0], process.returncode) for process in racing]
    statuses = Counter((number % 2, status) for number, (_, status) in enumerate(answers))
    assert sorted(statuses.values()) == [10, 10], statuses
    winner = next(which for which, status in statuses if status == 0)
    assert set(statuses) == {(winner, 0), (1 - winner, 10)}
    assert sum('"duplicate":false' in out for out, status in answers if status == 0) == 1
    assert all('"differing":["argv"]' in out for out, status in answers if status == 10)
    if daemon:
        assert case.call("wait", "x", "--timeout", "30s").status == 0
    else:
        assert case.run("--until-idle") == 0
    assert case.seen() == ["AB"[winner]]
    assert len(case.show("x")["attempts"]) == 1
