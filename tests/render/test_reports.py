"""What comes from outside is text in a report, whatever it spells."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nereus_cli.render import report_html, report_markdown
from nereus_cli.render.report import _age
from nereus_cli.render.settling import pasteable
from nereus_cli.render.text import visible

TEXTS = st.text() | st.text(alphabet="\\`*_[]()#+-!|~<>&;$'\"\n\r\ta1 ")


def plain(text: str) -> str:
    """What a reader of Markdown sees of escaped text."""
    return html.unescape(re.sub(r"\\(.)", lambda found: f"&#{ord(found[1])};", text))


@given(TEXTS)
@example("a|b")
@example("\\|")
@example("<script>alert(1)</script>")
@example("&lt;")
@example("__init__ NO_EVIDENCE _a_")
@example("a\n# b")
def test_markdown_reads_as_what_was_written(text: str) -> None:
    shown = report_markdown.escaped(text)
    assert plain(shown) == visible(text)
    assert shown.isprintable()
    bare = re.sub(r"\\.", "", shown)
    assert not set(bare) & set("\\`*[]|~#$!<")
    assert re.search(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", re.sub(r"\\_", "a", shown)) is None
    assert re.fullmatch(r"(?:[^&]|&(?:amp|lt);)*", bare)


@given(TEXTS)
@example("</td><script>alert(1)</script>")
@example("\" onload='x'")
@example("&amp;")
def test_a_page_reads_as_what_was_written(text: str) -> None:
    shown = report_html.escaped(text)
    assert html.unescape(shown) == visible(text)
    assert not set(shown) & set("<>\"'")
    assert shown.isprintable()


def test_words_of_ours_stay_as_they_are() -> None:
    assert report_markdown.escaped("NO_EVIDENCE, RETRY_WAIT") == "NO_EVIDENCE, RETRY_WAIT"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0s"), (59, "59s"), (60, "1m 0s"), (3_661, "1h 1m"), (86_400, "1d 0h"), (90 * 86_400 + 7_200, "90d 2h")],
)
def test_an_age_is_said_in_its_two_largest_units(seconds: int, said: str) -> None:
    assert _age(seconds) == said


@pytest.mark.parametrize(
    ("store", "line"),
    [
        (None, 'nereus resolve x --evidence "$EVIDENCE"'),
        ("/a b", "nereus resolve x --evidence \"$EVIDENCE\" --store '/a b'"),
        ("/\udcff", "nereus resolve x --evidence \"$EVIDENCE\" --store $'/\\377'"),
    ],
)
def test_a_line_names_its_store_if_it_was_told_one(store: str | None, line: str) -> None:
    assert pasteable("resolve", "x", store=store, evidence=True) == line
