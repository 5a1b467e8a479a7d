"""Where effects happen in the sweep of turns: the ground truth, and the destination through which it is caused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from nereus_cli.domain.judge import Happened
from nereus_cli.domain.message import Message
from nereus_cli.domain.records import Command, Outcome
from nereus_cli.ports import Start
from nereus_cli.testing.memory_parts import outcome

REFUSED_ONCE = "r"


class Site:
    """``doors`` says of each attempt whether it began; ``ended`` is the evidence, unless it was ``lost`` with the
    machine. ``taken`` counts what succeeded for each message; ``wrong`` is what must never have happened."""

    def __init__(self) -> None:
        self.doors: dict[str, bool] = {}
        self.ended: dict[str, Happened] = {}
        self.taken: Counter[str] = Counter()
        self.refused: set[str] = set()
        self.lost = False
        self.wrong: list[str] = []

    def end(self, attempt_id: str, message_id: str) -> Happened:
        """An attempt ends well, but for the first one of a message that has to be refused once."""
        well = message_id != REFUSED_ONCE or message_id in self.refused
        happened = Happened.EXIT_OK if well else Happened.EXIT_RETRIABLE
        self.refused.add(message_id)
        self.ended[attempt_id] = happened
        self.taken[message_id] += well
        return happened

    def copy(self, *, lost: bool) -> Site:
        """The same world, going on in another way; ``lost``: its machine was switched off."""
        other = Site()
        other.doors, other.ended = dict(self.doors), dict(self.ended)
        other.refused = set(self.refused)
        other.taken, other.lost, other.wrong = Counter(self.taken), lost, list(self.wrong)
        return other


class Keeper:
    """A ``Destination`` over a site. ``admitted`` tells whether the admission of an attempt is durable."""

    def __init__(self, site: Site, admitted: Callable[[str], bool] = lambda _: True) -> None:
        self._site = site
        self._admitted = admitted
        self._running: dict[str, Start] = {}

    def materialise(self, message: Message, command: Command) -> object:  # noqa: ARG002 -- the port's shape
        return command.command_id

    def start(self, starts: Sequence[Start]) -> None:
        for start in starts:
            name = start.attempt.attempt_id
            if name in self._site.doors:
                self._site.wrong.append(f"{name} was started twice, or behind a closed door")
                continue
            if not self._admitted(name):
                self._site.wrong.append(f"{name} was started, and its admission is not durable")
            self._site.doors[name] = True
            self._running[name] = start

    def recover(self, starts: Sequence[Start]) -> Sequence[Outcome]:
        found = []
        for start in starts:
            name = start.attempt.attempt_id
            if self._site.lost:
                found.append(outcome(start, Happened.NO_EVIDENCE))
            elif not self._site.doors.setdefault(name, False):
                found.append(outcome(start, Happened.DOOR_CLOSED))
            elif name in self._site.ended:
                found.append(outcome(start, self._site.ended[name]))
            else:
                self._running[name] = start
        return found

    def pump(self) -> Sequence[Outcome]:
        found = []
        for name, start in self._running.items():
            happened = self._site.end(name, start.message.message_id)
            found.append(outcome(start, happened))
        self._running.clear()
        return found

    def stop(self, attempt_id: str, *, kill: bool) -> None:
        """Nothing here runs long enough."""

    def wake_fds(self) -> tuple[Sequence[int], Sequence[int]]:
        return (), ()

    def close(self) -> None:
        """What runs goes on."""
