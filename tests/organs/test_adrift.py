"""An owner that begins while the keeper does not answer, as a stopped one: nothing of what runs is lost sight of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from nereus_cli.destinations import shell
from nereus_cli.destinations.keeper_decide import OpenAttempt, StillOpen, Verdict
from nereus_cli.destinations.keeper_facts import Ended, Fact
from nereus_cli.destinations.keeper_launch import KeeperAwayError
from nereus_cli.destinations.shell import ShellDestination
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.outcome import SideEffect
from nereus_cli.ports import Start
from tests.domain.story import publishing_start


class World:
    """A keeper that answers or not, the evidence, and the clock."""

    def __init__(self) -> None:
        self.answers = False
        self.ended: dict[str, Ended] = {}
        self.stops: list[tuple[str, bool]] = []
        self.asked: list[float] = []
        self.now = 0.0

    def decide(self, _store: str, attempts: Sequence[OpenAttempt], _boot: bytes) -> dict[str, Verdict]:
        return {
            one.attempt_id: self.ended.get(one.attempt_id)
            or StillOpen(attempt_id=one.attempt_id, pid=7, started_at_ns=1)
            for one in attempts
        }


class Client:
    """The owner's end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.accepting = False

    def connect(self, timeout_s: float) -> None:
        self._world.asked.append(timeout_s)
        if not self._world.answers:
            raise KeeperAwayError("no keeper could be reached in time")
        self.accepting = True

    def stop(self, attempt_id: str, *, kill: bool) -> None:
        if self.accepting:
            self._world.stops.append((attempt_id, kill))

    def pump(self) -> list[Fact]:
        return []

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(shell, "KeeperClient", lambda _store, _boot: Client(made))
    monkeypatch.setattr(shell, "decide_all", made.decide)
    monkeypatch.setattr(shell, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def ended(start: Start) -> Ended:
    numbers = dict.fromkeys(
        ("maxrss_kib", "stdout_bytes", "stderr_bytes", "stdout_kept", "stderr_kept", "survivors"), 0
    )
    return Ended(
        attempt_id=start.attempt.attempt_id, wait_status=0, timed_out=False, stopped=False, started_at_ns=1,
        ended_at_ns=2, ended_boot_ns=2, utime_s=0.0, stime_s=0.0, **numbers,
    )  # fmt: skip


def test_what_ended_while_nobody_listened_is_learnt_once_the_keeper_answers(world: World, tmp_path: Path) -> None:
    start = publishing_start()
    owner = ShellDestination(str(tmp_path), PRODUCTION, b"b" * 16)
    assert owner.recover([start]) == []
    assert world.asked == [10.0], "waited for at the beginning"
    world.ended[start.attempt.attempt_id] = ended(start)
    world.now += 1
    assert owner.pump() == []
    assert world.asked == [10.0], "not asked at every turn"
    world.now += 2
    assert [outcome.side_effect for outcome in owner.pump()] == [SideEffect.PUBLISHED]
    assert world.asked[1] < 1, "from then on only briefly"
    world.now += 60
    owner.pump()
    assert len(world.asked) == 2, "nothing runs, nobody is asked"


def test_an_end_that_was_asked_for_meanwhile_is_brought_about(world: World, tmp_path: Path) -> None:
    start = publishing_start()
    owner = ShellDestination(str(tmp_path), PRODUCTION, b"b" * 16)
    owner.recover([start])
    owner.stop(start.attempt.attempt_id, kill=True)
    owner.stop(start.attempt.attempt_id, kill=False)
    owner.stop("of nobody", kill=True)
    assert world.stops == []
    world.answers = True
    world.now += 3
    assert owner.pump() == []
    assert world.stops == [(start.attempt.attempt_id, True)]
    world.now += 60
    owner.pump()
    assert len(world.asked) == 2, "connected, nobody is asked again"
