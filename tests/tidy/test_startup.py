"""What may not be loaded: every `nereus` command pays for what it imports.

To guard one more command, add a row to COMMANDS.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = frozenset({"asyncio", "filelock", "http.client", "rich", "sqlite3", "ssl", "unittest", "urllib.request"})

# What a command may load nevertheless is taken away from HEAVY in its row.
IMPORTS = [
    pytest.param(
        "nereus_cli", HEAVY | {"dataclasses", "importlib.metadata", "logging", "msgspec", "typer"}, id="package"
    ),
    pytest.param("nereus_cli.__main__", HEAVY | {"importlib.metadata", "logging", "msgspec", "typer"}, id="main"),
]
COMMANDS = [
    pytest.param(("--version",), HEAVY, id="version"),
    pytest.param(("--help",), HEAVY - {"rich"}, id="help"),
    pytest.param(("schedule", "--in", "1h", "--", "true"), HEAVY, id="schedule"),
    pytest.param(("schedule", "--help"), HEAVY - {"rich"}, id="schedule-help"),
]

LOADED = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)$", re.MULTILINE)


def _loaded_by(arguments: tuple[str, ...], store: Path) -> set[str]:
    """Run Python and name every module it loaded."""
    finished = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        env={**os.environ, "NEREUS_STORE": str(store)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    loaded = set(LOADED.findall(finished.stderr))
    assert "nereus_cli" in loaded
    return loaded


@pytest.mark.parametrize(("module", "unwanted"), IMPORTS)
def test_an_import_loads_nothing_heavy(module: str, unwanted: frozenset[str], tmp_path: Path) -> None:
    assert _loaded_by(("-c", f"import {module}"), tmp_path / "store") & unwanted == set()


@pytest.mark.skipif(importlib.util.find_spec("nereus_cli.cli") is None, reason="no command line yet")
@pytest.mark.parametrize(("arguments", "unwanted"), COMMANDS)
def test_a_command_loads_nothing_heavy(arguments: tuple[str, ...], unwanted: frozenset[str], tmp_path: Path) -> None:
    assert _loaded_by(("-m", "nereus_cli", *arguments), tmp_path / "store") & unwanted == set()
