"""The verbs that change something: schedule, cancel, reschedule and the other controls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from nereus_cli import trust
from nereus_cli.cli import exits, lines, opening, output, wishes
from nereus_cli.cli.exits import Failure, usage
from nereus_cli.cli.sending import Item, Sender, send_all
from nereus_cli.disk import is_directory

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.domain.records import Permission
    from nereus_cli.prepare.wishes import Prepared

Make: TypeAlias = "Callable[[Permission | None], Prepared]"
_BATCH: Final = frozenset({"batch", "wait", "no-wait", "wait-timeout", "dry-run", "quiet", "store", "json"})


def schedule(call: Call) -> int:
    """``nereus schedule``: one command, or a batch of them."""
    wait = waits(call, default=bool({"id", "command-id"} & call.given()) and not call.flag("no-wait"))
    if call.raw("batch") is not None:
        others = sorted(call.given() - _BATCH)
        if others or call.tail is not None:
            what = f"--{others[0]}" if others else "a command behind --"
            raise usage(f"{what} does not go with --batch: it is said line by line", field="batch")
        from nereus_cli.cli.batch import schedule_batch

        return schedule_batch(call, wait=waits(call, default=False))
    return send_one(call, lambda decision: wishes.prepare_schedule(call, decision), create=True, wait=wait)


def control(call: Call) -> int:
    """``nereus cancel`` and its kin: one command for each id."""
    names = ids(call)
    wait = waits(call, default=True)
    if isinstance(names, str):
        name = names
        return send_one(call, lambda decision: wishes.prepare_control(call, name, decision), create=False, wait=wait)
    if call.raw("command-id") is not None:
        raise usage("--command-id names one command, and here are several ids", field="command-id")
    if call.flag("dry-run"):
        raise usage("--dry-run takes one id", field="dry-run")
    decision = decision_at(call)
    sender = Sender(call, lambda: opening.for_writing(call, create=False), wait=wait, single=False)
    return send_all(sender, lines.items(names, lambda line, name: _controlled(call, line, name, decision)))


def ids(call: Call) -> str | Iterable[list[lines.Line]]:
    """The one id of a line, or the blocks of lines that several come in."""
    given = call.words("argument")
    if call.verb.argument is None or not call.verb.argument.many:
        return given[0].decode("utf-8", "replace")
    if given == [b"-"]:
        return lines.Reader(0)
    if b"-" in given:
        raise usage("- stands alone: ids come from standard input then", field="id")
    return [list(enumerate(given, 1))] if len(given) > 1 else given[0].decode("utf-8", "replace")


def _controlled(call: Call, line: int, name: bytes | None, decision: Permission | None) -> Item:
    text = (name or b"").decode("utf-8", "replace").strip()
    try:
        return Item(wishes.prepare_control(call, text, decision), line=line, name=text)
    except Failure as failure:
        return Item(failure=failure, line=line, name=text)


def decision_at(call: Call) -> Permission:
    """What allows this process to write there; raises what trust.judge raises."""
    path = call.store_path()
    return trust.judge(path) if is_directory(path) else trust.permission(trust.STORE_MODE)


def waits(call: Call, *, default: bool) -> bool:
    """Whether to answer APPLIED or REJECTED. With a log on files the answer is known as soon as it is asked for."""
    if call.flag("wait") and call.flag("no-wait"):
        raise usage("say either --wait or --no-wait", field="wait")
    call.duration("wait-timeout")
    return call.flag("wait") or (default and not call.flag("no-wait"))


def send_one(call: Call, make: Make, *, create: bool, wait: bool) -> int:
    """Prepares one command and sends it; a refusal is the whole answer."""
    if call.flag("dry-run"):
        return dry_run(call, make(None))
    # What cannot be prepared must not create a store, so it is tried before one is opened.
    prepared = make(decision_at(call))
    sender = Sender(call, lambda: opening.for_writing(call, create=create), wait=wait, single=True)
    return send_all(sender, [[Item(prepared)]])


def dry_run(call: Call, prepared: Prepared) -> int:
    """Everything but the append."""
    from nereus_cli.render.machine import asked_for, dry

    path = call.store_path()
    if is_directory(path):
        opening.for_reading(call).close()
    command = prepared.command
    due = asked_for(command, command.context.requested_at)
    if due is not None and due < command.context.requested_at and not getattr(command.stated, "allow_past", False):
        raise Failure("PAST", "that time is past; --allow-past delivers it at once", exits.REFUSED, {"field": "at"})
    if call.json:
        output.document(dry(prepared))
    else:
        from nereus_cli.render.human import both_clocks

        shown = "" if due is None else f"  due {both_clocks(due)}"
        output.line(f"not queued (dry run) {getattr(command.stated, 'message_id', '')}{shown}")
    return exits.DONE
