"""Calling the command line many times a second: a process that has it imported forks once for each call.

The child runs the very entry point of the installed command on the given arguments and its own descriptors; only
the interpreter's start is spared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

SERVER = """
import json, os, sys, traceback
import sqlite3, msgspec, typer
import nereus_cli.cli.main as cli
import nereus_cli.projection.overlay, nereus_cli.projection.sqlite, nereus_cli.store
for line in sys.stdin:
    request = json.loads(line)
    pid = os.fork()
    if pid == 0:
        out = os.open(request["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        err = os.open(request["err"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0), os.dup2(out, 1), os.dup2(err, 2)
        sys.argv = ["nereus", *request["argv"]]
        status = 70
        try:
            status = cli.main()
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status or 0)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Called(NamedTuple):
    """How one call ended."""

    status: int
    out: str
    err: str

    def document(self) -> dict[str, Any]:
        """Its one JSON document."""
        found: dict[str, Any] = json.loads(self.out)
        return found


class Caller:
    """One caller: its calls run one after the other."""

    def __init__(self, store: Path, place: Path) -> None:
        self._store = store
        self._out, self._err = place / f"out-{id(self):x}", place / f"err-{id(self):x}"
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._server.stdin and self._server.stdout:
            self._server.stdin.close()
            self._server.wait()
            self._server.stdout.close()

    def __call__(self, *arguments: str) -> Called:
        argv = ["--store", str(self._store), "--json", *arguments]
        request = {"argv": argv, "out": str(self._out), "err": str(self._err)}
        if self._server.stdin is None or self._server.stdout is None:
            raise RuntimeError
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        return Called(status, self._out.read_text("utf-8"), self._err.read_text("utf-8"))


def nereus(store: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401 -- those of subprocess.run
    """The installed command, started as people start it."""
    command = [sys.executable, "-m", "nereus_cli", "--store", str(store), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


def daemon(store: Path, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A real ``nereus run`` in the background."""
    command = [sys.executable, "-m", "nereus_cli", "--store", str(store), "run", *arguments]
    with log.open("ab") as sink:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
