"""Kills and failures at system calls of the installed command, seen and counted from outside by strace."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from nereus_cli.destinations.keeper_launch import KEEPER_ENTRY
from tests.crash import tracing
from tests.crash.judging import TRUE, Judge
from tests.crash.scenes import SCENES, Scene, Templates
from tests.crash.tracing import CHANGING, Fault, Point, Watcher
from tests.crash.warm import NO_END, Called, Hung, Warm, fast_place
from tests.reliability.row import Budget, Goal, Row, Tally

# What each call may say. Not here: close and flock, because an injected error replaces the call, so that what is not
# given back would be the harness's fault; and calls that cannot fail on what is open.
_WRITE: Final = ("EIO", "ENOSPC", "EDQUOT", "EINTR")
_NAME: Final = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EACCES")
_LOOK: Final = ("EIO", "EACCES", "ENOMEM")
ERRORS: Final = {
    **dict.fromkeys(("pwrite64", "write", "fdatasync", "fsync", "ftruncate"), _WRITE),
    **dict.fromkeys(("link", "linkat", "unlink", "unlinkat", "rename", "renameat"), _NAME),
    **dict.fromkeys(("mkdir", "mkdirat", "symlink", "symlinkat", "chmod", "fchmod", "fchmodat"), _NAME),
    **dict.fromkeys(("newfstatat", "stat", "lstat", "fstat"), _LOOK),
    **dict.fromkeys(("pread64", "read", "getdents64"), ("EIO", "EINTR")),
    "openat": ("EIO", "ENOSPC", "EINTR", "EMFILE", "EACCES", "ENFILE"),
    "connect": ("EAGAIN", "EINTR"),
}
_LANES: Final = 2
_TRIES: Final = 4
_ABSENT_MAX: Final = 0.1
_CALL_S_MAX: Final = 25.0


class Try(msgspec.Struct, frozen=True):
    """One point of one scene."""

    scene: Scene
    fault: Fault

    def __str__(self) -> str:
        """As a finding names it."""
        return f"{self.scene.name}, {self.fault.what} at {self.fault.point}"


Result: TypeAlias = tuple[Try, bool, list[str]]
_AGAIN: Final[list[Try]] = []


class Lane:
    """One caller, one store at a time."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.store = base / "store"
        self.call = Warm(base)
        self.templates = Templates(self.call, base)
        self.trace = base / "trace"

    def close(self) -> None:
        """Ends the caller."""
        self.call.close()

    def points(self, scene: Scene) -> list[Point]:
        """Every call on the store that the scene's line makes, in order."""
        self.templates.put(scene)
        self.watched(scene, tracing.everything())
        return tracing.points(self.trace, self.store)

    def attempt(self, one: Try) -> tuple[bool, list[str]]:
        """Whether the fault struck, and what was not as promised behind it."""
        judge = Judge(self.call, self.store, one.scene)
        for _ in range(_TRIES):
            self.templates.put(one.scene)
            try:
                called = self.watched(one.scene, one.fault.options())
            except Hung as hung:
                return True, [str(hung)]
            if tracing.struck(self.trace, self.store, one.fault):
                return True, [*_status(one, called), *judge.complaints(called)]
        return False, []

    def watched(self, scene: Scene, options: Sequence[str]) -> Called:
        """The scene's line with an strace on the process that it is about."""
        line = Judge(self.call, self.store, scene).line()
        if scene.keeper:
            keeper = entry(self.base / "keeper.py", self.trace, options)
            self.trace.unlink(missing_ok=True)
            return self.call(*line, keeper=keeper, segment=scene.segment, seconds=_CALL_S_MAX)
        watchers: list[Watcher] = []
        try:
            return self.call(
                *line,
                watch=lambda pid: watchers.append(Watcher(pid, self.trace, options)),
                segment=scene.segment,
                seconds=_CALL_S_MAX,
            )
        finally:
            for watcher in watchers:
                watcher.close()


def entry(file: Path, trace: Path, options: Sequence[str]) -> str:
    """A script that becomes a watched keeper."""
    said = {
        "TRACER": ["strace", "-qq", "-y", "-s", "0", *options, "-o", str(trace), "-p"],
        "TRACE": str(trace),
        "ENTRY": KEEPER_ENTRY,
    }
    watched = str(Path(__file__).with_name("watched_keeper.py"))
    file.write_text(f"import runpy\nrunpy.run_path({watched!r}, {said!r}, '__main__')\n")
    return str(file)


