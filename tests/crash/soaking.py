"""A soak: callers, owners and keepers on one store, and appenders on one log, killed at random moments."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from nereus_cli.domain.message import State
from nereus_cli.store import open_store
from tests.crash.appenders import Appender, Said, complaints
from tests.crash.enumerating import in_memory
from tests.crash.judging import SETTLED
from tests.crash.warm import Called, Warm
from tests.reliability.row import Budget, Goal, Row, Tally

_CALLERS: Final = 2
_OWNERS_MAX: Final = 12
_LOG_RECORDS_MAX: Final = 3_000


class Soak:
    """One store under everybody. ``tally`` counts kills; what they struck is proved by how the process ended."""

    def __init__(self, base: Path, seed: int, seconds: float) -> None:
        self.base = base
        self.store = base / "store"
        self.seed = seed
        self.end = time.monotonic() + seconds
        self.receipts: list[dict[str, Any]] = []
        self.kills: Counter[str] = Counter()
        self.broken: list[str] = []
        self._lock = threading.Lock()

    def run(self) -> None:
        """Until the time is up; then an owner that nobody kills brings everything to its end."""
        with ExitStack() as stack:
            warm = [stack.enter_context(Warm(self._place(f"{number}"))) for number in range(_CALLERS + 1)]
            self._note(warm[0]("--store", str(self.store), "--json", "init"))
            jobs: list[Callable[[], None]] = [lambda: self._owners(warm[-1])]
            jobs += [lambda number=number: self._calls(warm[number], number) for number in range(_CALLERS)]  # type: ignore[misc] # each its own number
            threads = [threading.Thread(target=self._guarded, args=(job,)) for job in jobs]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            ends = (warm[0]("--store", str(self.store), "run", "--until-idle").status for _ in range(_OWNERS_MAX))
            if not any(status in SETTLED for status in ends):
                self.broken.append("no owner gets to an end")
            verified = warm[0]("--store", str(self.store), "--json", "verify")
            if verified.status:
                self.broken.append(f"verify says {verified.status}: {verified.out.decode()[:300]}")

    def complaints(self) -> Iterator[str]:
        """What is not as promised at the end."""
        yield from self.broken
        effects = self._effects()
        with open_store(str(self.store)) as store:
            for one in self.receipts:
                command = store.command_at(one["position"]) if one["position"] else None
                if one["position"] and (command is None or command.command_id != one["command_id"]):
                    yield f"position {one['position']} does not hold {one['command_id']}"
            view = store.view()
            names = {one["message_id"] for one in self.receipts}
            missing = names - view.messages(names).keys()
            if missing:
                yield f"acknowledged and unknown: {sorted(missing)[:3]}"
            for name, message in view.messages(names).items():
                attempts = {one.attempt_id: one for one in view.attempts_of(name)}
                yield from self._of_one(name, message.state, message.deliver_at, attempts, effects)
        admitted = {one for lines in effects.values() for one in lines}
        if any(len(times) > 1 for times in effects.values()):
            yield f"an attempt had its effect twice, of {len(admitted)}"

    def _of_one(
        self, name: str, state: State, due: int, attempts: dict[str, Any], effects: dict[str, list[int]]
    ) -> Iterator[str]:
        mine = [one for one in attempts if one in effects]
        sides = {one: str(attempt.side_effect) for one, attempt in attempts.items()}
        unknown = [one for one, side in sides.items() if side == "UNKNOWN"]
        if unknown and not self.kills["keeper"]:
            yield f"{name}: in doubt, although no keeper was killed"
        if len(mine) > 1 + len(unknown) or (state is State.CANCELED and mine):
            yield f"{name}: {state}, {len(mine)} effects: {sides}"
        if state not in {State.PUBLISHED, State.CANCELED} and not unknown:
            yield f"{name}: ended {state} without a doubt: {sides}"
        for one, side in sides.items():
            if (side == "PUBLISHED") > (one in effects) or (side == "NOT_PUBLISHED" and one in effects):
                yield f"{name}: attempt {one} is {side} with {len(effects.get(one, ()))} effects"
        early = [due - at for one in mine for at in effects[one] if at < due]
        if early:
            yield f"{name}: {early[0]} ns early"

    def _effects(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        file = self.base / "effects"
        for line in file.read_text().splitlines() if file.exists() else ():
            attempt, at = line.split()
            found[attempt].append(int(at))
        return found

    def _calls(self, call: Warm, number: int) -> None:
        chance = random.Random(f"{self.seed}/{number}")
        script = f'echo "$NEREUS_ATTEMPT_ID $(date +%s%N)" >> {self.base}/effects'
        count = 0
        while time.monotonic() < self.end:
            count += 1
            verb = chance.choice(("schedule", "schedule", "schedule", "cancel", "reschedule"))
            name = f"soak-{number}-{count if verb == 'schedule' else chance.randrange(1, count + 1)}"
            when = ("--in", f"{chance.randrange(0, 600)}ms")
            words = [verb, *(("--id", name) if verb == "schedule" else (name,)), *(() if verb == "cancel" else when)]
            words += ["--", "sh", "-c", script] if verb == "schedule" else []
            pid = call.begin("--store", str(self.store), "--json", *words)
            self._note(self._struck(call, pid, "caller", chance.random() * 0.08 if chance.random() < 0.6 else None))

    def _owners(self, call: Warm) -> None:
        chance = random.Random(f"{self.seed}/owners")
        while time.monotonic() < self.end:
            pid = call.begin("--store", str(self.store), "run")
            self._struck(call, pid, "owner", 0.1 + chance.random() * 0.9)
            if chance.random() < 0.2:
                for keeper in keepers_of(self.store):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(keeper, signal.SIGKILL)
                        self.kills["keeper"] += 1

    def _struck(self, call: Warm, pid: int, who: str, after: float | None) -> Called:
        """Lets it go, kills it after so many seconds, or never; counts the kill if that is what it ended by."""
        os.kill(pid, signal.SIGUSR1)
        if after is not None:
            time.sleep(after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        called = call.end(pid)
        if called.status == -signal.SIGKILL:
            with self._lock:
                self.kills[who] += 1
        elif called.status == 70 or b"Traceback" in called.err:
            self.broken.append(f"{who} broke: {called.err.decode(errors='replace')[-300:]}")
        return called

    def _note(self, called: Called) -> None:
        said = [one for one in called.documents if one["schema"] == "nereus.receipt/1"]
        with self._lock:
            self.receipts += [one for one in said if one["outcome"] in {"QUEUED", "APPLIED"}]

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 -- it must be seen, not lost with its thread
            self.broken.append(f"{type(error).__name__}: {error}")

    def _place(self, name: str) -> Path:
        place = self.base / name
        place.mkdir()
        return place


def keepers_of(store: Path) -> list[int]:
    """The keepers that have this store open."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            keeps = entry.name.isdigit() and b"keeper/__main__.py" in (entry / "cmdline").read_bytes()
            if keeps and str(store) in {os.readlink(fd) for fd in (entry / "fd").iterdir()}:
                found.append(int(entry.name))
    return found


