"""Crash states: what a power cut may leave at any moment of a real run, and whether a log can live with it."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nereus_cli.clock import HostClock
from nereus_cli.codec import decode_mutation
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.records import Admission
from nereus_cli.log.files import FileLog
from nereus_cli.ports import Clock, LogRecord
from nereus_cli.store import open_store
from tests.crash import tracing
from tests.crash.recording import Claims, Recording, claims, owner, writers
from tests.crash.scenes import moved
from tests.crash.states import Model, State, Tree
from tests.crash.warm import fast_place
from tests.log.world import SetClock
from tests.reliability.row import Budget, Goal, Row, Tally

PROFILES: Final = ("posix", "ext4")
# A medium that comes back within one boot finds its mark believed; behind a real start of the machine none is.
BOOTS: Final[dict[str, Callable[[], Clock]]] = {"same boot": HostClock, "next boot": lambda: SetClock(boot=9)}


class Bench:
    """Puts states into a directory and looks at them there."""

    def __init__(self, base: Path, recording: Recording) -> None:
        self.place = base / "state"
        self.recording = recording
        self.claims: dict[int, Claims] = {}
        self.whole = 0
        self._turn = itertools.count()

    def complaints(self, state: State, boot: str) -> list[str]:
        """What is not as promised when the next process finds this."""
        known = len(state.said)
        if known not in self.claims:
            self.claims[known] = claims(state.said)
        said = self.claims[known]
        if not said.standing and not said.attempts and not any(path.startswith("log") for path in state.tree.files):
            return []
        whole = self.recording.whole and boot == "same boot" and bool(said.standing) and next(self._turn) % 3 == 0
        self._put(state.tree, whole=whole)
        try:
            return [*(self._refused(said) if whole else ()), *self._wrong(said, BOOTS[boot]())]
        except Exception as error:  # noqa: BLE001 -- whatever keeps a log from being used is the finding
            return [f"{type(error).__name__}: {error}"]
        finally:
            shutil.rmtree(self.place)

    def _put(self, tree: Tree, *, whole: bool) -> None:
        """The log, or the whole store with what was folded from it."""
        log = self.recording.log
        self.place.mkdir(mode=0o700)
        for directory in sorted(tree.directories):
            if whole or directory.startswith(log):
                (self.place / directory).mkdir(mode=0o700)
        for path, content in tree.files.items():
            if whole or path.startswith(f"{log}/"):
                file = self.place / path
                file.write_bytes(content)
                file.chmod(0o600)
        moved(self.place / log)

    def _refused(self, said: Claims) -> Iterator[str]:
        """What a reader makes of the whole store, before anybody repairs anything: nothing is taken to be lost."""
        self.whole += 1
        with open_store(str(self.place)) as store:
            store.view()
            store.log.barrier()
            view = store.view()
            known = view.results([name.decode() for name in said.standing.values()])
            yield from (
                f"no result of {name.decode()}" for name in said.standing.values() if name.decode() not in known
            )

    def _wrong(self, said: Claims, clock: Clock) -> Iterator[str]:
        log = FileLog(
            str(self.place / self.recording.log),
            disk=SystemDisk(), clock=clock, limits=self.recording.limits, create=True, watch=False,
        )  # fmt: skip
        try:
            mine = log.append([b"the next"])[0].position
            records = list(log.read(0))
            verification = log.verify()
        finally:
            log.close()
        if [one.position for one in records] != list(range(1, mine + 1)):
            yield f"there is a hole, or more behind {mine}"
            return
        for position, name in said.standing.items():
            if position >= mine or name not in records[position - 1].payload:
                yield f"acknowledged at {position} and not there: {name.decode()[:40]}"
        stored = {one.payload for one in records}
        yield from (f"refused and there: {one!r:.40}" for one in said.refused if one in stored)
        yield from _owners(records, said)
        if not verification.sound:
            yield f"not sound: {[one.what for one in verification.findings if one.damage]}"


def _owners(records: list[LogRecord], said: Claims) -> Iterator[str]:
    """One chain, and no effect without its Admission."""
    prev = 0
    admitted = set()
    for record in records:
        if record.link is None:
            continue
        if record.link.prev != prev:
            yield f"the owner record at {record.position} follows {record.link.prev}, not {prev}"
        prev = record.position
        if any(one in record.payload for one in said.attempts):
            mutation = decode_mutation(record.payload)
            if isinstance(mutation, Admission):
                admitted.add(mutation.attempt_id.encode())
    yield from (f"an effect of {one.decode()} without its Admission" for one in said.attempts if one not in admitted)


def enumerate_states(recording: Recording, budget: Budget, count: int, base: Path) -> Tally:
    """About ``count`` different states of a recording, spread over its moments, both profiles and both boots."""
    tally = Tally()
    bench = Bench(base, recording)
    counts: Counter[str] = Counter()
    for profile in PROFILES:
        model = Model(recording.trace, profile)
        chance = budget.random(f"{recording.name}/{profile}")
        seen: set[int] = set()
        moments = model.moments()
        each = max(2, count // (2 * len(moments)))
        for moment in chance.sample(moments, min(len(moments), count // (2 * each) + 1)):
            for state in model.states(moment, each, chance):
                key = hash((tuple(sorted(state.tree.files.items())), len(state.said)))
                if key in seen:
                    continue
                seen.add(key)
                boot = chance.choice(list(BOOTS))
                wrong = bench.complaints(state, boot)
                counts[f"{profile}, {boot}"] += 1
                tally.point(hit=True, violation=f"{state.how}, {boot}: {'; '.join(wrong)}" if wrong else "")
    kinds = Counter(type(event).__name__.lower() for event in recording.trace.events)
    said = claims(Model(recording.trace, "posix").said)
    told = f"{len(said.standing)} acknowledged, {len(said.attempts)} effects"
    tally.notes.append(f"{recording.name}: {told}, {dict(kinds)}; {dict(counts)}, {bench.whole} whole stores")
    return tally


def crash_states(budget: Budget) -> Row:
    """Records real runs and enumerates."""
    why = tracing.why_not()
    if why:
        return Row(skipped=why)
    total = Tally()
    for record in (writers, owner):
        with in_memory() as base:
            tally = enumerate_states(record(base), budget, budget.of(2_000, 30_000), base)
        total.points += tally.points
        total.hits += tally.hits
        total.violations += tally.violations
        total.findings += tally.findings
        total.notes += tally.notes
    return total.row()


@contextmanager
def in_memory() -> Iterator[Path]:
    """A private directory, in memory where there is one."""
    with tempfile.TemporaryDirectory(
        prefix="nereus-states-", dir=fast_place(100 << 20), ignore_cleanup_errors=True
    ) as name:
        yield Path(name)


GOALS: Final = (
    Goal(
        name="crash-states",
        promise="whatever a power cut may leave of a real run: what was acknowledged stands, no effect is unrecorded",
        run=crash_states,
        seconds=10,
    ),
)
