"""The lines that are typed at a store, and the stores they are typed at."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from nereus_cli.store import open_store
from tests.cli.owning import PUBLISHED, Owning
from tests.log.world import rebooted
from tests.seams import front

STORE = "store"
FIRST = "0000000001.seg"
X = ("schedule", "--in", "1h", "--id", "x", "--command-id", "cx", "--", "true")


class Line(msgspec.Struct, frozen=True):
    """Words for a verb. ``{top}`` in a word is where its files are; ``writes`` tells whether commands reach the log;
    ``names`` are the messages those are about, in order, if that is known; ``repeats``: the line says which command
    it is, so that a second time must be answered as the first one."""

    name: str
    words: tuple[str, ...]
    writes: bool = True
    names: tuple[str, ...] = ()
    repeats: bool = True


def _changing(verb: str, name: str, *more: str) -> Line:
    return Line(verb, (verb, name, "--command-id", "c1", *more), names=(name,))


WRITES = (
    Line("init", ("init",)),
    Line("schedule", ("schedule", "--in", "1h", "--id", "n", "--command-id", "c1", "--", "true"), names=("n",)),
    Line("schedule without a name", ("schedule", "--in", "1h", "--", "true"), repeats=False),
    Line("schedule --no-wait", ("schedule", "--no-wait", "--in", "1h", "--id", "n", "--", "true"), names=("n",)),
    Line("schedule once more", X, names=("x",)),
    Line(
        "schedule in conflict",
        ("schedule", "--in", "2h", "--id", "x", "--command-id", "c1", "--", "false"),
        names=("x",),
    ),
    Line("schedule --batch", ("schedule", "--batch", "{top}/batch"), names=("b1", "b2", "b3")),
    Line("schedule --batch --wait", ("schedule", "--batch", "{top}/batch", "--wait"), names=("b1", "b2", "b3")),
    _changing("cancel", "x"),
    Line("cancel two", ("cancel", "x", "h"), names=("x", "h"), repeats=False),
    _changing("reschedule", "x", "--in", "2h"),
    _changing("run-now", "x"),
    _changing("hold", "x"),
    _changing("release", "h"),
    _changing("stop", "x"),
    Line("submit", ("submit", "{top}/prepared"), names=("p",)),
)
READS = (
    Line("show", ("show", "x"), writes=False),
    Line("show the newest", ("show", "z"), writes=False),
    Line("show an attempt", ("show", "d"), writes=False),
    Line("list", ("list",), writes=False),
    Line("status", ("status",), writes=False),
    Line("status --check", ("status", "--check"), writes=False),
    Line("wait", ("wait", "x", "--timeout", "0s"), writes=False),
    Line("wait for the newest", ("wait", "z", "--timeout", "0s"), writes=False),
    Line("result", ("result", "cx"), writes=False),
    Line("result of the newest", ("result", "cz"), writes=False),
    Line("events", ("events",), writes=False),
    Line("logs", ("logs", "d"), writes=False),
    Line("uncertain", ("uncertain",), writes=False),
    Line("verify", ("verify",), writes=False),
)


class Ground(msgspec.Struct, frozen=True):
    """A kind of store: ``shape`` is done to each copy. ``healthy``: nothing about it has to be mended."""

    name: str
    shape: Callable[[Path], None]
    healthy: bool = False
    empty: bool = False


def _as_it_was(store: Path) -> None:
    rebooted(store / "log")


def _a_copy(_store: Path) -> None:
    """Its mark speaks of another file."""


def _torn(store: Path) -> None:
    """A writer died in the middle of a frame."""
    rebooted(store / "log")
    with (store / "log" / FIRST).open("ab") as segment:
        segment.write(b"\x00\x01\x02\x03NRfr and half of a frame")


def _emptied(store: Path) -> None:
    """Somebody made the directory, and nothing is in it."""
    shutil.rmtree(store)
    store.mkdir(mode=0o700)


HEALTHY = Ground("as it was", _as_it_was, healthy=True)
COPIED = Ground("copied", _a_copy)
TORN = Ground("torn", _torn)
EMPTY = Ground("empty", _emptied, empty=True)


def founded(top: Path) -> None:
    """A store to copy, with messages in several states and rows of some of them, and the files that lines name."""
    store = top / STORE
    for words in (
        X,
        ("schedule", "--in", "1h", "--id", "h", "--", "true"),
        ("hold", "h"),
        ("schedule", "--in", "0s", "--id", "d", "--", "true"),
    ):
        _done(store, words)
    with open_store(str(store)) as opened:
        rows = opened.open_projection()
        for _ in opened.pull(rows, None):
            pass
        rows.close()
    owning = Owning(store)
    owning.end("d", owning.admit("d"), PUBLISHED)
    _done(store, ("schedule", "--in", "1h", "--id", "z", "--command-id", "cz", "--", "true"))
    lines = ({"id": name, "in": "1h", "argv": ["true"]} for name in ("b1", "b2", "b3"))
    (top / "batch").write_text("".join(json.dumps(line) + "\n" for line in lines))
    prepared = front.call(store, ("prepare", "schedule", "--in", "1h", "--id", "p", "--", "true"))
    (top / "prepared").write_text("".join(json.dumps(one) + "\n" for one in prepared.documents))


def _done(store: Path, words: Sequence[str]) -> None:
    called = front.call(store, words)
    if called.status != 0:
        raise AssertionError(f"{words}: {called}")


def pairs(*, long: bool) -> list[tuple[Line, Ground]]:
    """Which lines are typed at which stores."""
    chosen = [(line, HEALTHY) for line in (*WRITES, *READS)]
    begins = ("init", "schedule", "schedule without a name", "schedule --batch", "submit")
    chosen += [(line, EMPTY) for line in WRITES if line.name in begins]
    some = ("schedule", "cancel", "show the newest", "wait for the newest", "result of the newest", "logs", "list")
    chosen += [(line, COPIED) for line in (*WRITES, *READS) if long or line.name in some]
    chosen += [(line, TORN) for line in (*WRITES, *READS) if long or line.name in some[:3]]
    return chosen
