"""``nereus uncertain`` and its report: the attempts whose effect is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nereus_cli.cli import asking, opening, output
from nereus_cli.cli.exits import DONE, NEEDS_A_PERSON, usage
from nereus_cli.render.unsettled import uncertain_item, unsettled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nereus_cli.cli.call import Call
    from nereus_cli.domain.message import Message
    from nereus_cli.render.machine import Document

_FORMATS: Final = ("json", "md", "html")


def uncertain(call: Call) -> int:
    """Every attempt of unknown effect; exit 30 when there is one."""
    with opening.for_reading(call) as store:
        view = store.view()
        now = store.clock.read().latest
        found = unsettled(view.open_messages(), everything=call.flag("all"))
        store_said = call.stated_store()
        items = [uncertain_item(message, attempt, now, store_said) for message, attempt in found]
        as_of = view.head().applied
    if call.json:
        output.document({"schema": "nereus.uncertain/1", "as_of": as_of, "items": items})
        return NEEDS_A_PERSON if items else DONE
    for item in items:
        output.line(
            f"{item['message_id']}  attempt {item['attempt']}  {item['attempt_id']}  admitted {item['admitted_at']}"
            f"  {item['evidence']['code']}  {item['evidence']['detail'] or ''}".rstrip()
        )
    output.note("nereus uncertain report says what can be done" if items else "nothing is uncertain")
    return NEEDS_A_PERSON if items else DONE


def report(call: Call) -> int:
    """The same with all that is known and the lines that settle it, as JSON, Markdown or HTML; for ``show`` of one
    message alone, whether it has ended or not."""
    form = _format(call)
    document = _document(call)
    if form == "json":
        output.document(document)
    elif form == "html":
        from nereus_cli.render.report_html import page

        output.write(page(document).encode("ascii", "xmlcharrefreplace"))
    else:
        from nereus_cli.render.report_markdown import markdown

        output.write(markdown(document).encode(output.encoding(), "backslashreplace"))
    return NEEDS_A_PERSON if document["items"] else DONE


def _format(call: Call) -> str:
    said = call.text("format")
    if said is not None and said not in _FORMATS:
        raise usage(f"--format takes {', '.join(_FORMATS)}", field="format")
    if call.json and said not in (None, "json"):
        raise usage(f"--json prints JSON, and --format {said} does not", field="format")
    return "json" if call.json else said or "md"


def _document(call: Call) -> Document:
    from nereus_cli.render.report import report_document

    name = asking.one_id(call) if call.verb.argument else None
    everything = name is not None or call.flag("all")
    with opening.for_reading(call) as store:
        view = store.view()
        messages: Sequence[Message] = view.open_messages()
        if name is not None:
            view, message = asking.known(store, view, name)
            messages = [message]
        found = []
        for message, attempt in unsettled(messages, everything=everything):
            described = view.descriptor(message.descriptor_position)
            found.append((message, attempt, described.command if described else None))
        return report_document(
            found,
            as_of=view.head().applied,
            now=store.clock.read().latest,
            store=call.stated_store(),
            daemon=store.presence().state,
            everything=everything,
        )
