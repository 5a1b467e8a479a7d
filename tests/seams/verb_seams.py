"""The seam sweep of the command line: every verb once for each disk call it makes, with a death or an error there."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nereus_cli.codec import UndecodableError, decode_command
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.ports import LogRecord
from nereus_cli.testing import Fault, FaultDisk, Medium, Nothing, Some
from nereus_cli.testing.medium import Choice
from tests.log.world import fast_directory, open_log, rebooted
from tests.reliability.row import Budget, Goal, Row, Tally
from tests.seams import front
from tests.seams.faults import Plan, Point
from tests.seams.log_seams import found, require
from tests.seams.verbs import STORE, Ground, Line, founded, pairs

IO, LATER, REFUSED, CANNOT_CREATE, UNCERTAIN, PENDING = 74, 75, 77, 73, 3, 15
STATUSES: Mapping[int, frozenset[int]] = {
    errno.EIO: frozenset({IO}),
    errno.EROFS: frozenset({REFUSED}),
    errno.EACCES: frozenset({REFUSED}),
    errno.ENOLCK: frozenset({IO, LATER}),
}
"""What a refusal is called; every other error passes, and says to try again."""
Leaf = tuple[str, str]


class Template:
    """What all points of one line on one ground start from and are held against."""

    def __init__(self, top: Path, original: Path, line: Line, ground: Ground) -> None:
        self.top = top
        self.original = original
        self.line = line
        self.ground = ground
        self.words = tuple(word.format(top=original) for word in line.words)
        self.number = 0
        plain = [Trial(self, ()) for _ in range(2)]
        self.status = plain[0].called.status
        self.calls = plain[0].disk.calls
        self.leaves = set(leaves(plain[0].called.documents)) & set(leaves(plain[1].called.documents))
        self.records = plain[0].before

    def fresh(self) -> Path:
        """A store of its own."""
        self.number += 1
        base = self.top / str(self.number)
        shutil.copytree(self.original / STORE, base / STORE)
        self.ground.shape(base / STORE)
        return base


class Trial:
    """One call with one fault, and what must hold behind it."""

    def __init__(self, template: Template, faults: tuple[Fault, ...]) -> None:
        self.template = template
        self.base = template.fresh()
        self.store = self.base / STORE
        self.before = [] if template.ground.empty else records_of(self.store, mend=False)
        self.frozen = segments_of(self.store)
        self.medium = Medium(str(self.base))
        self.disk = FaultDisk(SystemDisk(), faults=faults, medium=self.medium)
        self.called = front.call(self.store, template.words, self.disk)
        self.disk.forget()

    def check(self, point: Point | None) -> None:
        """All of it; raises AssertionError."""
        self._answered(point)
        if not self.template.line.writes:
            self._nothing_changed()
        choices: tuple[Choice, ...] = (Nothing(), Some(point.fault.at)) if point and not point.fault.error else ()
        for number, choice in enumerate(choices or (Some(1),)):
            cut = self.base / f"cut{number}"
            self.medium.after_cut(str(cut), choice)
            self._holds(cut / STORE, boot=9)
        self._holds(self.store, boot=0)

    def _answered(self, point: Point | None) -> None:
        called, line = self.called, self.template.line
        require(not called.escaped, f"{called.escaped} escaped")
        if point is None or called.status == self.template.status:
            if not line.writes and (point is None or self.template.ground.healthy):
                # What has to be mended first is shown as far as it is proven where it cannot be: ``as_of`` says so.
                missing = self.template.leaves.difference(leaves(called.documents))
                require(not missing, f"exit {called.status}, but does not say {sorted(missing)[:2]}")
            return
        if called.status is None:
            require(not point.fault.error, "died of an error")
            return
        allowed = STATUSES.get(point.fault.error, frozenset({LATER}))
        allowed |= {UNCERTAIN, PENDING} if line.writes else frozenset()
        allowed |= frozenset() if self.template.ground.healthy else {PENDING}
        if self.template.ground.empty and point.fault.error != errno.EIO:
            allowed |= {CANNOT_CREATE}
        require(called.status in allowed, f"exit {called.status}: {called.notes}{called.documents}")

    def _nothing_changed(self) -> None:
        if self.template.ground.healthy:
            require(segments_of(self.store) == self.frozen, "a verb that reads wrote")

    def _holds(self, store: Path, boot: int) -> None:
        """What was said stands there, and the same line works now as it would have worked at first."""
        placed, refused = self._told()
        if (store / "log").is_dir() and list((store / "log").glob("*.seg")):
            if boot:
                rebooted(store / "log")
            found_here = {one.position: one for one in records_of(store, boot=boot)}
            for position, command_id in placed.items():
                record = found_here.get(position)
                require(record is not None and command_of(record) == command_id, f"{command_id} is not at {position}")
            for one in self.before:
                require(found_here.get(one.position, one).payload == one.payload, f"position {one.position} changed")
            require(len(found_here) >= len(self.before), "records are gone")
            new = list(found_here.values())[len(self.before) :]
            require(self.template.line.writes or not new, "a verb that reads appended")
            written = {name_of(one) for one in new}
            require(not written & refused, f"{written & refused} was not queued, and is in the log")
        else:
            require(not placed, "what was acknowledged is gone with its log")
        again = front.call(store, self.template.words)
        require(
            again.status == self.template.status,
            f"then fault-free: exit {again.status}, {again.notes}{again.documents}",
        )

    def _told(self) -> tuple[dict[int, str], set[str]]:
        """Where the receipts say that commands are, and what is said to be in no log."""
        receipts = [one for one in self.called.documents if one["schema"] == "nereus.receipt/1"]
        placed = {one["position"]: one["command_id"] for one in receipts if one["position"] is not None}
        if not self.template.line.writes or self.called.status is None:
            return placed, set()
        names = set(self.template.line.names) or {""}
        settled = {one["message_id"] for one in receipts if one["outcome"] != "NOT_QUEUED"}
        if receipts:
            return placed, names - settled if names != {""} else set()
        return placed, names | {""} if self.called.status not in {0, UNCERTAIN} else set()


def records_of(store: Path, *, boot: int = 0, mend: bool = True) -> list[LogRecord]:
    """Every durable record, and the log is sound. ``mend=False`` looks at a copy instead."""
    log_path = store / "log"
    if not mend:
        log_path = store.parent / "look"
        shutil.copytree(store / "log", log_path)
    log = open_log(log_path, boot=boot or 8, limits=PRODUCTION)
    try:
        records = list(log.read(0))
        findings = [one for one in log.verify().findings if one.damage]
    finally:
        log.close()
    if not mend:
        shutil.rmtree(log_path)
    require([one.position for one in records] == list(range(1, len(records) + 1)), "positions have a hole")
    require(not findings, f"not sound: {findings}")
    return records


def segments_of(store: Path) -> dict[str, bytes]:
    """The segments as they are."""
    return {path.name: path.read_bytes() for path in (store / "log").glob("*.seg")}


def command_of(record: LogRecord) -> str:
    """The id of the command in it, if there is one."""
    try:
        return decode_command(record.payload).command_id
    except UndecodableError:
        return ""


def name_of(record: LogRecord) -> str:
    """The message that the command in it is about."""
    return str(getattr(decode_command(record.payload).stated, "message_id", ""))


def leaves(value: Any, path: str = "") -> Iterator[Leaf]:  # noqa: ANN401 -- whatever a document holds
    """Every scalar of a document with where it stands."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}[{number}]")
    else:
        yield path, str(value)


