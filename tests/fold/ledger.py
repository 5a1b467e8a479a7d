"""A ledger kept by hand: who was admitted and what became of it, from verdicts alone. It knows no states."""

from __future__ import annotations

from dataclasses import dataclass, field

from nereus_cli.domain.facts import Verdict
from nereus_cli.domain.outcome import Decision, SideEffect
from nereus_cli.domain.records import Admission, Command, Outcome, Reschedule, Schedule
from nereus_cli.fold import Applied


@dataclass
class Line:
    """One admission: its generation, and its effect once an outcome was recorded."""

    attempt_id: str
    generation: int
    effect: SideEffect | None = None


@dataclass
class Account:
    """One message: its generation, version and admissions."""

    generation: int = 0
    version: int = 1
    lines: list[Line] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Every admitted attempt of this generation is settled NOT_PUBLISHED, or there is none."""
        effects = [line.effect for line in self.lines if line.generation == self.generation]
        return all(effect is SideEffect.NOT_PUBLISHED for effect in effects)

    def effects(self, effect: SideEffect) -> int:
        return sum(line.effect is effect for line in self.lines)


class Ledger:
    """All messages."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}

    def write(self, applied: Applied) -> None:
        record, change = applied.record, applied.change
        match record:
            case Command(stated=stated):
                result = change.result
                if result is None or result.decision is Decision.REJECTED or result.already:
                    return
                if isinstance(stated, Schedule):
                    self.accounts[stated.message_id] = Account()
                    return
                account = self.accounts[result.message_id]
                account.version += 1
                account.generation += isinstance(stated, Reschedule)
            case Admission() if change.verdict is Verdict.ADMITTED:
                account = self.accounts[record.message_id]
                account.lines.append(Line(record.attempt_id, account.generation))
            case Outcome() if change.verdict is Verdict.TAKEN:
                [line] = [x for x in self.accounts[record.message_id].lines if x.attempt_id == record.attempt_id]
                assert line.effect is None
                line.effect = record.side_effect
            case _:
                return
