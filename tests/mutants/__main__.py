"""A deliberately broken build, and what catches it:

python -m tests.mutants NAME...     0 when each is killed; says by which test, and by which line of it
python -m tests.mutants --list      all of them, and why each must be noticed
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.mutants.goals import reported
from tests.mutants.mutant import Mutant
from tests.mutants.table import BY_NAME, MUTANTS
from tests.mutants.workshop import Workshop


def main(argv: Sequence[str]) -> int:
    """As above; 2 for a name that there is not."""
    if list(argv) == ["--list"]:
        for mutant in MUTANTS:
            _say(f"{mutant.name:<52} {mutant.file}: {mutant.why}")
        return 0
    unknown = [name for name in argv if name not in BY_NAME]
    if unknown or not argv:
        _say(f"no such mutant: {' '.join(unknown) or '(none named)'}; python -m tests.mutants --list")
        return 2
    with Workshop() as workshop:
        return max(_hunt(workshop, BY_NAME[name]) for name in argv)


def _hunt(workshop: Workshop, mutant: Mutant) -> int:
    _say(f"{mutant.name}: {mutant.why}")
    why = workshop.refused(mutant.killers)
    if why:
        _say(why)
        return 1
    trial = workshop.tried(mutant)
    _say(reported(mutant, trial))
    return 0 if trial.killed else 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
