"""Messages in every state a verdict or a replay may meet, without waiting: the test appends the owner's records."""

from __future__ import annotations

import time
from collections.abc import Callable

from nereus_cli.domain.outcome import Basis, Code, Disposition, SideEffect
from tests.cli.owning import DEAD, PUBLISHED, UNKNOWN, Owning
from tests.cli.running import Nereus

REFUSED = (SideEffect.NOT_PUBLISHED, Basis.REFUSED, Disposition.RETRIABLE, Code.EXIT_NONZERO)
SEEN = ("--evidence", "seen")
Make = Callable[[Nereus, Owning], None]


def scheduled(nereus: Nereus, owning: Owning, *flags: str) -> None:
    """Due now; ``owning`` has done nothing yet."""
    assert owning is not None
    assert nereus("schedule", "-q", "--in", "0s", "--id", "x", *flags, "--", "true").status == 0


def retrying(nereus: Nereus, owning: Owning) -> None:
    scheduled(nereus, owning, "--max-attempts", "3")
    owning.end("x", owning.admit("x"), REFUSED)


def held(nereus: Nereus, owning: Owning) -> None:
    scheduled(nereus, owning)
    nereus("hold", "x")


def canceled(nereus: Nereus, owning: Owning) -> None:
    scheduled(nereus, owning)
    nereus("cancel", "x")


def expired(nereus: Nereus, owning: Owning) -> None:
    scheduled(nereus, owning, "--expires-after", "1ms")
    owning.expire("x", time.time_ns() + 10**9)


def publishing(nereus: Nereus, owning: Owning) -> None:
    scheduled(nereus, owning)
    owning.admit("x")


def published(nereus: Nereus, owning: Owning) -> None:
    scheduled(nereus, owning)
    owning.end("x", owning.admit("x"), PUBLISHED)


def dead(nereus: Nereus, owning: Owning) -> None:
    scheduled(nereus, owning)
    owning.end("x", owning.admit("x"), DEAD)


def uncertain(nereus: Nereus, owning: Owning) -> None:
    """Its only attempt is spent."""
    scheduled(nereus, owning)
    owning.end("x", owning.admit("x"), UNKNOWN)


def with_attempts_left(nereus: Nereus, owning: Owning) -> None:
    scheduled(nereus, owning, "--max-attempts", "3", "--on-uncertain", "wait")
    owning.end("x", owning.admit("x"), UNKNOWN)


def again(nereus: Nereus, owning: Owning) -> None:
    """Uncertain, and another attempt is in progress."""
    uncertain(nereus, owning)
    assert nereus("resolve", "x", "--attempt", "1", "--retry", *SEEN).status == 0
    owning.admit("x")


def stopped(nereus: Nereus, owning: Owning) -> None:
    """Uncertain, and to have no further attempt."""
    uncertain(nereus, owning)
    nereus("stop", "x")


def exhausted(nereus: Nereus, owning: Owning) -> None:
    """A dead letter; the effects of both its attempts are unknown."""
    scheduled(nereus, owning, "--max-attempts", "2", "--retry-base", "1ms")
    owning.end("x", owning.admit("x"), UNKNOWN)
    time.sleep(0.005)
    owning.end("x", owning.admit("x"), UNKNOWN)


def replayed(nereus: Nereus, owning: Owning) -> None:
    """A new generation; the old attempts are unknown still."""
    exhausted(nereus, owning)
    assert nereus("dead", "replay", "x", "--accept-duplicate").status == 0


def given_up(nereus: Nereus, owning: Owning) -> None:
    """A dead letter, because a person gave up on its attempt."""
    uncertain(nereus, owning)
    assert nereus("resolve", "x", "--attempt", "1", "--give-up", *SEEN).status == 0


def seen_off(nereus: Nereus, owning: Owning) -> None:
    exhausted(nereus, owning)
    assert nereus("resolve", "x", "--give-up", *SEEN).status == 0


MAKERS: dict[str, Make] = {
    "scheduled": scheduled,
    "retrying": retrying,
    "held": held,
    "canceled": canceled,
    "expired": expired,
    "publishing": publishing,
    "published": published,
    "dead": dead,
    "uncertain": uncertain,
    "with attempts left": with_attempts_left,
    "again": again,
    "stopped": stopped,
    "exhausted": exhausted,
    "replayed": replayed,
    "given up": given_up,
    "seen off": seen_off,
}
