"""Section B: cancel and reschedule."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from tests.cases.world import Case, lateness_ms, memory_kib


def test_b019_a_cancel_does_not_wait_for_a_restart(case: Case) -> None:
    case.schedule("x", *case.tick(), after="1h")
    case.schedule("other", *case.tick(), after="1h")
    case.daemon()
    assert case.call("status").document()["counts"]["SCHEDULED"] == 2
    assert case.call("cancel", "x").status == 0
    # Both are answered from the log, so they are so at once, not only within the two seconds that were asked for.
    listed = [json.loads(line) for line in case.call("list", "--state", "CANCELED").out.splitlines()]
    assert [one.get("message_id") for one in listed] == ["x", None]
    status = case.call("status").document()
    assert (status["counts"]["SCHEDULED"], status["counts"]["CANCELED"]) == (1, 1)
    assert status["next_due"] == case.show("other")["deliver_at"]


def test_b019_what_was_cancelled_takes_no_memory(case: Case) -> None:
    case.call("init")
    daemon = case.daemon()
    sizes = []
    for turn in range(3):
        names = [f"t{turn}-{n:04d}" for n in range(1_000)]
        case.batch({"id": name, "in": "1h", "argv": ["true"]} for name in names)
        canceled = case.call("cancel", *names)
        assert canceled.status == 0, canceled
        wait_applied(case, 2 * 1_000 * (turn + 1))
        sizes.append(memory_kib(daemon.pid, "VmRSS"))
    assert case.call("status").document()["counts"]["CANCELED"] == 3 * 1_000
    # The first turn warms everything up. Two thousand more at the eleven KiB of the case would be 22 MiB.
    assert sizes[2] - sizes[0] < 8 * 1_024, sizes


def wait_applied(case: Case, position: int) -> None:
    case.until(lambda: case.call("status").document()["applied"] >= position)


def test_b023_the_same_id_with_another_delay_is_said_aloud(case: Case) -> None:
    first = case.schedule("x", "--", "true", after="2h")
    other = case.schedule("x", "--", "true", after="1h")
    assert other.status == 10
    receipt = other.document()
    assert (receipt["outcome"], receipt["reason"], receipt["differing"]) == ("REJECTED", "COMMAND_CONFLICT", ["in"])
    assert receipt["existing_deliver_at"] == first.document()["deliver_at"] != receipt["deliver_at"]
    again = case.schedule("x", "--", "true", after="2h")
    assert again.status == 0
    assert (again.document()["duplicate"], again.document()["deliver_at"]) == (True, first.document()["deliver_at"])
    assert case.show("x")["deliver_at"] == first.document()["deliver_at"]


def test_b023_people_are_shown_both_times_and_that_it_is_so_already(case: Case) -> None:
    from tests.e2e.calls import nereus

    case.schedule("x", "--", "true", after="2h")
    due = case.show("x")["deliver_at"]
    clash = nereus(case.store, "schedule", "--id", "x", "--in", "1h", "--", "true", cwd="/")
    assert clash.returncode == 10
    said = clash.stdout + clash.stderr
    assert due in said
    assert said.count("T") >= 2
    again = nereus(case.store, "schedule", "--id", "x", "--in", "2h", "--", "true", cwd="/")
    assert again.returncode == 0
    assert "already" in again.stdout + again.stderr


def test_b025_a_time_that_is_past_is_refused_unless_allowed(case: Case) -> None:
    case.schedule("x", *case.tick(), after="1h")
    due = case.show("x")["deliver_at"]
    daemon = case.daemon()
    yesterday = f"@{int(time.time()) - 86_400}"
    refused = case.call("reschedule", "x", "--at", yesterday)
    assert (refused.status, refused.document()["error"]) == (1, "PAST")
    time.sleep(0.5)
    message = case.show("x")
    assert (message["state"], message["deliver_at"], message["generation"]) == ("SCHEDULED", due, 0)
    # Neither does a restart on its own fire anything.
    case.kill(daemon)
    case.daemon()
    time.sleep(0.5)
    assert case.seen() == []
    allowed = case.call("reschedule", "x", "--at", yesterday, "--allow-past")
    assert allowed.status == 0, allowed
    case.until(lambda: case.state("x") == "PUBLISHED")
    assert case.seen() == ["x"]
    assert lateness_ms(case.show("x")) >= 86_000_000


@pytest.mark.parametrize("verb", ["schedule", "reschedule"])
def test_b025_the_refusal_is_the_same_without_a_daemon(case: Case, verb: str) -> None:
    past = ("--at", "2020-01-01T00:00:00Z")
    if verb == "schedule":
        called = case.call("schedule", "--id", "x", *past, *case.tick())
    else:
        case.schedule("x", *case.tick(), after="1h")
        called = case.call("reschedule", "x", *past)
    assert called.status == 1
    assert "PAST" in called.out
    assert case.run("--once") == 0
    assert case.seen() == []


def test_b051_postponing_costs_no_attempt(case: Case) -> None:
    """Ten times put off, twice failed for a reason that passes, then done: all three attempts were there for it."""
    work = f"echo $NEREUS_GENERATION-$NEREUS_ATTEMPT >> {case.effects}; [ $(wc -l < {case.effects}) -ge 3 ] || exit 75"
    flags = ("--max-attempts", "3", "--retry-base", "10ms", "--retry-max", "20ms")
    case.schedule("x", *flags, "--shell", work, after="1h")
    for turn in range(10):
        answer = case.call("reschedule", "x", "--in", f"{60 - turn}m").document()
        assert (answer["outcome"], answer["generation"]) == ("APPLIED", turn + 1)
    assert case.call("run-now", "x").status == 0
    assert case.run("--until-idle") == 0
    message = case.show("x")
    assert (message["state"], message["generation"]) == ("PUBLISHED", 11)
    assert case.seen() == ["11-1", "11-2", "11-3"]
    attempts = [(one["number"], one["side_effect"], one["basis"], one["exit_code"]) for one in message["attempts"]]
    refused = ("NOT_PUBLISHED", "REFUSED", 75)
    assert attempts == [(1, *refused), (2, *refused), (3, "PUBLISHED", None, 0)]
    assert all(one["evidence"]["counted"] for one in message["attempts"])


def test_b051_a_new_generation_has_a_fresh_budget(case: Case) -> None:
    """Put off between two failures: the budget is that of the generation, and numbers run on."""
    flags = ("--max-attempts", "2", "--retry-base", "1h", "--retry-max", "1h")
    work = f"echo x >> {case.effects}; [ $(wc -l < {case.effects}) -ge 3 ] || exit 1"
    case.schedule("x", *flags, "--shell", work)
    for turn in range(2):
        assert case.run("--once") == 0
        assert case.state("x") == "RETRY_WAIT"
        assert case.call("reschedule", "x", "--in", "0s").document()["generation"] == turn + 1
    assert case.run("--once") == 0
    message = case.show("x")
    assert message["state"] == "PUBLISHED"
    assert [(one["generation"], one["number"]) for one in message["attempts"]] == [(0, 1), (1, 2), (2, 3)]


def test_b041_the_daemon_is_idle_while_it_waits_for_far_times(case: Case) -> None:
    for delay in ("24d20h", "25d", "49d", "50d", "200d", "9y"):
        case.schedule(f"far-{delay}", *case.tick(), after=delay)
    daemon = case.daemon()
    time.sleep(1)
    begun = ticks(daemon)
    time.sleep(2)
    assert ticks(daemon) - begun < 50
    assert case.seen() == []


def ticks(process: subprocess.Popen[bytes]) -> int:
    """Hundredths of a second of processor time."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
