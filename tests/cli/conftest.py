"""A store of one's own, and a way to call the command line on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.owning import Owning
from tests.cli.running import Nereus


@pytest.fixture
def nereus(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Nereus:
    """The command line on a store that does not exist yet."""

    def capture() -> tuple[bytes, bytes]:
        read = capfdbinary.readouterr()
        return read.out, read.err

    return Nereus(tmp_path / "store", capture)


@pytest.fixture
def owning(nereus: Nereus) -> Owning:
    """An owner whose every record the test chooses."""
    return Owning(nereus.store)
