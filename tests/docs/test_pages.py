"""Pages that name things of the source name them all."""

from __future__ import annotations

from typing import get_args

import pytest

from nereus_cli.domain.records import Mutation, Stated
from tests.tidy.source import ROOT

FORMAT = (ROOT / "docs" / "format.md").read_text("utf-8")


@pytest.mark.parametrize(
    "kind", [kind.__struct_config__.tag for union in (Mutation, Stated) for kind in get_args(union)]
)
def test_the_format_page_names_every_kind_of_record(kind: str) -> None:
    assert f"`{kind}`" in FORMAT


def test_each_word_of_the_glossary_stands_there_once() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    words = [line.split("**")[1] for line in page.splitlines() if line.startswith("| **")]
    assert len(words) == len(set(words)) > 15