def _status(one: Try, called: Called) -> Iterator[str]:
    if one.fault.what == "KILL" and not one.scene.keeper and called.status != -9:
        yield f"it ended with {called.status}, although it was killed"
    if one.fault.what != "KILL" and not one.scene.effects and called.status not in TRUE:
        yield f"it ended with {called.status}: {called.out.decode()[:300]}"


def chosen(budget: Budget, tries: Sequence[Try], count: int, salt: str) -> list[Try]:
    """What of all this is tried: a sample in which every scene has its turn and most calls change something."""
    if count >= len(tries):
        return list(tries)
    chance = budget.random(salt)
    turns: dict[str, list[tuple[float, Try]]] = {}
    for one in tries:
        weight = 3 if one.fault.point.name in CHANGING else 1
        turns.setdefault(one.scene.name, []).append((chance.random() ** (1 / weight), one))
    ranked = [sorted(scene, key=lambda keyed: -keyed[0]) for scene in turns.values()]
    rounds = itertools.chain.from_iterable(itertools.zip_longest(*ranked))
    return [keyed[1] for keyed in rounds if keyed is not None][:count]


@contextmanager
def lanes() -> Iterator[list[Lane]]:
    """As many callers as go side by side, each in a directory of its own, in memory where there is one."""
    base = fast_place(100 << 20)
    with tempfile.TemporaryDirectory(prefix="nereus-kills-", dir=base, ignore_cleanup_errors=True) as name:
        made = []
        for number in range(_LANES):
            place = Path(name) / str(number)
            place.mkdir(mode=0o700)
            made.append(Lane(place))
        try:
            yield made
        finally:
            for lane in made:
                lane.close()


def attack(budget: Budget, faults: Callable[[Point], Sequence[str]], count: int, salt: str) -> Row:
    """Every scene, every point, every fault that ``faults`` gives it; or ``count`` of them."""
    why = tracing.why_not()
    if why:
        return Row(skipped=why)
    tally = Tally()
    with lanes() as made, ThreadPoolExecutor(len(made)) as pool:
        known = [(scene, point) for scene in SCENES for point in made[0].points(scene)]
        tries = [Try(scene, Fault(point, what)) for scene, point in known for what in faults(point)]
        mine = chosen(budget, tries, count, salt)
        parts = [mine[number :: len(made)] for number in range(len(made))]
        done = [result for part in pool.map(_run, made, parts) for result in part]
    _count(tally, done)
    tally.notes += [f"did not end within its time once, and did when tried again: {one}" for one in _AGAIN]
    scenes = Counter(one.scene.name for one in mine)
    tally.notes.append(f"{len(mine)} of {len(tries)} points: " + ", ".join(f"{n} {s}" for s, n in scenes.items()))
    return tally.row()


def _count(tally: Tally, done: Sequence[Result]) -> None:
    """Owners and keepers wait for time, so a call of theirs may not come up again. That is no point, unless too many
    do not: then the harness does not do what it says."""
    absent = [one for one, struck, _ in done if not struck]
    excused = set(map(str, absent)) if len(absent) <= len(done) * _ABSENT_MAX else set()
    for one, struck, complaints in done:
        if str(one) not in excused:
            tally.point(hit=struck, violation=f"{one}: {'; '.join(complaints)}" if complaints else "")
    if absent:
        tally.notes.append(f"{len(absent)} points did not come up again: " + ", ".join(map(str, absent[:5])))


def _run(lane: Lane, tries: Sequence[Try]) -> list[Result]:
    return [(one, *_attempted(lane, one)) for one in tries]


def _attempted(lane: Lane, one: Try) -> tuple[bool, list[str]]:
    """A tracer over several processes on a busy machine may hold one up: what does not end is tried once more, and
    counts if it does not end then either. That it happened is noted in the ledger."""
    struck, complaints = lane.attempt(one)
    if any(complaint.startswith(NO_END) for complaint in complaints):
        again = lane.attempt(one)
        if not again[1]:
            _AGAIN.append(one)
            return again
    return struck, complaints


def kills(budget: Budget) -> Row:
    """A SIGKILL at the entry of every system call on the store."""
    return attack(budget, lambda _: ("KILL",), budget.of(60, 10_000), "kills")


def failures(budget: Budget) -> Row:
    """Every system call on the store fails, once, with each errno."""
    return attack(budget, lambda point: ERRORS.get(point.name, ()), budget.of(50, 2_500), "failures")


GOALS: Final = (
    Goal(
        name="kills",
        promise="kill -9 at any system call of the installed command, its owner or its keeper: receipts stay true",
        run=kills,
        seconds=12,
    ),
    Goal(
        name="call-failures",
        promise="any one system call of the installed command fails: no false receipt, no false refusal, no bug",
        run=failures,
        seconds=12,
    ),
)
