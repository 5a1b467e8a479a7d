"""The command line called in this process, over a disk of the harness's choice, with its words caught."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from nereus_cli import store as stores
from nereus_cli.cli import asking, lines, output, parser
from nereus_cli.cli.main import main
from nereus_cli.cli.split import Split
from nereus_cli.disk import SystemDisk
from nereus_cli.ports import Disk
from nereus_cli.testing import CrashedError

Document = dict[str, Any]
_PARSE = parser.parse
_MEANINGS: dict[tuple[object, ...], Mapping[str, list[str] | bool]] = {}


class Called(msgspec.Struct, frozen=True):
    """What a call left: its status (None: it died), the documents it printed, what it noted, and what escaped it."""

    status: int | None
    documents: list[Document]
    notes: str
    escaped: str = ""


@contextlib.contextmanager
def over(disk: Disk | None) -> Iterator[None]:
    """Stores that are opened inside stand on this disk."""
    with mock.patch.object(stores, "SystemDisk", SystemDisk if disk is None else lambda: disk):
        yield


def call(store: Path, words: Sequence[str], disk: Disk | None = None) -> Called:
    """One line with ``--json``, on the store at that path."""
    out: list[bytes] = []
    notes: list[bytes] = []
    escaped, status = "", None
    inputs: list[int] = []
    with (
        over(disk),
        mock.patch.object(output, "write", out.append),
        mock.patch.object(output, "raw_note", notes.append),
        mock.patch.object(output, "on_terminal", return_value=False),
        mock.patch.object(lines, "open_input", _kept_in(inputs)),
        mock.patch.object(parser, "parse", _parsed),
        mock.patch.object(asking, "_SYNC_WAIT_S", 0.01),
        mock.patch.dict(os.environ, {"NEREUS_STORE": str(store)}),
    ):
        try:
            status = main(["--json", *words])
        except CrashedError:
            pass
        except BaseException as error:  # noqa: BLE001 -- nothing else may leave main: that is what is judged
            escaped = f"{type(error).__name__}: {error}"
    for fd in inputs:
        os.close(fd)
    documents = [json.loads(line) for line in b"".join(out).splitlines()]
    return Called(status, documents, b"".join(notes).decode("utf-8", "replace"), escaped)


def _parsed(split: Split) -> Mapping[str, list[str] | bool]:
    """The same words mean the same every time, and finding out costs as much as all the rest of a call."""
    key = (split.verb.name, split.prepare, *split.words)
    if key not in _MEANINGS:
        _MEANINGS[key] = _PARSE(split)
    return _MEANINGS[key]


def _kept_in(inputs: list[int]) -> Callable[[bytes], int]:
    """The process would end behind a call and close its input; here it goes on."""
    opened = lines.open_input

    def open_input(path: bytes) -> int:
        inputs.append(opened(path))
        return inputs[-1]

    return open_input
