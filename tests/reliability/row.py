"""What a harness is given and what it answers: a budget in, one row of the ledger out."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

FINDINGS_MAX = 10


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be spent. ``long``: everything, an hour for all goals together; else what fits every CI run.
    ``seed`` chooses among what is sampled; the same seed is the same run."""

    long: bool = False
    seed: int = 1

    def random(self, salt: str) -> random.Random:
        """A generator of its own for each use, the same on every Python."""
        return random.Random(f"{self.seed}/{salt}")

    def of(self, short: int, long: int) -> int:
        """A count that depends on which budget this is."""
        return long if self.long else short


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the ledger. ``points`` were tried and the fault of ``hits`` of them was proved to have struck;
    a harness without faults counts its points as hits. ``violations`` counts points after which something was not
    as promised, ``findings`` names the first of them. ``skipped`` says why nothing ran: then nothing counts."""

    points: int = 0
    hits: int = 0
    violations: int = 0
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: str = ""


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """One promise and the harness that attacks it. ``promise`` is a sentence for people; ``seconds`` is about what
    the short budget costs on two cores, so that long ones are begun first."""

    name: str
    promise: str
    run: Callable[[Budget], Row]
    seconds: int


class Tally:
    """Counts points as they are tried; ``row()`` is what came of them."""

    def __init__(self) -> None:
        self.points = self.hits = self.violations = 0
        self.findings: list[str] = []
        self.notes: list[str] = []

    def point(self, *, hit: bool, violation: str = "") -> None:
        """One more point: whether its fault struck, and what was not as promised."""
        self.points += 1
        self.hits += hit
        if violation:
            self.violations += 1
            if len(self.findings) < FINDINGS_MAX:
                self.findings.append(violation)

    def row(self) -> Row:
        """The row so far."""
        return Row(
            points=self.points,
            hits=self.hits,
            violations=self.violations,
            findings=tuple(self.findings),
            notes=tuple(self.notes),
        )
