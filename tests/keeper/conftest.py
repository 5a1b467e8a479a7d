"""Keepers for tests: each has a store of its own and is gone afterwards."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.keeper.harness import Owner

Make = Callable[..., Owner]


@pytest.fixture
def make_owner(tmp_path: Path) -> Iterator[Make]:
    made: list[Owner] = []

    def make(fault: tuple[str, int, str] | None = None, *, store: Path | None = None, idle_s: float = 1.0) -> Owner:
        owner = Owner(store or tmp_path / "store", fault, idle_s=idle_s)
        made.append(owner)
        return owner

    yield make
    for owner in made:
        owner.end()


@pytest.fixture
def owner(make_owner: Make) -> Owner:
    return make_owner()
