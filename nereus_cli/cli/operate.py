"""Operating a store: run, init, verify."""

from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING, Final

from nereus_cli import founding
from nereus_cli.cli import opening, output
from nereus_cli.cli.exits import DAMAGED, DONE, usage
from nereus_cli.domain.instant import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from nereus_cli.cli.call import Call
    from nereus_cli.log.verify import Finding
    from nereus_cli.render.machine import Document
    from nereus_cli.store import Store

_CONCURRENCY: Final = 8
_CONCURRENCY_MAX: Final = 1_000
_GRACE_NS: Final = 10 * SECOND


def run(call: Call) -> int:
    """Owns the store, in the foreground, until told to stop."""
    concurrency = call.whole("concurrency", least=1) or _CONCURRENCY
    if concurrency > _CONCURRENCY_MAX:
        raise usage(f"--concurrency takes 1 to {_CONCURRENCY_MAX}", field="concurrency")
    grace = call.duration("grace")
    if call.flag("until-idle") and call.flag("once"):
        raise usage("say either --until-idle or --once", field="once")
    from nereus_cli.daemon import run_owner

    with opening.for_writing(call, create=True) as store:
        return run_owner(
            store,
            concurrency=concurrency,
            grace_ns=_GRACE_NS if grace is None else grace,
            until_idle=call.flag("until-idle"),
            once=call.flag("once"),
            report=_reporter(call),
        )


def _reporter(call: Call) -> Callable[[str, dict[str, object]], None]:
    """Lines for a person at a terminal, one JSON document an event for everything else. Never ends the daemon."""
    person = not call.json and os.isatty(2)

    def report(event: str, facts: dict[str, object]) -> None:
        from nereus_cli.wish.show import rfc3339

        now = rfc3339(time.time_ns())
        if person:
            output.note(" ".join([f"{now} {event}", *(f"{name}={value}" for name, value in facts.items())]))
            return
        document = {"schema": "nereus.daemon/1", "at": now, "event": event, **facts}
        output.raw_note(output.as_json(document) + b"\n")

    return report


def init(call: Call) -> int:
    """Makes the store, or finds it."""
    path = os.path.abspath(call.store_path())
    existed = founding.is_store(path)
    opening.for_writing(call, create=True).close()
    if call.json:
        output.document({"schema": "nereus.init/1", "store": path, "created": not existed})
    else:
        output.line(f"{'found' if existed else 'created'} {path}")
    return DONE


def verify(call: Call) -> int:
    """Reads the whole log, replays it, and compares the stored projection with the replay at the same position."""
    with opening.for_reading(call) as store:
        found = store.log.verify()
        replay = _replay(store) if found.sound else {"compared": False, "equal": None, "through": None}
    sound = found.sound and replay["equal"] is not False
    document: Document = {
        "schema": "nereus.verify/1",
        "sound": sound,
        "segments": found.segments,
        "records": found.records,
        "bytes": found.bytes_read,
        "first": found.first,
        "durable": found.durable,
        "projection": replay,
        "findings": [_finding(one) for one in found.findings],
    }
    if call.json:
        output.document(document)
    else:
        for line in _sheet(document):
            output.line(line)
    return DONE if sound else DAMAGED


def _replay(store: Store) -> Document:
    """Folds the log through the position of the stored rows; digests of equal states are equal."""
    stored = store.stored()
    durable = store.log.bounds().durable
    through = stored.head().applied if stored else durable
    if through > durable:
        why = "the projection leads the log"
        return {"compared": True, "equal": False, "through": through, "digest": None, "why": why}
    with tempfile.TemporaryDirectory(prefix="nereus-verify-") as directory:
        fresh = store.replayed(directory, through)
        try:
            digest = fresh.digest()
            quarantined = fresh.head().quarantined
        finally:
            fresh.close()
    equal = stored.digest() == digest if stored else None
    return {
        "compared": stored is not None,
        "equal": equal,
        "through": through,
        "digest": f"sha256:{digest}",
        "quarantined": quarantined,
    }


def _finding(one: Finding) -> Document:
    return {
        "file": one.file,
        "offset": one.offset,
        "position": one.position or None,
        "what": one.what,
        "damage": one.damage,
    }


def _sheet(document: Document) -> list[str]:
    segments = document["segments"]
    read = f"{document['records']} records in {segments} segment{'' if segments == 1 else 's'}"
    lines = [f"log         {read}, durable through {document['durable']}"]
    projection = document["projection"]
    words = {True: "equals the replay", False: "DIFFERS from the replay", None: "none stored"}
    lines.append(f"projection  {words[projection['equal']]} through position {projection['through']}")
    if projection.get("quarantined"):
        lines.append(f"note        {projection['quarantined']} records cannot be decoded and were stepped over")
    for one in document["findings"]:
        what = "DAMAGE" if one["damage"] else "note"
        lines.append(f"{what:<11} {one['file']} offset {one['offset']} position {one['position']}: {one['what']}")
    return [*lines, f"verdict     {'sound' if document['sound'] else 'DAMAGED'}"]
