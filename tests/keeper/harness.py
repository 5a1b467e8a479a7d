"""A daemon for tests: what it started, what it heard, and waiting that ends."""

import os
import resource
import select
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from nereus_cli.destinations.keeper_client import KeeperClient, StartRequest
from nereus_cli.destinations.keeper_decide import OpenAttempt, Verdict, decide_all
from nereus_cli.destinations.keeper_facts import AttemptFact, Ended, Fact, NotStarted, Started
from nereus_cli.destinations.keeper_launch import KEEPER_ENTRY

BOOT = bytes(range(16))
PATIENCE_S = 30.0
ENV = ((b"PATH", b"/usr/bin:/bin"),)
HERE = Path(__file__).resolve().parent

linux_only = sys.platform != "linux"
F = TypeVar("F", bound=Fact)


def until(what: Callable[[], bool], seconds: float = PATIENCE_S) -> bool:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def with_our_path() -> dict[str, str]:
    """The environment for a Python that is to import what this one can."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), *sys.path])}


def boot_ns() -> int:
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def process_state(pid: int) -> str | None:
    """The letter /proc has for it; None for one that is gone, be it not reaped yet."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if letter in "ZX" else letter


def limit(pid: int, which: int, limits: tuple[int, int] | None = None) -> tuple[int, int]:
    """The limits of another process, before they are changed to these."""
    found: tuple[int, int] = vars(resource)["prlimit"](pid, which, *([limits] if limits else []))
    return found


def end_keeper(pid: int | None, number: int = 9) -> None:
    if pid is not None and process_state(pid) is not None:
        os.kill(pid, number)


def shell(attempt_id: str, script: str, **changes: object) -> StartRequest:
    return command(attempt_id, b"/bin/sh", b"-c", os.fsencode(script), **changes)


def command(attempt_id: str, *argv: bytes, **changes: object) -> StartRequest:
    named = (b"NEREUS_ATTEMPT_ID", attempt_id.encode())
    given = {"attempt_id": attempt_id, "directory": 1, "argv": argv, "cwd": b"/", "env": (*ENV, named), **changes}
    return StartRequest(**given)  # type: ignore[arg-type] # a test names the fields it means


class Owner:
    """One store and one client of its keeper."""

    def __init__(self, store: Path, fault: tuple[str, int, str] | None = None, *, idle_s: float = 1.0) -> None:
        self.store = store
        store.mkdir(mode=0o700, parents=True, exist_ok=True)
        entry = self.entry_with(fault) if fault else KEEPER_ENTRY
        self.client = KeeperClient(os.fspath(store), BOOT, entry=entry, idle_s=idle_s)
        self.facts: list[Fact] = []
        self.keepers: list[int] = []
        self.connect()

    def entry_with(self, fault: tuple[str, int, str]) -> str:
        given = {"FAULT": fault, "ENTRY": KEEPER_ENTRY}
        script = self.store.parent / f"{self.store.name}-{'-'.join(map(str, fault))}.py"
        script.write_text(f"import runpy\nrunpy.run_path({str(HERE / 'faulty_keeper.py')!r}, {given!r}, '__main__')\n")
        return str(script)

    def connect(self) -> None:
        self.client.connect(PATIENCE_S)
        assert self.client.pid is not None
        self.keepers.append(self.client.pid)

    @property
    def pid(self) -> int:
        return self.keepers[-1]

    def start(self, *requests: StartRequest) -> None:
        self.client.start(requests)

    def pump(self, seconds: float = 0.05) -> None:
        select.select([self.client], [], [], seconds)
        self.facts += self.client.pump()

    def heard(self, what: Callable[[], bool]) -> bool:
        """Listen until something is so."""
        end = time.monotonic() + PATIENCE_S
        while not what():
            if time.monotonic() > end:
                return False
            self.pump()
        return True

    def wait(self, kind: type[F], attempt_id: str | None = None, seconds: float = PATIENCE_S) -> F:
        """The first fact of this kind about this attempt, or about any."""
        end = time.monotonic() + seconds
        while True:
            for said in self.facts:
                if isinstance(said, kind) and attempt_id in {None, getattr(said, "attempt_id", None)}:
                    return said
            assert time.monotonic() < end, f"no {kind.__name__} of {attempt_id}: {self.facts}"
            self.pump()

    def run(self, request: StartRequest) -> Ended:
        self.start(request)
        return self.wait(Ended, request.attempt_id)

    def refused(self, request: StartRequest) -> NotStarted:
        self.start(request)
        return self.wait(NotStarted, request.attempt_id)

    def started(self, request: StartRequest) -> int:
        self.start(request)
        return self.wait(Started, request.attempt_id).pid

    def output(self, attempt_id: str, suffix: str = "") -> bytes:
        return (self.store / "attempts" / "00000001" / f"{attempt_id}{suffix}").read_bytes()

    def about(self, attempt_id: str) -> list[AttemptFact]:
        return [said for said in self.facts if isinstance(said, AttemptFact) and said.attempt_id == attempt_id]

    def close(self) -> None:
        self.client.close()

    def end(self) -> None:
        self.close()
        for pid in self.keepers:
            end_keeper(pid)
        assert until(lambda: all(process_state(pid) is None for pid in self.keepers))


def opened(attempt_ids: Iterable[str]) -> list[OpenAttempt]:
    """As their Admissions would have it: written now, in this boot."""
    now = boot_ns()
    return [OpenAttempt(attempt_id=name, directory=1, boot_id=BOOT, admitted_boot_ns=now) for name in attempt_ids]


def decided(store: Path, attempts: Sequence[OpenAttempt]) -> dict[str, Verdict]:
    return decide_all(os.fspath(store), attempts, BOOT)
