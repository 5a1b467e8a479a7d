"""A pytest plugin that says from where the program under test was imported: a mutant must not be tried on the
program that is installed."""

from __future__ import annotations

import pytest

SAID = "witness: "


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    import nereus_cli

    terminalreporter.write_line(f"{SAID}{nereus_cli.__file__}")
