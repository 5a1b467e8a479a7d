"""The seam sweep of the owner: its whole life once for each disk call it makes, with a death or an error there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from nereus_cli.daemon import Orders
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.limits import TINY
from nereus_cli.domain.message import State
from nereus_cli.ports import NotQueuedError, ProjectionStalledError
from nereus_cli.testing import CrashedError, Fault, FaultDisk, ManualClock, Medium, Nothing, Some
from nereus_cli.testing.medium import Choice, Directory, File
from tests.domain.story import NOW
from tests.log.world import fast_directory, open_log, rebooted
from tests.reliability.row import Budget, Goal, Row, Tally
from tests.seams.faults import Plan, Point
from tests.seams.log_seams import found, require
from tests.seams.owning import EXPECTED, SCRIPT, STORE, World, begun
from tests.seams.site import Keeper, Site

LIVE = Orders(concurrency=2, grace_ns=SECOND)
TO_THE_END = Orders(concurrency=2, grace_ns=SECOND, until_idle=True)
TROUBLE = frozenset({"log.refused", "owner.uncertain"})


class Template:
    """The store that every owner finds."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.original = top / "original"
        self.original.mkdir(mode=0o700)
        self.site, self.clock = begun(self.original)
        self.number = 0

    def fresh(self) -> Path:
        """A store of its own."""
        self.number += 1
        base = self.top / f"{os.getpid()}-{self.number}"
        shutil.copytree(self.original, base)
        rebooted(base / STORE / "log")
        return base


class Life:
    """One owner with one fault, and the next one behind it."""

    def __init__(self, template: Template, faults: tuple[Fault, ...], *, reboot: bool) -> None:
        self.base = template.fresh()
        self.medium = Medium(str(self.base))
        now = template.clock.read()
        self.clock = ManualClock(now.latest, b"another-boot-now" if reboot else now.boot_id)
        self.world = World(self.base, SCRIPT, template.site.copy(lost=False), self.clock, self.medium)
        self.disk = FaultDisk(SystemDisk(), faults=faults, medium=self.medium)
        self.ended: object = None
        try:
            keeper = Keeper(self.world.site, lambda name: durable(self.medium, name))
            self.ended = self.world.own(self.disk, keeper, LIVE)
        except BaseException as error:  # noqa: BLE001 -- whatever it is, it is what is judged
            self.ended = error
        self.disk.forget()

    def check(self, point: Point | None) -> None:
        """Its end was one of those that are documented, and a fresh owner ends what it began; raises AssertionError."""
        self._ended_well(point)
        if point is not None and not point.fault.error:
            choices: tuple[Choice, ...] = (Nothing(), Some(point.fault.at))
            for number, choice in enumerate(choices):
                self._behind_a_cut(self.base / f"cut{number}", choice)
        finished(successor(self.world, self.base, self.world.site, self.clock), surely=True)

    def _ended_well(self, point: Point | None) -> None:
        ended = self.ended
        require(not self.world.site.wrong, "; ".join(self.world.site.wrong))
        if isinstance(ended, CrashedError):
            require(point is not None and not point.fault.error, "died of an error")
        elif isinstance(ended, BaseException):
            known = isinstance(ended, NotQueuedError | ProjectionStalledError | OSError)
            require(known, f"ended with {type(ended).__name__}: {ended}")
        else:
            require(ended == 0, f"ended with status {ended}")
            if not TROUBLE & self.world.said:
                late = [name for name in EXPECTED if self.world.site.taken[name] != 1]
                require(not late, f"{late} were not delivered, and no trouble was said: {self.world.said}")

    def _behind_a_cut(self, base: Path, choice: Choice) -> None:
        self.medium.after_cut(str(base), choice)
        rebooted(base / STORE / "log")
        clock = ManualClock(max(NOW, self.clock.read().latest), b"boot-after-a-cut")
        finished(successor(self.world, base, self.world.site.copy(lost=True), clock), surely=False)


def successor(before: World, base: Path, site: Site, clock: ManualClock) -> World:
    """Whatever is left of the script happens, then the next owner does what there is to do; how it left the world."""
    world = World(base, [event for event in before.script if event is not SCRIPT[-1]], site, clock, None)
    world.acknowledged |= before.acknowledged
    world.catch_up()
    status = world.own(SystemDisk(), Keeper(site), TO_THE_END)
    require(status in {0, 30}, f"the next owner ended with {status}")
    return world


def finished(world: World, *, surely: bool) -> None:
    """What was promised came true, once each; where evidence was ``surely`` kept, nothing is uncertain."""
    site = world.site
    require(not site.wrong, "; ".join(site.wrong))
    with world.opened() as store:
        messages = store.view().messages((*EXPECTED, "n", "left"))
    promised = [name for name in EXPECTED if name != "w" or name in world.acknowledged]
    for name in promised:
        require(name in messages, f"{name} was acknowledged and is gone")
        state, taken = messages[name].state, site.taken[name]
        settled = (state is State.PUBLISHED and taken == 1) or (not surely and state is State.UNCERTAIN and taken <= 1)
        require(settled, f"{name} is {state} and took effect {taken} times")
    require(messages["n"].state is State.CANCELED and not site.taken["n"], f"n is {messages['n'].state}")
    require(site.taken["left"] <= 1, "left took effect twice")
    log = open_log(world.path / "log", boot=7, limits=TINY)
    damage = [one for one in log.verify().findings if one.damage]
    log.close()
    require(not damage, f"the log is not sound: {damage}")


def durable(medium: Medium, attempt_id: str) -> bool:
    """Whether a power cut would leave the admission of that attempt: its id is nowhere else so early."""
    store = medium._root.durable[STORE]
    log = store.durable["log"] if isinstance(store, Directory) else None
    files = log.durable.values() if isinstance(log, Directory) else ()
    return any(attempt_id.encode() in file.durable for file in files if isinstance(file, File))


def sweep(tally: Tally, template: Template, plan: Plan, budget: Budget, *, reboot: bool) -> None:
    """Every point of the plan, in the boot in which the last owner died or in another."""
    what = "an owner after a restart" if reboot else "an owner"
    plain = Life(template, (), reboot=reboot)
    wrong = found(lambda: plain.check(None))
    tally.point(hit=True, violation=wrong and f"{what}, without a fault: {wrong}")
    for point in plan.points(plain.disk.calls, budget.random(what)):
        life = Life(template, (point.fault,), reboot=reboot)
        wrong = found(lambda life=life, point=point: life.check(point))  # type: ignore[misc] # bound at once
        tally.point(hit=bool(life.disk.hits), violation=wrong and f"{what}, {point}: {wrong}")
        shutil.rmtree(life.base)


def run(budget: Budget) -> Row:
    """Both lives; the short budget draws some of the calls."""
    tally = Tally()
    plan = Plan(errors=2, looks=4) if budget.long else Plan(errors=1, looks=20, calls=3)
    with fast_directory() as top:
        template = Template(top)
        for reboot in (False, True):
            sweep(tally, template, plan, budget, reboot=reboot)
    tally.notes.append(plan.said())
    return tally.row()


GOALS = (
    Goal(
        name="turn-seams",
        promise="whatever call of an owner dies or fails, nothing happens unadmitted or twice, the next one ends it",
        run=run,
        seconds=20,
    ),
)
