"""The seam sweep of the log: every scenario once for each call it makes, with a death or an error there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nereus_cli.disk import SystemDisk
from nereus_cli.ports import EnqueueUncertainError, LogError, NotQueuedError
from nereus_cli.testing import CrashedError, Fault, FaultDisk, Medium, Nothing, Some
from nereus_cli.testing.medium import Choice
from tests.log.world import Ledger, fast_directory, open_log, rebooted
from tests.reliability.row import Budget, Goal, Row, Tally
from tests.seams.faults import Plan
from tests.seams.scenarios import SCENARIOS, Scenario


class Run:
    """One run of a scenario with one more fault, and everything that is to be true behind it."""

    def __init__(self, base: Path, scenario: Scenario, faults: tuple[Fault, ...]) -> None:
        self.base = base
        self.path = base / "log"
        self.scenario = scenario
        self.ledger = Ledger()
        self.medium = Medium(str(base))
        self.wrong: BaseException | None = None
        scenario.prepare(self.path, self.ledger, self.medium)
        self.disk = FaultDisk(
            SystemDisk(), faults=(*faults, *scenario.planned), medium=self.medium, evict=scenario.evict
        )
        self._act()
        self.calls = list(self.disk.calls)
        self.crashed = self.disk.crashed
        if self.crashed:
            self.disk.forget()

    def check(self, seed: int) -> None:
        """Another process of the same boot finds a sound log, even while this one lives on, and so does the first one
        behind a power cut."""
        try:
            self._check(seed)
        finally:
            self.disk.forget()

    def _check(self, seed: int) -> None:
        if self.wrong is not None:
            raise AssertionError(f"ended with {self.wrong!r}") from self.wrong
        acknowledged = dict(self.ledger.acknowledged)
        choices: tuple[Choice, ...] = (Nothing(), Some(seed)) if self.crashed else (Some(seed),)
        for number, choice in enumerate(choices):
            cut = self.base.parent / f"cut{number}"
            self.medium.after_cut(str(cut), choice)
            if acknowledged or (cut / "log").exists():
                rebooted(cut / "log")
                self._sound(cut / "log", acknowledged, boot=9)
        self._sound(self.path, acknowledged, boot=self.scenario.boot)

    def _act(self) -> None:
        """A fault may end an opening or a reading with its own error, and an append with what its contract names."""
        try:
            log = open_log(self.path, disk=self.disk, boot=self.scenario.boot, create=self.scenario.create, wait=0.2)
            self.scenario.act(log, self.ledger)
        except (NotQueuedError, EnqueueUncertainError, CrashedError, OSError):
            pass
        except (Exception, LogError) as error:  # noqa: BLE001 -- whatever it is, it is the finding
            self.wrong = error

    def _sound(self, path: Path, acknowledged: dict[int, bytes], boot: int) -> None:
        ledger = Ledger()
        ledger.number = 1_000
        ledger.acknowledged = dict(acknowledged)
        ledger.refused = list(self.ledger.refused) if path == self.path else []
        log = open_log(path, boot=boot, create=self.scenario.create, wait=0.2)
        try:
            ledger.check(log)
        finally:
            log.close()


def sweep(tally: Tally, scenario: Scenario, plan: Plan, budget: Budget) -> None:
    """One scenario with every point of the plan."""
    choose = budget.random(scenario.name)
    with fast_directory() as top:
        plain = Run(_fresh(top, "plain"), scenario, ())
        wrong = found(lambda: plain.check(0))
        tally.point(hit=True, violation=wrong and f"{scenario.name}, without a fault: {wrong}")
        for number, point in enumerate(plan.points(plain.calls, choose)):
            run = Run(_fresh(top, str(number)), scenario, (point.fault,))
            wrong = found(lambda run=run, at=point.fault.at: run.check(at))  # type: ignore[misc] # bound at once
            tally.point(hit=bool(run.disk.hits), violation=wrong and f"{scenario.name}, {point}: {wrong}")


def _fresh(top: Path, name: str) -> Path:
    base = top / name / "x"
    base.mkdir(parents=True)
    return base


def found(check: Callable[[], None]) -> str:
    """What a check says that does not hold, in one line; empty when all is well."""
    try:
        check()
    except (Exception, CrashedError) as error:  # noqa: BLE001 -- a violation is counted, never raised
        return f"{type(error).__name__}: {error}".splitlines()[0][:300]
    return ""


def require(holds: bool, otherwise: str) -> None:
    """Raises AssertionError."""
    if not holds:
        raise AssertionError(otherwise)


def run(budget: Budget) -> Row:
    """All scenarios. The short budget draws one error for each call; the long one tries all."""
    tally = Tally()
    plan = Plan(deaths_at_looks=True) if budget.long else Plan(errors=1, looks=2)
    for scenario in SCENARIOS:
        sweep(tally, scenario, plan, budget)
    tally.notes.append(plan.said())
    return tally.row()


GOALS = (
    Goal(
        name="log-seams",
        promise="whatever call of the log dies or fails, what was acknowledged stands and the next appender works",
        run=run,
        seconds=25,
    ),
)
