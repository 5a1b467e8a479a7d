"""The harnesses notice what is planted for them, and tell a fault that struck from one that did not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.crash import mounts, tracing
from tests.crash.appenders import Said
from tests.crash.enumerating import enumerate_states, in_memory
from tests.crash.judging import Judge, effects_once
from tests.crash.kills import Lane
from tests.crash.recording import Recording, claims, writers
from tests.crash.scenes import SCENES, Scene
from tests.crash.states import Model
from tests.crash.traces import Event, Sync, Trace
from tests.crash.tracing import Fault, Point
from tests.crash.warm import Called, environment
from tests.reliability.row import Budget, Row

needs_strace = pytest.mark.usefixtures("strace")
needs_mounts = pytest.mark.usefixtures("mounting")


@pytest.fixture(scope="module")
def strace() -> None:
    if why := tracing.why_not():
        pytest.skip(why)


@pytest.fixture(scope="module")
def mounting() -> None:
    if why := mounts.why_not():
        pytest.skip(why)


@pytest.fixture
def base() -> Iterator[Path]:
    with in_memory() as place:
        yield place


@pytest.fixture(scope="module")
def recorded(request: pytest.FixtureRequest) -> Iterator[tuple[Recording, Path]]:
    request.getfixturevalue("strace")
    with in_memory() as place:
        yield writers(place), place


def scene(name: str) -> Scene:
    return next(one for one in SCENES if one.name == name)


def violations(recording: Recording, base: Path, events: list[Event]) -> int:
    changed = Trace.__new__(Trace)
    changed.__dict__.update(recording.trace.__dict__, events=events)
    return enumerate_states(msgspec.structs.replace(recording, trace=changed), Budget(), 250, base).violations


@needs_strace
def test_crash_states_notice_a_directory_that_is_not_synced_and_bytes_that_are_not(
    recorded: tuple[Recording, Path],
) -> None:
    recording, base = recorded
    events = recording.trace.events
    found = claims(Model(recording.trace, "posix").said)
    assert len(found.standing) > 20, "there is something to lose"
    assert violations(recording, base, events) == 0
    assert violations(recording, base, [one for one in events if not isinstance(one, Sync) or not one.directory]) > 0
    assert violations(recording, base, [one for one in events if not isinstance(one, Sync) or one.directory]) > 0


@needs_strace
def test_a_fault_that_did_not_strike_is_not_taken_for_one_that_did(base: Path) -> None:
    lane = Lane(base)
    try:
        one = scene("next")
        points = lane.points(one)
        names = [point.name for point in points]
        assert {"pwrite64", "fdatasync", "flock", "openat"} <= set(names)
        for point, struck in ((Point("fdatasync", 1), True), (Point("fdatasync", 99), False)):
            for what in ("KILL", "EIO"):
                lane.templates.put(one)
                called = lane.watched(one, Fault(point, what).options())
                assert tracing.struck(lane.trace, lane.store, Fault(point, what)) == struck
                assert (called.status == 0) == (not struck or what == "EIO"), (point, what, called)
    finally:
        lane.close()


@needs_strace
def test_a_command_that_is_forked_does_to_a_store_what_one_does_that_is_started(base: Path) -> None:
    """Only so much is spared by forking it: the start of the interpreter, which touches no store."""
    lane = Lane(base)
    try:
        one = scene("next")
        lane.templates.put(one)
        lane.watched(one, tracing.everything())
        forked = tracing.calls_on(lane.trace, lane.store)
        lane.templates.put(one)
        options = ["-qq", "-y", "-s", "0", *tracing.everything(), "-o", str(lane.trace)]
        line = Judge(lane.call, lane.store, one).line()
        command = ["strace", *options, sys.executable, "-m", "nereus_cli", *line]
        assert subprocess.run(command, check=False, capture_output=True, env=environment(), cwd="/").returncode == 0
        started = tracing.calls_on(lane.trace, lane.store)
    finally:
        lane.close()
    assert len(forked) > 100
    assert forked == started


@needs_strace
def test_a_lie_about_the_log_is_a_complaint(base: Path) -> None:
    lane = Lane(base)
    try:
        one = scene("next")
        lane.templates.put(one)
        judge = Judge(lane.call, lane.store, one)
        told = lane.call(*judge.line())
        receipt = told.documents[0]
        moved = json.dumps(receipt | {"position": receipt["position"] - 1}).encode() + b"\n"
        assert list(judge.complaints(told)) == []
        assert any("does not hold" in text for text in judge.complaints(Called(0, moved, b"")))
        refused = list(judge.complaints(Called(75, b"", b"")))
        assert any("was said not to be in the log, and is" in text for text in refused)
        lane.templates.put(one)
        invented = list(judge.complaints(told))
        assert any("was said to be in the log, and is new to it" in text for text in invented)
    finally:
        lane.close()


@pytest.mark.parametrize(
    ("effects", "sides", "wrong"),
    [
        (["a"], {"a": "PUBLISHED"}, False),
        (["a", "a"], {"a": "PUBLISHED"}, True),
        ([], {"a": "PUBLISHED"}, True),
        (["b"], {"a": "PUBLISHED"}, True),
        (["a", "b"], {"a": "NOT_PUBLISHED", "b": "PUBLISHED"}, True),
        (["b"], {"a": "NOT_PUBLISHED", "b": "PUBLISHED"}, False),
        (["b"], {"a": "UNKNOWN", "b": "PUBLISHED"}, True),
    ],
)
def test_effects_are_held_against_what_is_recorded(
    tmp_path: Path, effects: list[str], sides: dict[str, str], *, wrong: bool
) -> None:
    (tmp_path / "effects").write_text("".join(f"{one}\n" for one in effects))
    attempts = [{"attempt_id": name, "side_effect": side, "code": "", "evidence": {}} for name, side in sides.items()]
    message = {"state": "PUBLISHED", "attempts": attempts}
    assert bool(list(effects_once(tmp_path / "store", message))) == wrong


def test_one_position_for_two_records_is_seen() -> None:
    said = Said()
    said.take(b"A 1 first\nA 2 second\nA 1 first\nN 0 third\nA 3 half a li")
    assert (said.acknowledged, said.refused, said.twice) == ({1: b"first", 2: b"second"}, {b"third"}, [])
    said.take(b"A 2 other\n")
    assert said.twice == [2]


@needs_mounts
def test_power_cuts_notice_appenders_that_make_nothing_durable() -> None:
    row = msgspec.json.decode(mounts.module_apart("tests.crash.cutting", "1", "6", "unsynced", seconds=60), type=Row)
    assert (row.points, row.violations > 0) == (6, True), row
    assert "acknowledged and not there" in "".join(row.findings)


@needs_mounts
def test_nothing_stays_mounted_and_a_failure_is_told() -> None:
    with pytest.raises(RuntimeError, match="invalid literal"):
        mounts.module_apart("tests.crash.cutting", "1", "many", seconds=60)
    mounted = Path("/proc/self/mounts").read_text()
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout
    assert "nereus-cuts-" not in mounted
    assert "nereus-disk-" not in mounted
    assert "many" not in loops
