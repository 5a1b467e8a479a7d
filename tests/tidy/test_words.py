"""Words that say that something is not done."""

import re
from pathlib import Path

from tests.tidy.source import MODULES, ROOT

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b|(?i:\bplaceholder)")
UNEXPLAINED = re.compile(r"#\s*(type:\s*ignore|noqa)\b(?:\[[\w, -]+\]|:\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*)?\s*$")


def test_nothing_is_left_unfinished() -> None:
    assert _lines_that(UNFINISHED, MODULES) == []


def test_a_rule_is_never_silenced_without_a_reason_beside_it() -> None:
    assert _lines_that(UNEXPLAINED, [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))]) == []


def _lines_that(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
