"""All mutants, by name."""

from __future__ import annotations

from typing import Final

from tests.mutants.deciding import DECIDING
from tests.mutants.doing import DOING
from tests.mutants.durable import DURABLE
from tests.mutants.guarding import GUARDING
from tests.mutants.locking import LOCKING
from tests.mutants.mutant import Mutant
from tests.mutants.overlooked import OVERLOOKED
from tests.mutants.settling import SETTLING
from tests.mutants.truth import TRUTH

MUTANTS: Final = (*DURABLE, *LOCKING, *TRUTH, *DECIDING, *DOING, *SETTLING, *GUARDING, *OVERLOOKED)
BY_NAME: Final[dict[str, Mutant]] = {mutant.name: mutant for mutant in MUTANTS}
