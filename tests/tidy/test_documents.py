"""Documents that a machine can hold to the truth."""

import re

import pytest

from tests.tidy.source import MODULES, ROOT, short

ARCHITECTURE = ROOT / "docs" / "architecture.md"
DECISIONS = ROOT / "docs" / "adr"


@pytest.mark.skipif(not ARCHITECTURE.exists(), reason="no architecture page yet")
def test_the_architecture_page_names_every_module() -> None:
    page = ARCHITECTURE.read_text()
    named = {short(path): short(path).removesuffix("__init__.py") or "__init__.py" for path in MODULES}
    assert [module for module, name in named.items() if name not in page] == []


def test_decisions_are_numbered_without_gaps_and_say_how_they_stand() -> None:
    pages = sorted(path for path in DECISIONS.glob("*.md") if not path.name.startswith("0000-"))
    assert [int(path.name[:4]) for path in pages] == list(range(1, len(pages) + 1))
    for path in pages:
        text = path.read_text()
        assert text.startswith(f"# {path.name[:4]}. "), path.name
        assert re.search(r"^- Status: (proposed|accepted|replaced by \d{4})$", text, re.MULTILINE), path.name


def test_the_changelog_has_a_place_for_what_is_not_released() -> None:
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text()
