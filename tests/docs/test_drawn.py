"""The pages that are drawn from the code say what the code says."""

from __future__ import annotations

import pytest

from nereus_cli.domain.message import Cell
from tests.docs import drawing

PAGES = drawing.pages()


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    page = drawing.DOCS / name
    if not page.parent.exists():
        pytest.skip("the documents are not here")
    assert page.read_text(encoding="utf-8") == PAGES[name], "python -m tests.docs.drawing"


def test_a_page_is_drawn_the_same_twice() -> None:
    assert drawing.pages() == PAGES


def test_every_cell_of_the_table_is_explained() -> None:
    page = PAGES["lifecycle.md"]
    for cell in Cell:
        assert f"| {drawing._word(cell)} | " in page or cell.value.startswith("TOO_LATE_")
    assert page.count("\n| `TOO_LATE_") == 1
