"""``uncertain report`` as one HTML page that needs nothing else: no script, no link, and no markup from outside."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from nereus_cli.render.report import EXAMPLE, EXPLANATION, NOTHING, TITLE, facts, summary
from nereus_cli.render.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nereus_cli.render.machine import Document

_STYLE: Final = (
    "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "th{text-align:left;vertical-align:top;padding-right:1rem;font-weight:normal;color:#555}"
    "td{overflow-wrap:anywhere}pre{background:#f3f3f3;padding:.5rem;white-space:pre-wrap}"
    "section{border-top:1px solid #ccc;margin-top:2rem}"
)
_HEAD: Final = (
    "<!DOCTYPE html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
    f"<title>{TITLE}</title>",
    f"<style>{_STYLE}</style>",
    "</head>",
    "<body>",
    f"<h1>{TITLE}</h1>",
)


def escaped(text: str) -> str:
    """Text that is only text, in an attribute too."""
    return html.escape(visible(text))


def page(document: Document) -> str:
    """The whole page; what is beyond ASCII is for the caller to encode."""
    return "\n".join([*_HEAD, *_body(document), "</body>", "</html>"]) + "\n"


def _body(document: Document) -> Iterator[str]:
    yield f"<p>{escaped(summary(document))}</p>"
    if not document["items"]:
        yield f"<p>{NOTHING}</p>"
        return
    for paragraph in EXPLANATION:
        yield f"<p>{escaped(paragraph)}</p>"
    yield _pre(EXAMPLE)
    for item in document["items"]:
        yield from _item(item)


def _item(item: Document) -> Iterator[str]:
    yield from ("<section>", f"<h2>{escaped(item['message_id'])}, attempt {item['attempt']}</h2>", "<table>")
    for name, text in facts(item):
        yield f"<tr><th>{escaped(name)}</th><td>{escaped(text)}</td></tr>"
    yield from ("</table>", "<p>To see more:</p>", _pre("\n".join(item["look"])))
    for choice in item["choices"]:
        yield f"<p><strong>{escaped(choice['verdict'])}</strong>: {escaped(choice['means'])}</p>"
        yield _pre(choice["command"])
    yield "</section>"


def _pre(lines: str) -> str:
    return "<pre>" + "\n".join(escaped(line) for line in lines.splitlines()) + "</pre>"
