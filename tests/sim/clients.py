"""People and scripts of a simulated world: what they ask, what they do when they get no clear answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from nereus_cli.codec import encode_command, hash_stated
from nereus_cli.domain.message import VERDICTS, Message, State
from nereus_cli.domain.records import Command, Context, Replay, Resolve
from nereus_cli.fold import named_message
from nereus_cli.ports import CorruptLogError, EnqueueUncertainError, NewerFormatError, NotQueuedError
from nereus_cli.prepare import commands
from nereus_cli.prepare.wishes import Capture, ControlWish, Prepared, ScheduleWish, ShellWish, TimeWish, WishError
from nereus_cli.testing import CrashedError
from tests.sim.oracle import Oracle
from tests.sim.process import Process
from tests.sim.store import SimStore
from tests.sim.world import World

_DELAYS = ("1s", "30s", "10m", "2h", "1d", "1w", "4w", "26w")
_LATENESS: tuple[tuple[str | None, str | None], ...] = ((None, None),) * 3 + (("hold", "10s"),)
_RETRIES = 6


class Crowd:
    """Everybody who uses the store. ``names`` are the messages they know of."""

    def __init__(self, world: World, oracle: Oracle, rows: Path) -> None:
        self.world = world
        self.oracle = oracle
        self.rows = rows
        self.names: list[str] = []
        self.sent: list[list[Prepared]] = []
        self._number = 0

    def come(self) -> None:
        """One to five at once, each with something to do."""
        chance = self.world.chance
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            doing = chance.random()
            if doing < 0.04:
                self.world.spawn("reader", self._look)
            else:
                wishes = self._wishes()
                if wishes:
                    self.send(wishes)

    def race(self) -> None:
        """Somebody changes their mind about the next messages just as they become due."""
        timers = sorted(
            (m.timer, name) for name, m in self.oracle.shadow.batch.messages.items() if m.timer is not None
        )  # fmt: skip
        for timer, name in timers[: self.world.chance.choice((1, 3, 8))]:
            when = max(timer - self.world.offset + self.world.chance.randrange(-2_000_000, 4_000_000), self.world.now)
            self.world.at(when, lambda name=name: self._change(name))  # type: ignore[misc] # the default binds the name

    def _change(self, name: str) -> None:
        wish = self._control(self.world.chance, name)
        if wish is not None:
            self.send([wish])

    def send(self, wishes: Sequence[Prepared], retries: int = _RETRIES) -> None:
        """A process that hands these over; one that gets no clear answer sends the same bytes again."""
        process = self.world.spawn("writer", lambda process: self._append(process, list(wishes), retries))
        chance = self.world.chance
        if self.world.features.kills and chance.random() < 0.1:
            process.die_in = chance.randrange(1, 90)
            process.at_end.append(lambda: self._later(list(wishes), retries))

    def _later(self, wishes: list[Prepared], retries: int) -> None:
        if retries:
            self.world.after(
                self.world.chance.randrange(1, 600) * 1_000_000_000, lambda: self.send(wishes, retries - 1)
            )

    def _append(self, process: Process, wishes: list[Prepared], retries: int) -> None:
        payloads = [one.payload for one in wishes]
        world, oracle = self.world, self.oracle
        store = SimStore(process, oracle, self.rows)
        store.refuse_unreadable()
        oracle.asks(payloads)
        try:
            placed = store.append(wishes)
        except NotQueuedError as error:
            if not process.dead:
                oracle.refuses(payloads)
                world.sometimes("not queued: a lock" if error.holder else "not queued")
                self._later(wishes, retries)
            return
        except EnqueueUncertainError as error:
            if not process.dead:
                world.sometimes("uncertain: a lock" if error.holder else "uncertain")
                self._later(wishes, retries)
            return
        except (CorruptLogError, NewerFormatError):
            oracle.refuses(payloads)
            raise
        if process.dead:
            raise CrashedError
        for one, payload in zip(placed, payloads, strict=True):
            oracle.acknowledges(one.position, payload)
        for answer in store.answer(wishes, placed):
            oracle.answers_client(answer)
        if store.log.torn:
            world.sometimes("a torn tail was reported")
        store.close()

    def _look(self, process: Process) -> None:
        store = SimStore(process, self.oracle, self.rows)
        if self.world.chance.random() < 0.3:
            verification = store.log.verify()
            if not verification.sound and not self.world.trouble.rotten and not process.dead:
                raise AssertionError(f"verify found {verification.findings}")
            return
        view = store.view()
        for message in view.due(1 << 62, 5):
            view.messages([message[1]])
        store.close()

    # -- what they want

    def _wishes(self) -> list[Prepared]:
        chance = self.world.chance
        kind = chance.random()
        if kind < 0.12 and self.sent:
            self.world.sometimes("the same command again")
            return chance.choice(self.sent)
        if kind < 0.5 and self.names:
            made = [self._control(chance)]
        elif kind < 0.56:
            made = [self._schedule(chance) for _ in range(chance.randrange(2, 12))]
        else:
            made = [self._schedule(chance)]
        wishes = [one for one in made if one is not None]
        if wishes:
            self.sent.append(wishes)
        return wishes

    def _schedule(self, chance: random.Random) -> Prepared | None:
        self._number += 1
        name = f"m{self._number}" if chance.random() < 0.95 or not self.names else chance.choice(self.names)
        given, late = chance.random() < 0.8, chance.choice(_LATENESS)
        wish = ScheduleWish(
            time=self._time(chance, expires=chance.random() < 0.2),
            target=ShellWish(argv=(b"/bin/task", name.encode()), cwd=b"/"),
            message_id=name if given else None,
            timeout=chance.choice((None, None, "5s", "1h")),
            max_attempts=chance.choice((None, None, 1, 2, 5)),
            retry_base=chance.choice((None, "5s")),
            on_uncertain=chance.choice((None, None, "wait", "retry")),
            if_late=late[0],
            late_after=late[1],
        )
        made = self._prepared(lambda capture, limits: commands.schedule(wish, capture, limits))
        if made is not None:
            self.names.append(named_message(made.command))
        return made

    def _control(self, chance: random.Random, name: str = "") -> Prepared | None:
        name = name or chance.choice(self.names[-40:])
        version = chance.choice((None, None, None, 1, 2))
        what = chance.choice(("cancel", "reschedule", "reschedule", "hold", "release", "release", "run_now", "stop"))
        message = self.oracle.shadow.batch.messages.get(name)
        if message is not None and message.state in (State.UNCERTAIN, State.DEAD_LETTER) and chance.random() < 0.5:
            return self._settle(chance, message)
        if what == "reschedule":
            wish = ControlWish(message_id=name, if_version=version, time=self._time(chance))
            return self._prepared(lambda capture, limits: commands.reschedule(wish, capture, limits))
        plain = ControlWish(message_id=name, if_version=version)
        if what == "stop":
            kill = chance.random() < 0.5
            return self._prepared(lambda capture, limits: commands.stop(plain, capture, limits, kill=kill))
        make = {
            "cancel": commands.cancel,
            "hold": commands.hold,
            "release": commands.release,
            "run_now": commands.run_now,
        }
        return self._prepared(lambda capture, limits: make[what](plain, capture, limits))

    def _settle(self, chance: random.Random, message: Message) -> Prepared:
        """What a person does about an unknown effect or a dead letter; true or not, they are taken at their word."""
        self._number += 1
        stated: Resolve | Replay = Replay(message.message_id, accept_duplicate=chance.random() < 0.7)
        if message.state is State.UNCERTAIN or chance.random() < 0.4:
            unknown = [a.number for a in message.open_attempts] or [0]
            stated = Resolve(message.message_id, chance.choice(unknown), chance.choice(VERDICTS), "seen", "ops")
        context = Context("ops", self.world.wall)
        command = Command(f"settle-{self._number}", hash_stated(stated), stated, context)
        return Prepared(command, encode_command(command))

    def _time(self, chance: random.Random, *, expires: bool = False) -> TimeWish:
        after = chance.choice(("5s", "1h", "1w")) if expires else None
        if chance.random() < 0.7:
            return TimeWish(delay=chance.choice(_DELAYS), expires_after=after)
        at = self.world.wall // 1_000_000_000 + chance.randrange(-60, 100_000)
        return TimeWish(at=f"@{at}", zone="UTC", expires_after=after, allow_past=chance.random() < 0.5)

    def _prepared(self, make: object) -> Prepared | None:
        capture = Capture(now=self.world.wall, entropy=self.world.chance.randbytes, cwd=b"/", host="simulated")
        try:
            return make(capture, self.world.features.limits())  # type: ignore[operator, no-any-return] # one of the above
        except WishError as error:
            self.world.sometimes(f"a wish refused: {error.field}")
            return None
