"""The wall clock moves, the monotonic one does not: nothing is early, nothing stalls, and the step is on record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nereus_cli.codec import decode_mutation
from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.message import State
from nereus_cli.domain.records import Admission, ClockStep
from nereus_cli.store import message_of, open_store
from tests.e2e.conftest import Shop

RUN = """
import sys
from nereus_cli import clock, store
from nereus_cli.domain.instant import Reading

class Moved(clock.HostClock):
    def read(self):
        now = super().read()
        with open(sys.argv[2]) as file:
            offset = int(file.read() or 0)
        return Reading(now.earliest + offset, now.latest + offset, now.monotonic_ns, now.boot_id)

store.HostClock = Moved
from nereus_cli.cli.main import main
sys.exit(main(["--store", sys.argv[1], *sys.argv[3:]]))
"""


class MovedClock:
    """Commands that see the host's clock moved by what stands in a file."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._file = shop.place / "offset"
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.move(0)

    def move(self, seconds: float) -> None:
        aside = self._file.with_suffix(".new")
        aside.write_text(str(int(seconds * SECOND)), encoding="ascii")
        os.replace(aside, self._file)

    def call(self, *arguments: str) -> int:
        return self._start(*arguments).wait(timeout=60)

    def daemon(self) -> subprocess.Popen[bytes]:
        process = self._start("run")
        self._daemons.append(process)
        self._shop.until(lambda: self._shop.call("status").document().get("owner") is not None)
        return process

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", RUN, str(self._shop.store), str(self._file), *arguments]
        with self._shop.log.open("ab") as sink:
            return subprocess.Popen(command, stdout=sink, stderr=sink, cwd="/")

    def close(self) -> None:
        for process in self._daemons:
            process.kill()
            process.wait()


@pytest.fixture
def clock(shop: Shop) -> Iterator[MovedClock]:
    moved = MovedClock(shop)
    yield moved
    moved.close()


def records(shop: Shop, kind: type) -> list[object]:
    with open_store(str(shop.store)) as store:
        decoded = [decode_mutation(record.payload) for record in store.log.read(0) if record.link is not None]
    return [one for one in decoded if isinstance(one, kind)]


def state(shop: Shop, message_id: str) -> str:
    return str(shop.show(message_id)["state"])


def still(seconds: float, true: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert true()
        time.sleep(0.1)


def test_a_step_forward_brings_what_is_due_after_a_second_of_steadiness(shop: Shop, clock: MovedClock) -> None:
    shop.schedule("x", "--", "true", after="1h")
    clock.daemon()
    still(0.5, lambda: state(shop, "x") == "SCHEDULED")
    clock.move(3_700)
    begun = time.monotonic()
    shop.until(lambda: state(shop, "x") == "PUBLISHED", seconds=10)
    assert time.monotonic() - begun > 0.9
    steps = records(shop, ClockStep)
    assert len(steps) == 1
    step = steps[0]
    assert isinstance(step, ClockStep)
    assert abs(step.after - step.before - 3_700 * SECOND) < SECOND


def test_a_step_back_makes_nothing_early_and_its_return_brings_it(shop: Shop, clock: MovedClock) -> None:
    clock.daemon()
    clock.move(-3_600)
    shop.until(lambda: len(records(shop, ClockStep)) == 1)
    assert clock.call("schedule", "--id", "x", "--in", "2s", "--", "true") == 0
    shop.schedule("y", "--", "true", after="2s")
    shop.until(lambda: state(shop, "x") == "PUBLISHED", seconds=15)
    still(1.5, lambda: state(shop, "y") == "SCHEDULED")
    clock.move(0)
    shop.until(lambda: state(shop, "y") == "PUBLISHED", seconds=15)
    admissions = records(shop, Admission)
    with open_store(str(shop.store)) as store:
        view = store.view()
        for admission in admissions:
            assert isinstance(admission, Admission)
            message = message_of(view, admission.message_id)
            assert message is not None
            assert admission.earliest >= message.deliver_at
            assert message.state is State.PUBLISHED


def test_a_step_while_nobody_owned_the_store_is_seen_by_the_next_owner(shop: Shop, clock: MovedClock) -> None:
    assert clock.call("schedule", "--id", "x", "--in", "1h", "--", "true") == 0
    clock.move(-600)
    clock.daemon()
    shop.until(lambda: len(records(shop, ClockStep)) == 1)
    codes = [item["code"] for item in shop.call("status").document()["attention"]]
    assert "CLOCK_STEP" in codes


def test_a_restart_without_a_step_records_none(shop: Shop, clock: MovedClock, tmp_path: Path) -> None:
    shop.schedule("x", "--", "true")
    for _ in range(2):
        assert clock.call("run", "--once") == 0
    assert records(shop, ClockStep) == []
    lines = [json.loads(line) for line in (tmp_path / "daemon.log").read_text("utf-8").splitlines()]
    assert {line["schema"] for line in lines} == {"nereus.daemon/1"}
