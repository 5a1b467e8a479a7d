"""The owner's process as the command line starts it."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest

from tests.cli.running import COMMAND, Nereus, environment


def test_what_is_due_is_done_and_what_it_printed_is_kept(nereus: Nereus) -> None:
    for name, script in (("ok", "echo out; echo err >&2"), ("bad", "exit 64")):
        nereus("schedule", "-q", "--in", "0s", "--id", name, "--", "sh", "-c", script)
    nereus("schedule", "-q", "--in", "1h", "--id", "later", "--", "true")
    ran = nereus.process("run", "--once", "--concurrency", "2", "--grace", "1s")
    assert ran.status == 0
    assert all(json.loads(line)["schema"] == "nereus.daemon/1" for line in ran.notes)
    assert nereus("wait", "ok").status == 0
    assert nereus("wait", "bad").status == 20
    assert nereus("logs", "ok").out == b"out\nerr\n"
    assert nereus.json("show", "later")[1]["state"] == "SCHEDULED"
    nereus("cancel", "later")
    assert nereus.process("run", "--until-idle").status == 30


def test_a_second_owner_is_refused_and_told_who_owns(nereus: Nereus) -> None:
    nereus("init")
    first = subprocess.Popen(
        [*COMMAND, "--store", str(nereus.store), "run"], env=environment(),
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        for _ in range(300):
            if nereus.json("status")[1]["daemon"] == "alive":
                break
            time.sleep(0.02)
        owner = nereus.json("status")[1]["owner"]
        assert owner["pid"] == first.pid
        began = time.monotonic()
        second = nereus.process("run", "--json")
        assert time.monotonic() - began < 10
        assert (second.status, second.document["error"]) == (75, "BUSY")
        assert second.document["details"]["holder"] == first.pid
        receipt = nereus.json("schedule", "--in", "1h", "--id", "x", "--", "true")[1]
        assert receipt["daemon"] == "alive"
        assert nereus("schedule", "--in", "1h", "--id", "y", "--", "true").notes == []
    finally:
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=30)
    assert first.returncode == 0
    assert nereus.json("status")[1]["owner"] is None


@pytest.mark.parametrize("flags", [("--concurrency", "1001"), ("--concurrency", "x")])
def test_run_checks_its_flags_first(nereus: Nereus, flags: tuple[str, ...]) -> None:
    assert nereus("run", *flags).status == 2
    assert not nereus.store.exists()
