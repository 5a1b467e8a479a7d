"""Targets: command lines and the texts in them. A line is parsed and what it wishes for is prepared; no store is
touched, nothing is sent. What comes out is a value, help, or a refusal with its own status."""

from __future__ import annotations

import contextlib
import os
from typing import Final

from nereus_cli.cli import output, wishes
from nereus_cli.cli.call import Call
from nereus_cli.cli.exits import BUG, DONE, Failure, classify
from nereus_cli.cli.parser import parse
from nereus_cli.cli.read import _selection
from nereus_cli.cli.split import Help, split
from nereus_cli.cli.verbs import EVERY, PREPARABLE, VERBS
from nereus_cli.codec import encode_command
from nereus_cli.wish import zones
from nereus_cli.wish.duration import MAX_NS, format_duration, parse_duration
from nereus_cli.wish.instant import parse_instant
from nereus_cli.wish.refusal import Refusal
from nereus_cli.wish.show import describe, rfc3339
from tests.fuzz.target import Target, warm_zones, zone_data

_NOW: Final = 1_800_000_000_000_000_000
_TIMES: Final = (
    b"10m", b"1h30m", b"1.5h", b"PT1H30M", b"P1DT2H", b"90s", b"1w2d", b"100ms", b"0s", b"2027-03-28T02:30",
    b"2027-03-28T02:30:00Z", b"2027-03-28T02:30+02:00[Europe/Berlin]", b"2026-12-31T23:59:60Z", b"@1800000000.5",
    b"2027-W12-3", b"20270328T0230", b"2027-03-28", b"tomorrow", b"9999-12-31T23:59:59.999999999Z",
    b"0001-01-01T00:00Z",
)  # fmt: skip
_TEXT: Final = (
    b"-", b"+", b":", b".", b"T", b"Z", b"P", b"[", b"]", b"/", b"@", b" ", b"0", b"9" * 25, b"9" * 5_000, b"\0",
    b"\xff", b"\xd9\xa3", b"\xe2\x80\xae", b"w", b"ns", b"e9", b"_", b"[u-ca=hebrew]", b"-00:00", b"Europe/Berlin",
)  # fmt: skip
_WORDS: Final = (
    *(option.spelling.encode() for verb in VERBS for option in verb.options),
    *(verb.name.encode() for verb in VERBS), b"--json", b"--store", b"--store=", b"--", b"-", b"-h", b"--help", b"",
    b"help", b"--version", b"nats://x", b"--no-such", b"-1", b"9" * 19, b"9" * 5_000, b"A=b", b"K=file:x", b"0,3,10-12",
    b"1-99999999999", b"x" * 300, b"retry", b"hold", b"\xff", b"a\nb", b"@1800000000", b"10m", b"later", b"first",
    *_TIMES[:3],
)  # fmt: skip
_SEPARATED: Final = (*(b"\0" + word + b"\0" for word in dict.fromkeys(_WORDS)), b"\0", b"\0\0", b"=")


def setup() -> None:
    """For a process of its own. What a line would read or print is left out: files of standard input, warnings, hints
    among 600 zone names; what is loaded on first use is loaded."""
    setattr(wishes, "read_stdin", lambda path: path)  # noqa: B010 -- its type is another
    setattr(output, "note", lambda _: None)  # noqa: B010 -- as above
    setattr(zones, "_similar", lambda _: [])  # noqa: B010 -- as above

    with contextlib.suppress(Help):
        # Help loads what lays it out.
        _line(b"schedule\0--help")
    warm_zones()


# The parser reads the annotations of the one function that shows help: always the same words.
_ANNOTATIONS: Final = (b"typer.Context", b"bool", b"None")
_ANNOTATED: Final = frozenset({"typer", "Context", "bool"})


def may(event: str, args: tuple[object, ...]) -> bool:
    """Zone data is read, annotations are evaluated."""
    if event == "compile":
        return args[0] in _ANNOTATIONS
    if event == "exec":
        return _ANNOTATED.issuperset(getattr(args[0], "co_names", ("?",)))
    return zone_data(event, args)


def _words(data: bytes) -> list[str]:
    return [os.fsdecode(word) for word in data.split(b"\0")]


def _duration(data: bytes) -> str:
    found = parse_duration(data.decode("utf-8", "replace"))
    if not 0 <= found <= MAX_NS or parse_duration(format_duration(found)) != found:
        return f"a duration of {found} ns"
    return ""


def _instant(data: bytes) -> str:
    text, _, zone = data.decode("utf-8", "replace").partition(" ")
    found = parse_instant(text, zone=zone or None, gap="later", fold="first", now_ns=_NOW)
    describe(found, _NOW)
    again = parse_instant(rfc3339(found.instant_ns, "ns"), zone=None, gap=None, fold=None, now_ns=_NOW)
    return "" if again.instant_ns == found.instant_ns else f"an instant of {found.instant_ns} ns"


def _split(data: bytes) -> str:
    found = split(_words(data))
    return "" if found.verb in EVERY else "a verb that there is not"


def _line(data: bytes) -> str:
    words = _words(data)
    parts = split(words)
    call = Call(parts.verb, parse(parts), argv=words, tail=parts.tail)
    for option in parts.verb.options:
        if option.metavar in {"N", "POSITION"}:
            call.whole(option.name)
    name = parts.verb.name
    if name == "list":
        _selection(call)
    elif name == "schedule":
        encode_command(wishes.prepare_schedule(call, None).command)
    elif name in PREPARABLE:
        for word in call.words("argument"):
            encode_command(wishes.prepare_control(call, word.decode("utf-8", "replace"), None).command)
    return ""


def _told(data: bytes) -> str:
    """As ``_line``, with every way out that is not a value held against the statuses there are."""
    try:
        return _line(data)
    except Failure as failure:
        told = failure
    except Exception as error:
        told = classify(error)
        if told.status == BUG:
            raise
    return "" if told.message and told.status not in {DONE, BUG} else f"status {told.status}"


_OPTIONS: Final = {"N": b"3", "DURATION": b"10m", "TIME": b"2027-03-28T04:00Z", "ZONE": b"Europe/Berlin"}


def _lines() -> list[bytes]:
    """For each verb its example, and a line for each of its options."""
    made = []
    for verb in VERBS:
        example = verb.example.split()[1:]
        made.append("\0".join(word.strip("'") for word in example).encode())
        for option in verb.options:
            value = b"\0" + _OPTIONS.get(option.metavar, b"x") if option.metavar else b""
            made.append(f"{verb.name}\0".encode() + option.spelling.encode() + value + b"\0x\0--\0true")
    return made


_LINES: Final = _lines()

TARGETS: Final = (
    Target(name="duration", samples=_TIMES, tokens=_TEXT, run=_duration, allowed=(Refusal,), share=120, may=may),
    Target(
        name="instant", samples=(*_TIMES[9:], *(time + b" Europe/Berlin" for time in _TIMES[9:])), tokens=_TEXT,
        run=_instant, allowed=(Refusal,), share=70, may=may,
    ),
    Target(name="split", samples=_LINES, tokens=_SEPARATED, run=_split, allowed=(Failure, Help), share=60, may=may),
    Target(name="line", samples=_LINES, tokens=_SEPARATED, run=_told, allowed=(Help,), share=1, may=may),
)  # fmt: skip