def appended(base: Path, budget: Budget, seconds: float, tally: Tally) -> None:
    """Five appenders on one log, one of them killed every few milliseconds and replaced."""
    chance = budget.random("appenders")
    end = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < end:
        rounds += 1
        log, said = base / f"log{rounds}", Said()
        writers = [Appender(log, f"{rounds}.{number}", chance.randrange(1 << 30)) for number in range(5)]
        killed = 0
        while time.monotonic() < end and len(said.acknowledged) < _LOG_RECORDS_MAX:
            time.sleep(chance.random() * 0.02)
            victim = chance.randrange(len(writers))
            ended = writers[victim].kill_and_hear(said)
            tally.point(hit=ended == signal.SIGKILL)
            killed += 1
            writers[victim] = Appender(log, f"{rounds}.{victim}.{killed}", chance.randrange(1 << 30))
        for writer in writers:
            writer.kill_and_hear(said)
        wrong = complaints(log, said)
        if wrong:
            tally.violations += 1
            tally.findings.append(f"seed {budget.seed}, appenders, round {rounds}: {'; '.join(wrong)}")
        tally.notes.append(f"appenders: {killed} kills, {len(said.acknowledged)} acknowledged")


def soak(budget: Budget) -> Row:
    """Kills for as long as the budget says."""
    tally = Tally()
    seconds = budget.of(5, 400)
    with in_memory() as base:
        appended(base, budget, budget.of(3, 180), tally)
        one = Soak(base, budget.seed, seconds)
        one.run()
        wrong = list(one.complaints())
    kills = one.kills.total()
    tally.points += kills
    tally.hits += kills
    tally.violations += len(wrong)
    tally.findings += [f"seed {budget.seed}: {text}" for text in wrong[:5]]
    tally.notes.append(f"store: {dict(one.kills)} killed, {len(one.receipts)} receipts")
    return tally.row()


GOALS: Final = (
    Goal(
        name="soak",
        promise="callers, owners, keepers and appenders killed at random: receipts stay true, effects happen once",
        run=soak,
        seconds=12,
    ),
)
