"""Sixteen processes schedule two hundred messages each while some of them are killed at any instruction.

A killed caller starts again with the line it cannot be sure of: the same line is the same command, so nothing is
lost and nothing is there twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from nereus_cli.codec import decode_command
from nereus_cli.domain.message import State
from nereus_cli.fold import named_message
from nereus_cli.ports import Selection
from nereus_cli.store import open_store
from tests.e2e.calls import nereus

PROCESSES, EACH, KILLS = 16, 200, 24

WORKER = """
import os, sys
import nereus_cli.cli.main as cli
store, name, first, each, acks = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
sink = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
for number in range(first, each):
    words = ["schedule", "--no-wait", "--id", f"{name}-{number}", "--in", "1h", "--", "true"]
    status = cli.main(["--store", store, "--json", *words])
    os.write(sink, b"%d %d\\n" % (number, status))
"""


class Worker:
    """One caller that goes on where the one before it was killed."""

    def __init__(self, store: Path, place: Path, number: int) -> None:
        self._store, self.name, self.acks = store, f"w{number}", place / f"acks-{number}"
        self.process = self.start()

    def acknowledged(self) -> list[int]:
        text = self.acks.read_text("ascii") if self.acks.exists() else ""
        answers = [line.split() for line in text.splitlines()]
        assert {status for _, status in answers} <= {"0"}
        return [int(number) for number, _ in answers]

    def start(self) -> subprocess.Popen[bytes]:
        done = self.acknowledged()
        first = done[-1] + 1 if done else 0
        arguments = [str(self._store), self.name, str(first), str(EACH), str(self.acks)]
        return subprocess.Popen([sys.executable, "-c", WORKER, *arguments], cwd="/", stderr=subprocess.DEVNULL)


def test_every_acknowledged_schedule_is_there_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    store = tmp_path / "store"
    chance = random.Random(7)
    workers = [Worker(store, tmp_path, number) for number in range(PROCESSES)]
    kills = 0
    end = time.monotonic() + 180
    while any(worker.process.poll() is None for worker in workers):
        assert time.monotonic() < end, "the callers did not come to an end"
        time.sleep(chance.uniform(0.02, 0.2))
        victim = chance.choice(workers)
        if kills < KILLS and victim.process.poll() is None and victim.acknowledged():
            victim.process.send_signal(signal.SIGKILL)
            victim.process.wait()
            kills += 1
        for worker in workers:
            if worker.process.poll() == -signal.SIGKILL:
                worker.process = worker.start()
    assert kills == KILLS
    assert [worker.process.returncode for worker in workers] == [0] * PROCESSES
    expected = {f"w{number}-{each}" for number in range(PROCESSES) for each in range(EACH)}
    acknowledged = {f"{worker.name}-{number}" for worker in workers for number in worker.acknowledged()}
    assert acknowledged == expected
    with open_store(str(store)) as opened:
        records = list(opened.log.read(0))
        assert [record.position for record in records] == list(range(1, len(records) + 1))
        names = [named_message(decode_command(record.payload)) for record in records]
        assert set(names) == expected
        # Only a line whose caller was killed may stand there twice.
        assert len(expected) <= len(names) <= len(expected) + KILLS
        messages = [m.message_id for m in opened.view().select(Selection(states=(State.SCHEDULED,)))]
        assert sorted(messages) == sorted(expected)
    verified = nereus(store, "--json", "verify")
    assert verified.returncode == 0, verified.stdout
    assert json.loads(verified.stdout)["schema"] == "nereus.verify/1"
    assert os.listdir(store / "log")
