"""A thousand messages over twenty seconds, a daemon killed five times, and people who change their minds.

Every exit status is judged against what the effects file says in the end: who was told that the cancel was applied
never sees an effect, nobody sees one early or twice, and no attempt ends UNKNOWN, because keeper and door carry the
evidence over every death of the daemon.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nereus_cli.domain.message import State
from nereus_cli.domain.outcome import SideEffect
from nereus_cli.ports import Selection
from nereus_cli.store import open_store
from tests.e2e.calls import Called, Caller, daemon, nereus

MESSAGES, SPREAD_S, CROWD = 1_000, 20.0, 500
CANCELS, RESCHEDULES, REPEATS, CONFLICTS, KILLS = 100, 100, 50, 10, 5
SECOND = 1_000_000_000
SCRIPT = 'echo "$NEREUS_MESSAGE_ID $NEREUS_GENERATION $NEREUS_ATTEMPT $(date +%s%N)" >> "$EFFECTS"'


class Effect(NamedTuple):
    generation: int
    attempt: int
    at_ns: int


class Act(NamedTuple):
    at_s: float
    verb: str
    message_id: str


def line(number: int, due_ns: int, effects: Path) -> dict[str, Any]:
    return {
        "id": f"m{number:04d}", "at": f"@{due_ns // SECOND}.{due_ns % SECOND:09d}", "shell": SCRIPT,
        "env": {"EFFECTS": str(effects)}, "cwd": "/",
    }  # fmt: skip


def schedule_arguments(wish: dict[str, Any], *, script: str = SCRIPT) -> list[str]:
    arguments = ["schedule", "--id", wish["id"], "--at", wish["at"], "--cwd", "/"]
    return [*arguments, "--env", f"EFFECTS={wish['env']['EFFECTS']}", "--shell", script]


def plan(chance: random.Random) -> list[Act]:
    """Different messages for each verb, at random instants, before, at and after their own time."""
    ids = [f"m{number:04d}" for number in range(MESSAGES)]
    chance.shuffle(ids)
    acts = []
    for verb, count in (("cancel", CANCELS), ("reschedule", RESCHEDULES), ("repeat", REPEATS), ("conflict", CONFLICTS)):
        acts += [Act(chance.uniform(0, SPREAD_S), verb, ids.pop()) for _ in range(count)]
    return sorted(acts)


class Supervisor(threading.Thread):
    """Keeps a daemon alive and kills it at the given moments."""

    def __init__(self, store: Path, log: Path, moments: list[float]) -> None:
        super().__init__()
        self._store, self._log, self._moments = store, log, moments
        self.killed = 0

    def run(self) -> None:
        begun = time.monotonic()
        for moment in self._moments:
            with daemon(self._store, self._log, "--concurrency", "16") as process:
                time.sleep(max(begun + moment - time.monotonic(), 0.2))
                if process.poll() is None:
                    process.kill()
                    self.killed += 1


def perform(act: Act, caller: Caller, wishes: dict[str, dict[str, Any]]) -> Called:
    if act.verb == "cancel":
        return caller("cancel", act.message_id)
    if act.verb == "reschedule":
        return caller("reschedule", act.message_id, "--in", "3s")
    script = "true" if act.verb == "conflict" else SCRIPT
    return caller(*schedule_arguments(wishes[act.message_id], script=script))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Runs it once; the tests below look at different sides of what happened."""
    place = tmp_path_factory.mktemp("thousand")
    place.chmod(0o700)
    store, effects = place / "store", place / "effects"
    effects.touch()
    chance = random.Random(20_261_201)
    start = time.time_ns() + 4 * SECOND
    crowd = start + int(SPREAD_S / 2) * SECOND
    dues = [crowd + chance.randrange(SECOND) // 1_000 * 1_000 for _ in range(CROWD)]
    dues += [start + int(chance.uniform(0, SPREAD_S) * 1e6) * 1_000 for _ in range(MESSAGES - CROWD)]
    wishes = {wish["id"]: wish for wish in (line(n, due, effects) for n, due in enumerate(dues))}
    batch = place / "batch"
    batch.write_text("".join(json.dumps(wish) + "\n" for wish in wishes.values()), encoding="utf-8")
    scheduled = nereus(store, "--json", "schedule", "--batch", str(batch))
    assert scheduled.returncode == 0, scheduled.stderr
    moments = sorted(chance.uniform(2, SPREAD_S + 3) for _ in range(KILLS))
    supervisor = Supervisor(store, place / "daemon.log", moments)
    supervisor.start()
    answers: list[tuple[Act, Called]] = []
    with Caller(store, place) as one, Caller(store, place) as two, ThreadPoolExecutor(2) as pool:
        callers = [one, two]

        def work(acts: list[Act], caller: Caller) -> list[tuple[Act, Called]]:
            done = []
            for act in acts:
                time.sleep(max(start / 1e9 + act.at_s - time.time(), 0))
                done.append((act, perform(act, caller, wishes)))
            return done

        acts = plan(chance)
        for part in pool.map(work, [acts[::2], acts[1::2]], callers):
            answers += part
    supervisor.join()
    with daemon(store, place / "daemon.log", "--until-idle", "--concurrency", "16") as last:
        status = last.wait(timeout=60)
    seen: dict[str, list[Effect]] = defaultdict(list)
    for text in effects.read_text("utf-8").splitlines():
        name, generation, attempt, at_ns = text.split()
        seen[name].append(Effect(int(generation), int(attempt), int(at_ns)))
    return {
        "store": store, "answers": answers, "effects": seen, "killed": supervisor.killed, "status": status,
        "receipts": [json.loads(text) for text in scheduled.stdout.splitlines()], "wishes": wishes,
        "log": (place / "daemon.log").read_text("utf-8"),
    }  # fmt: skip


def test_every_line_was_queued(story: dict[str, Any]) -> None:
    receipts = [one for one in story["receipts"] if one["schema"] == "nereus.receipt/1"]
    assert Counter(one["outcome"] for one in receipts) == {"QUEUED": MESSAGES}
    assert [one["position"] for one in receipts] == list(range(1, MESSAGES + 1))


def test_the_daemon_was_killed_and_the_rest_came_to_an_end(story: dict[str, Any]) -> None:
    assert story["killed"] == KILLS
    assert story["status"] == 0, story["log"][-2_000:]


def test_what_people_were_told_is_what_happened(story: dict[str, Any]) -> None:
    effects = story["effects"]
    told: Counter[tuple[str, int]] = Counter()
    for act, called in story["answers"]:
        receipt = called.document()
        told[act.verb, called.status] += 1
        seen = effects[act.message_id]
        match act.verb, called.status:
            case "cancel", 0:
                assert receipt["outcome"] == "APPLIED"
                assert seen == [], (act, receipt)
            case "reschedule", 0:
                assert receipt["outcome"] == "APPLIED"
                assert [effect.generation for effect in seen] == [1], (act, receipt)
            case (("cancel" | "reschedule"), (11 | 12)):
                assert receipt["outcome"] == "REJECTED"
                assert receipt["reason"] in {"TOO_LATE_PUBLISHING", "TOO_LATE_PUBLISHED"}
                assert receipt["attempt"]["number"] == 1
                assert [effect.generation for effect in seen] == [0]
            case "repeat", 0:
                assert receipt["duplicate"]
                assert receipt["outcome"] == "APPLIED"
                assert len(seen) == 1
            case "conflict", 10:
                assert receipt["reason"] == "COMMAND_CONFLICT"
                assert len(seen) == 1
            case other:
                pytest.fail(f"{other}: {called}")
    by_verb = Counter[str]()
    for (verb, _), count in told.items():
        by_verb[verb] += count
    assert by_verb == {"cancel": CANCELS, "reschedule": RESCHEDULES, "repeat": REPEATS, "conflict": CONFLICTS}
    # Both ends of each race were really seen.
    assert {status for verb, status in told if verb == "cancel"} >= {0, 12}
    assert {status for verb, status in told if verb == "reschedule"} >= {0, 12}


def test_each_effect_once_none_early_and_none_unknown(story: dict[str, Any]) -> None:
    effects: dict[str, list[Effect]] = story["effects"]
    with open_store(str(story["store"])) as store:
        view = store.view()
        messages = list(view.select(Selection(states=tuple(State))))
        assert len(messages) == MESSAGES
        for message in messages:
            seen = effects[message.message_id]
            attempts = view.attempts_of(message.message_id)
            assert all(a.side_effect is not SideEffect.UNKNOWN for a in attempts), (message, attempts)
            if message.state is State.CANCELED:
                assert seen == []
                continue
            assert message.state is State.PUBLISHED
            assert len(seen) == 1, (message, seen, attempts)
            assert seen[0].at_ns >= message.deliver_at
            assert all(a.earliest >= message.deliver_at for a in attempts if a.generation == message.generation)
            published = [a for a in attempts if a.side_effect is SideEffect.PUBLISHED]
            assert [(a.generation, a.number) for a in published] == [(seen[0].generation, seen[0].attempt)]
        counts = view.counts()
        published_count = sum(1 for seen in effects.values() if seen)
        assert counts == {State.PUBLISHED: published_count, State.CANCELED: MESSAGES - published_count}
        status = json.loads(nereus(story["store"], "--json", "status").stdout)
        assert {name: count for name, count in status["counts"].items() if count} == {
            "PUBLISHED": published_count, "CANCELED": MESSAGES - published_count,
        }  # fmt: skip


def test_the_log_alone_gives_the_same_state(story: dict[str, Any]) -> None:
    verified = nereus(story["store"], "verify", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
