"""Power cuts under the installed command: an owner delivers, callers call, the file system stops."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from nereus_cli.codec import decode_command
from nereus_cli.domain.message import Attempt, State
from nereus_cli.domain.records import Command
from nereus_cli.store import Store, open_store
from tests.crash.judging import SETTLED
from tests.crash.mounts import Image
from tests.crash.warm import Called, Warm

_OWNERS_MAX: Final = 12
_CUTS_OF_A_STORE: Final = 3


class StoreCutter:
    """One store on one file system. What had been said and done before a cut is known from beside it."""

    def __init__(self, image: Image, base: Path, chance: random.Random, sometimes: Counter[str]) -> None:
        self.image = image
        self.chance = chance
        self.sometimes = sometimes
        self.effects = base / f"effects-{image.kind}"
        self.owner, self.caller = (Warm(made(base / f"{image.kind}-{who}")) for who in ("owner", "caller"))
        self.cuts = 0
        self.store = image.place / "store0"
        self.receipts: list[dict[str, Any]] = []

    def close(self) -> None:
        """Ends the callers."""
        self.owner.close()
        self.caller.close()

    def cut(self) -> tuple[bool, list[str]]:
        """One cut: whether there was an effect and a receipt before, and what is wrong behind it."""
        if self.cuts % _CUTS_OF_A_STORE == 0:
            self._anew()
        self.cuts += 1
        owner = self.owner.begin("--store", str(self.store), "run")
        os.kill(owner, signal.SIGUSR1)
        self._work()
        caller = self._begin("last")
        time.sleep(self.chance.random() * 0.04)
        happened = self._happened()
        self.image.cut()
        for pid in holders_of(self.image.place) | {owner, caller}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.owner.end(owner)
        self.caller.end(caller)
        self.effects.write_text("".join(f"{one}\n" for one in happened))
        self.image.unmount()
        self.image.mount()
        return bool(happened and self.receipts), list(self._wrong(happened))

    def _anew(self) -> None:
        shutil.rmtree(self.store, ignore_errors=True)
        self.effects.write_text("")
        self.receipts = []
        self.store = self.image.place / f"store{self.cuts}"
        self._note(self.caller("--store", str(self.store), "--json", "init"))

    def _work(self) -> None:
        """Until something was delivered, and a little longer; sometimes the system writes everything back."""
        before = len(self._happened())
        end = time.monotonic() + 10
        number = 0
        while (len(self._happened()) < before + 2 or number < 3) and time.monotonic() < end:
            number += 1
            self._note(self.caller.end(self._begin(str(number))))
            if self.chance.random() < 0.3:
                self.image.write_back()
                self.sometimes["store written back"] += 1

    def _begin(self, name: str) -> int:
        script = f'echo "$NEREUS_ATTEMPT_ID" >> {self.effects}; sleep 0.0{self.chance.randrange(9)}'
        words = ["schedule", "--id", f"cut-{self.cuts}-{name}", "--in", "0s", "--", "sh", "-c", script]
        pid = self.caller.begin("--store", str(self.store), "--json", *words)
        os.kill(pid, signal.SIGUSR1)
        return pid

    def _note(self, called: Called) -> None:
        self.receipts += [one for one in called.documents if one.get("outcome") in {"QUEUED", "APPLIED"}]

    def _happened(self) -> list[str]:
        return self.effects.read_text().split()

    def _wrong(self, happened: list[str]) -> Iterator[str]:
        """Judged before an owner sees it, and again when owners brought it to its end."""
        with open_store(str(self.store)) as store:
            # A mark that is believed may be old: what lies behind it is known to be durable behind a barrier.
            store.log.barrier()
            yield from self._stands(store, happened)
        ends = (self.caller("--store", str(self.store), "run", "--until-idle").status for _ in range(_OWNERS_MAX))
        if not any(status in SETTLED for status in ends):
            yield "no owner gets to an end"
        with open_store(str(self.store)) as store:
            yield from self._stands(store, happened)
            view = store.view()
            names = {one["message_id"] for one in self.receipts}
            for name, message in view.messages(names).items():
                yield from self._of_one(name, message.state, view.attempts_of(name))
            verification = store.log.verify()
        if not verification.sound:
            yield f"not sound: {verification.findings}"

    def _stands(self, store: Store, happened: list[str]) -> Iterator[str]:
        view = store.view()
        for one in self.receipts:
            command = store.command_at(one["position"])
            if command is None or command.command_id != one["command_id"]:
                yield f"position {one['position']} does not hold {one['command_id']}"
        # Also of messages whose receipt was never read.
        names = {getattr(command.stated, "message_id", "") for command in commands_of(store)}
        admitted = {attempt.attempt_id for name in names for attempt in view.attempts_of(name)}
        if not set(happened) <= admitted:
            yield f"effects without their Admission: {set(happened) - admitted}"

    def _of_one(self, name: str, state: State, attempts: Sequence[Attempt]) -> Iterator[str]:
        effects = Counter(self._happened())
        sides = {one.attempt_id: str(one.side_effect) for one in attempts}
        self.sometimes["in doubt"] += "UNKNOWN" in sides.values()
        doubts = list(sides.values()).count("UNKNOWN")
        count = sum(effects[one] for one in sides)
        if any(effects[one] > 1 for one in sides) or count > 1 + doubts:
            yield f"{name}: {state}, {count} effects: {sides}"
        for one, side in sides.items():
            if (side == "PUBLISHED" and not effects[one]) or (side == "NOT_PUBLISHED" and effects[one]):
                codes = [f"{attempt.code}" for attempt in attempts]
                yield f"{name}: attempt {one} is {side} with {effects[one]} effects: {sides}, {codes}"
        if state is not State.PUBLISHED and not doubts:
            yield f"{name}: ended {state} without a doubt: {sides}"


def commands_of(store: Store) -> Iterator[Command]:
    """Every client command in the log."""
    for record in store.log.read(0):
        if record.link is None:
            yield decode_command(record.payload)


def holders_of(place: Path) -> set[int]:
    """Every process that has something open there, or is there."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            links = [entry / "cwd", *(entry / "fd").iterdir()]
            if any(os.readlink(link).startswith(f"{place}/") for link in links):
                found.add(int(entry.name))
    return found


def made(place: Path) -> Path:
    """A new directory."""
    place.mkdir()
    return place
