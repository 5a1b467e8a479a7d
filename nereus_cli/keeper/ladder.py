"""The ladder: TERM, a grace, KILL, for the group and for what left it.

Only what is unreaped is signalled: the group while its leader is, afterwards the keeper's own children among the
leader's descendants. A leader that ends on the ladder does not end the attempt: what it started keeps its grace.
"""

import os
import signal
from collections.abc import Callable, Container, Iterable

from nereus_cli.keeper.attempt import UNKNOWN_SURVIVORS, Attempt, Rung
from nereus_cli.keeper.clock import MILLISECOND, SECOND
from nereus_cli.keeper.strays import strays

LOOK_EVERY_NS = 20 * MILLISECOND
# How long what was killed may take to be gone before it counts as a survivor.
KILL_PATIENCE_NS = SECOND


class Ladder:
    """The attempts that are being ended. ``settle(attempt, survivors)`` is called once for each, at its end."""

    def __init__(
        self, leaders: Container[int], settle: Callable[[Attempt, int], None], *, adopts_orphans: bool
    ) -> None:
        """``leaders`` are the pids of unreaped leaders, kept current by the caller."""
        self._leaders = leaders
        self._settle = settle
        self._adopts_orphans = adopts_orphans
        self._climbing: dict[str, Attempt] = {}

    def __contains__(self, attempt: Attempt) -> bool:
        return attempt.id in self._climbing

    def __bool__(self) -> bool:
        return bool(self._climbing)

    def begin(self, attempt: Attempt, now: int, *, kill: bool) -> None:
        """TERM to the group, or KILL if asked; once on the ladder, only ``kill`` changes anything."""
        self._climbing[attempt.id] = attempt
        if kill or attempt.grace_ns == 0:
            self._kill(attempt, now)
        elif attempt.rung is Rung.GROUND:
            attempt.rung = Rung.TERM
            attempt.deadline_ns = now + attempt.grace_ns
            self._signal_group(attempt, (signal.SIGTERM, signal.SIGCONT))

    def leader_ended(self, attempt: Attempt, now: int) -> None:
        """Its group can no longer be signalled as one; what is left of it is looked for."""
        attempt.look_ns = now
        if attempt.rung is Rung.KILL:
            attempt.deadline_ns = now + KILL_PATIENCE_NS

    def climb(self, now: int) -> None:
        """Do what is due."""
        for attempt in list(self._climbing.values()):
            if attempt.rung is Rung.TERM and now >= attempt.deadline_ns:
                self._kill(attempt, now)
            if attempt.exit is not None and now >= attempt.look_ns:
                self._look(attempt, now)

    def next_ns(self) -> int | None:
        """When there is something to do, or None."""
        return min((self._due(attempt) for attempt in self._climbing.values()), default=None)

    @staticmethod
    def _due(attempt: Attempt) -> int:
        if attempt.exit is not None:
            return attempt.look_ns
        # A leader that was killed is heard of when it is reaped.
        return attempt.deadline_ns if attempt.rung is Rung.TERM else attempt.deadline_ns + 60 * SECOND

    def _kill(self, attempt: Attempt, now: int) -> None:
        attempt.rung = Rung.KILL
        attempt.deadline_ns = now + KILL_PATIENCE_NS
        attempt.look_ns = now
        self._signal_group(attempt, (signal.SIGKILL,))

    def _signal_group(self, attempt: Attempt, signals: Iterable[signal.Signals]) -> None:
        if attempt.exit is not None:
            return
        for number in signals:
            try:
                os.killpg(attempt.pid, number)
            except (ProcessLookupError, PermissionError):
                return

    def _look(self, attempt: Attempt, now: int) -> None:
        attempt.look_ns = now + LOOK_EVERY_NS
        left = strays(attempt.id, attempt.pid, self._leaders) if self._adopts_orphans else []
        if not left:
            self._end(attempt, 0 if self._adopts_orphans else UNKNOWN_SURVIVORS)
        elif attempt.rung is Rung.TERM:
            for pid in left:
                if pid not in attempt.termed:
                    attempt.termed.add(pid)
                    _send(pid, signal.SIGTERM)
                    _send(pid, signal.SIGCONT)
        elif now >= attempt.deadline_ns:
            self._end(attempt, len(left))
        else:
            for pid in left:
                _send(pid, signal.SIGKILL)

    def _end(self, attempt: Attempt, survivors: int) -> None:
        del self._climbing[attempt.id]
        self._settle(attempt, survivors)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return
