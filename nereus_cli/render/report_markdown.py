"""``uncertain report`` as Markdown. What comes from outside is text in it, never markup and never HTML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nereus_cli.render.report import EXAMPLE, EXPLANATION, NOTHING, TITLE, facts, summary
from nereus_cli.render.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nereus_cli.render.machine import Document

_MARKUP: Final = str.maketrans({c: f"\\{c}" for c in "\\`*[]|~#$!"} | {"&": "&amp;", "<": "&lt;"})

# Inside a word it is no markup, and words such as NO_EVIDENCE are read by people as they stand.
_UNDERSCORE: Final = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def escaped(text: str) -> str:
    """One line that reads as ``text`` wherever it stands, in a cell of a table too."""
    return _UNDERSCORE.sub(r"\\_", visible(text).translate(_MARKUP))


def markdown(document: Document) -> str:
    """The whole page."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield from (f"# {TITLE}", "", escaped(summary(document)), "")
    if not document["items"]:
        yield NOTHING
        return
    for paragraph in EXPLANATION:
        yield from (paragraph, "")
    yield from _block(EXAMPLE)
    for number, item in enumerate(document["items"], 1):
        yield from _item(number, item)


def _item(number: int, item: Document) -> Iterator[str]:
    yield from (f"## {number}. {escaped(item['message_id'])}, attempt {item['attempt']}", "")
    yield from ("| | |", "|---|---|")
    for name, text in facts(item):
        yield f"| {name} | {escaped(text)} |"
    yield from ("", "To see more:", "")
    yield from _block(*item["look"])
    for choice in item["choices"]:
        yield from (f"**{choice['verdict']}**: {choice['means']}", "")
        yield from _block(choice["command"])


def _block(*lines: str) -> Iterator[str]:
    """Lines to be pasted, as code: indented, for nothing that stands in a line can end that."""
    yield from (*(f"    {line}" for line in lines), "")