def sweep(tally: Tally, template: Template, plan: Plan, budget: Budget) -> None:
    """One line on one ground with every point of the plan."""
    what = f"{template.line.name} on a store {template.ground.name}"
    trial = Trial(template, ())
    wrong = found(lambda: trial.check(None))
    tally.point(hit=True, violation=wrong and f"{what}, without a fault: {wrong}")
    for point in plan.points(template.calls, budget.random(what)):
        trial = Trial(template, (point.fault,))
        wrong = found(lambda trial=trial, point=point: trial.check(point))  # type: ignore[misc] # bound at once
        tally.point(hit=bool(trial.disk.hits), violation=wrong and f"{what}, {point}: {wrong}")
        shutil.rmtree(trial.base)


def run(budget: Budget) -> Row:
    """All lines on all grounds; the short budget draws its errors and looks at a part of the looks."""
    tally = Tally()
    plan = Plan(errors=1, looks=2) if budget.long else Plan(errors=1, looks=12, calls=3)
    with fast_directory() as top:
        original = top / "original"
        original.mkdir()
        founded(original)
        for number, (line, ground) in enumerate(pairs(long=budget.long)):
            room = top / str(number)
            room.mkdir()
            sweep(tally, Template(room, original, line, ground), plan, budget)
            shutil.rmtree(room)
    tally.notes.append(plan.said())
    return tally.row()


GOALS = (
    Goal(
        name="verb-seams",
        promise="whatever call of the disk dies or fails below a verb, its exit status and its receipts are true",
        run=run,
        seconds=25,
    ),
)
