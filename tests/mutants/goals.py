"""The goal ``mutants``: each line of defence taken out alone, and missed by a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.mutants.mutant import Mutant
from tests.mutants.table import MUTANTS
from tests.mutants.workshop import Trial, Workshop
from tests.reliability.row import Budget, Goal, Row, Tally

SHORT: Final = 10


def chosen(budget: Budget) -> Sequence[Mutant]:
    """All, or ten in turn: the seed says which ten, and consecutive seeds go through all of them."""
    if budget.long:
        return MUTANTS
    turn = Budget(seed=0).random("mutants").sample(MUTANTS, len(MUTANTS))
    start = (budget.seed - 1) * SHORT
    return [turn[number % len(turn)] for number in range(start, start + SHORT)]


def reported(mutant: Mutant, trial: Trial) -> str:
    """One line about a trial."""
    if trial.killed:
        return f"{mutant.name}: killed in {trial.seconds:.1f} s by {trial.by}: {trial.said}"
    if trial.status is None:
        return f"{mutant.name}: out of time after {trial.seconds:.0f} s"
    return f"{mutant.name}: NOT KILLED (status {trial.status}): {trial.said}"


def hunted(mutants: Sequence[Mutant]) -> Row:
    """One point for each. It counts as hit when the copy, and nothing else, was what the killers ran on."""
    tally = Tally()
    slowest, seconds = "", 0.0
    with Workshop() as workshop:
        workshop.refused(killer for mutant in mutants for killer in mutant.killers)
        for mutant in mutants:
            why = workshop.refused(mutant.killers)
            if why:
                tally.point(hit=False, violation=f"{mutant.name}: {why}")
                continue
            try:
                trial = workshop.tried(mutant)
            except ValueError as error:
                tally.point(hit=False, violation=str(error))
                continue
            tally.point(hit=trial.copy, violation="" if trial.killed else _named(mutant, trial))
            if trial.seconds > seconds:
                slowest, seconds = mutant.name, trial.seconds
    tally.notes.append(f"tried: {', '.join(mutant.name for mutant in mutants) if len(mutants) <= SHORT else 'all'}")
    tally.notes.append(f"the slowest, {slowest}, in {seconds:.1f} s")
    return tally.row()


def _named(mutant: Mutant, trial: Trial) -> str:
    return f"{reported(mutant, trial)} (python -m tests.mutants {mutant.name})"


GOALS: Final = (
    Goal(
        name="mutants",
        promise="Whatever one line of defence is left out of the program, a test misses it within a minute",
        run=lambda budget: hunted(chosen(budget)),
        seconds=40,
    ),
)
