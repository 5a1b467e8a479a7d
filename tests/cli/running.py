"""Running the command line in a test: in this process where that is enough, as a process of its own where not.

Every JSON document that passes through here is held against its schema in docs/schemas.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import jsonschema  # type: ignore[import-untyped] # it brings no types

import nereus_cli

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "docs" / "schemas"
Document = dict[str, Any]
COMMAND = (sys.executable, "-m", "nereus_cli")


class Ran(NamedTuple):
    """What a call left behind."""

    status: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def notes(self) -> list[str]:
        """The lines on standard error."""
        return self.err.decode("utf-8", "backslashreplace").splitlines()

    @property
    def documents(self) -> list[Document]:
        """Every line of standard output, valid by its own schema, and in printable ASCII."""
        assert self.out.isascii(), self.out
        assert b"\x1b" not in self.out
        found = [json.loads(line) for line in self.out.splitlines()]
        for one in found:
            check(one)
        return found

    @property
    def document(self) -> Document:
        (one,) = self.documents
        return one


def check(document: Document) -> None:
    """Raises where a document does not have the shape it names."""
    name, _, version = document["schema"].removeprefix("nereus.").partition("/")
    assert version == "1"
    _validator(name).validate(document)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{name}.json").read_text()))


class Nereus:
    """Calls with one store."""

    def __init__(self, store: Path, capture: Callable[[], tuple[bytes, bytes]]) -> None:
        self.store = store
        self._capture = capture

    def __call__(self, *words: str) -> Ran:
        """In this process: quick."""
        from nereus_cli.cli.main import main

        self._capture()
        status = main(["--store", str(self.store), *words])
        out, err = self._capture()
        return Ran(status, out, err)

    def json(self, *words: str) -> tuple[int, Document]:
        """Status and the one document."""
        ran = self("--json", *words)
        return ran.status, ran.document

    def process(
        self,
        *words: str | bytes,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        stdout: int | IO[bytes] = subprocess.PIPE,
        preexec_fn: Callable[[], None] | None = None,
    ) -> Ran:
        """As a process of its own."""
        ran = subprocess.run(
            [*COMMAND, "--store", str(self.store), *words],
            input=stdin,
            env=environment(env),
            stdout=stdout,
            stderr=subprocess.PIPE,
            preexec_fn=preexec_fn,
            check=False,
            timeout=60,
        )
        return Ran(ran.returncode, ran.stdout or b"", ran.stderr)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, with the package found where it is."""
    return {**os.environ, "PYTHONPATH": str(Path(nereus_cli.__file__).parents[1]), **(more or {})}
