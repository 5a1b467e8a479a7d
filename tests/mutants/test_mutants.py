"""The table of mutants fits the program as it is, and the hunt notices what is not noticed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from tests.mutants.goals import SHORT, chosen, reported
from tests.mutants.mutant import Mutant
from tests.mutants.table import MUTANTS
from tests.mutants.workshop import PACKAGE, ROOT, Workshop
from tests.reliability.row import Budget

KINDS_MIN = 40


@cache
def text(path: Path) -> str:
    return path.read_text()


def broken(mutant: Mutant) -> str:
    return mutant.applied(text(PACKAGE / mutant.file))


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) >= KINDS_MIN
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []


def test_no_two_are_the_same() -> None:
    assert len({(mutant.file, broken(mutant)) for mutant in MUTANTS}) == len(MUTANTS)


def test_each_changes_one_place_and_compiles() -> None:
    for mutant in MUTANTS:
        compile(broken(mutant), mutant.file, "exec")
        assert mutant.why, mutant.name


def test_their_killers_are_there() -> None:
    for mutant in MUTANTS:
        assert mutant.killers, mutant.name
        for killer in mutant.killers:
            file, _, function = killer.partition("[")[0].partition("::")
            assert function, f"{mutant.name}: a killer is one test, and not {killer}"
            assert f"def {function}(" in text(ROOT / "tests" / file), f"{mutant.name}: {killer}"


def test_ten_at_a_time_go_through_all_of_them() -> None:
    seeds = range(1, 1 + -(-len(MUTANTS) // SHORT))
    tens = [[mutant.name for mutant in chosen(Budget(seed=seed))] for seed in seeds]
    assert {len(ten) for ten in tens} == {SHORT}
    assert {name for ten in tens for name in ten} == {mutant.name for mutant in MUTANTS}
    assert chosen(Budget(long=True)) == MUTANTS


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    with Workshop() as made:
        yield made


def planted(**changes: str | tuple[str, ...]) -> Mutant:
    """One that is killed at once, by its only killer, with some of it changed."""
    mutant = next(one for one in MUTANTS if one.name == "surely-before-includes-the-instant")
    return msgspec.structs.replace(mutant, **changes)


def test_a_mutant_is_killed_and_it_is_said_by_what(workshop: Workshop) -> None:
    mutant = planted()
    assert workshop.refused(mutant.killers) == ""
    trial = workshop.tried(mutant)
    assert (trial.killed, trial.copy, trial.by.partition("[")[0]) == (True, True, mutant.killers[0].partition("[")[0])
    assert "assert" in trial.said
    assert "killed in" in reported(mutant, trial)
    assert text(PACKAGE / mutant.file) == (workshop.path / "nereus_cli" / mutant.file).read_text()


def test_a_change_that_changes_nothing_is_not_killed(workshop: Workshop) -> None:
    mutant = planted(new="        return instant > self.latest\n")
    trial = workshop.tried(mutant)
    assert (trial.killed, trial.copy, trial.status) == (False, True, 0)
    assert "NOT KILLED" in reported(mutant, trial)


def test_a_program_that_cannot_be_loaded_is_not_called_killed(workshop: Workshop) -> None:
    assert not workshop.tried(planted(new="        return nobody knows\n")).killed


def test_a_killer_that_fails_by_itself_is_refused(workshop: Workshop) -> None:
    (workshop.path / "tests" / "test_sad.py").write_text("def test_sad():\n    assert not 'sad'\n")
    assert "fails without a mutant" in workshop.refused(["test_sad.py::test_sad"])
    assert "fails without a mutant" in workshop.refused(["test_nowhere.py::test_none"])


def test_a_place_that_is_not_there_or_there_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 places"):
        broken(planted(old="no such line"))
    with pytest.raises(ValueError, match="2 places"):
        planted(old="a").applied("aa")
