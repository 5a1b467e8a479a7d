"""The installed command, called from a process that has it loaded, and held at a gate until somebody watches it.

``python -m tests.crash.warm`` serves: one JSON request a line, one process for each. The process runs the entry point
of the installed command with its own arguments and descriptors; only the start of the interpreter is spared, so
that what a tracer counts begins with the command.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self

import nereus_cli

ROOT = Path(__file__).resolve().parents[2]
NO_END = "no end within"
_CALL_S_MAX = 60.0


class Called(NamedTuple):
    """How one call ended: its status as ``subprocess`` has it (-9: killed), and what it said."""

    status: int
    out: bytes
    err: bytes

    @property
    def documents(self) -> list[dict[str, Any]]:
        """Every whole line of its output; half a line was never said."""
        lines = self.out.split(b"\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith(b"{")]


class Hung(Exception):  # noqa: N818 -- a finding, not an error of ours
    """A call did not end in time; it was killed."""


class Warm:
    """One caller: its calls run one after the other. ``place`` takes what they say."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.warm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            env=environment(),
        )

    @property
    def pid(self) -> int:
        """That of the process from which calls are forked."""
        return self._server.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the server; what it started has ended by itself."""
        if self._server.stdin and self._server.stdout:
            self._server.stdin.close()
            if self._server.poll() is None:
                self._server.kill()
            self._server.wait()
            self._server.stdout.close()

    def __call__(
        self,
        *argv: str,
        watch: Callable[[int], object] | None = None,
        keeper: str = "",
        segment: int = 0,
        seconds: float = _CALL_S_MAX,
    ) -> Called:
        """Runs a call to its end. ``watch`` is told the pid while the call waits at its gate; ``keeper`` is the script
        that becomes its keeper, ``segment`` the size at which it ends a segment (0: as always). Raises Hung."""
        pid = self.begin(*argv, keeper=keeper, segment=segment)
        try:
            if watch is not None:
                watch(pid)
        finally:
            os.kill(pid, signal.SIGUSR1)
        return self.end(pid, seconds)

    def begin(self, *argv: str, keeper: str = "", segment: int = 0) -> int:
        """Leaves a call waiting for SIGUSR1; its pid."""
        request = {"argv": argv, "place": str(self.place), "keeper": keeper, "segment": segment}
        if self._server.stdin is None:
            raise RuntimeError
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        self._server.stdin.flush()
        return int(self._answer(_CALL_S_MAX))

    def end(self, pid: int, seconds: float = _CALL_S_MAX) -> Called:
        """Waits for a call that was begun."""
        try:
            status = int(self._answer(seconds))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            self._answer(_CALL_S_MAX)
            raise Hung(f"{NO_END} {seconds:.0f} s") from None
        return Called(status, (self.place / "out").read_bytes(), (self.place / "err").read_bytes())

    def _answer(self, seconds: float) -> bytes:
        out = self._server.stdout
        if out is None:
            raise RuntimeError
        if not select.select([out], [], [], seconds)[0]:
            raise TimeoutError
        return os.read(out.fileno(), 64)


def fast_place(size: int) -> str | None:
    """Where temporary directories go: into memory, if there is a file system in memory with that much room."""
    with contextlib.suppress(OSError):
        found = os.statvfs("/dev/shm")
        if os.access("/dev/shm", os.W_OK) and found.f_bavail * found.f_frsize > size:
            return "/dev/shm"
    return None


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, with the package and the tests found where they are."""
    paths = [str(Path(nereus_cli.__file__).parents[1]), str(ROOT)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(more or {})}


def serve() -> None:
    """Until there are no more requests: the pid of each, then its status."""
    import sqlite3  # noqa: F401 -- loaded once, for all that are forked from here

    import typer  # noqa: F401 -- as sqlite3

    import nereus_cli.cli.main
    import nereus_cli.cli.write
    import nereus_cli.daemon
    import nereus_cli.destinations.shell
    import nereus_cli.projection.overlay
    import nereus_cli.projection.sqlite
    import nereus_cli.store  # noqa: F401 -- as sqlite3

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _call(json.loads(line))
        os.write(1, b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))


def _call(request: dict[str, Any]) -> NoReturn:
    status: object = 70
    try:
        for target, name in ((1, "out"), (2, "err")):
            fd = os.open(f"{request['place']}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(fd, target)
            os.close(fd)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        signal.sigwait({signal.SIGUSR1})
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        sys.argv = ["nereus", *request["argv"]]
        from nereus_cli.destinations.keeper_client import KeeperClient

        if request["keeper"]:
            _default(KeeperClient.__init__, "entry", request["keeper"])
        if request["segment"]:
            _limit(request["segment"])
        from nereus_cli.__main__ import run

        status = run()
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001 -- whatever it is, it must be seen as what it is
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 0)


def _limit(segment: int) -> None:
    """No option says how large segments are: what every caller would get by default is another number here."""
    import msgspec

    from nereus_cli.domain.limits import PRODUCTION
    from nereus_cli.store import open_store

    _default(open_store, "limits", msgspec.structs.replace(PRODUCTION, segment_bytes_max=segment))


def _default(function: Callable[..., object], name: str, value: object) -> None:
    """What callers get that say nothing."""
    function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), name: value}


if __name__ == "__main__":
    serve()
