"""How values become bytes: when its first allocation fails, ``encode`` of msgspec 0.23 ends the interpreter."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from typing import NoReturn

import pytest

from nereus_cli import codec
from nereus_cli.cli import output
from nereus_cli.domain.facts import Head
from nereus_cli.projection import rows
from tests.tidy.source import MODULES, short

CRASHES = re.compile(r"msgspec\.(json|msgpack)\.encode\(|Encoder\([^)]*\)\.encode\b|_(encoder|json)\.encode\b")
HEAD = Head()


def test_nobody_uses_the_encoder_that_crashes() -> None:
    assert [short(path) for path in MODULES if CRASHES.search(path.read_text())] == []


def _end_behind(encode: Callable[[], object], heal: Callable[[], object], strike: Callable[[], object]) -> NoReturn:
    """Whatever it raises, wherever the failure comes: this child must only not crash, and not go on as its parent."""
    leave = os._exit
    try:
        strike()
        encode()
    finally:
        try:
            heal()
        finally:
            leave(0)


@pytest.mark.parametrize(
    "encode",
    [lambda: codec.packed(HEAD), lambda: codec.as_json(HEAD), lambda: rows.encode(HEAD), lambda: output.as_json({})],
)
def test_an_encoder_without_memory_ends_nothing(encode: Callable[[], object]) -> None:
    testcapi = pytest.importorskip("_testcapi")
    encode()
    for start in range(12):
        pid = os.fork()
        if pid == 0:
            _end_behind(encode, testcapi.remove_mem_hooks, partial(testcapi.set_nomemory, start, start + 1))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, start
