"""A store of one's own, and callers and daemons on it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.calls import Called, Caller, daemon


class Shop:
    """One store, one caller, any number of daemons, all of them ended afterwards."""

    def __init__(self, place: Path, caller: Caller) -> None:
        self.place, self.store, self.call = place, place / "store", caller
        self.log = place / "daemon.log"
        self._daemons: list[subprocess.Popen[bytes]] = []

    def daemon(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A ``nereus run`` that has the store; wait for it to say so."""
        process = self.start(*arguments)
        self.until(lambda: self.call("status").document().get("owner") is not None or process.poll() is not None)
        return process

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A ``nereus run`` that may or may not get the store."""
        process = daemon(self.store, self.log, *arguments)
        self._daemons.append(process)
        return process

    def run(self, *arguments: str, seconds: float = 60) -> int:
        """A ``nereus run`` to its end."""
        return self.start(*arguments).wait(timeout=seconds)

    def schedule(self, message_id: str, *arguments: str, after: str = "0s") -> Called:
        """With an id, due at once unless told otherwise."""
        return self.call("schedule", "--id", message_id, "--in", after, *arguments)

    def show(self, message_id: str) -> dict[str, Any]:
        """The message document."""
        shown = self.call("show", message_id)
        assert shown.status == 0, shown
        return shown.document()

    def until(self, true: Callable[[], bool], seconds: float = 20) -> None:
        """Waits until it is so; fails when it is not in time."""
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                log = self.log.read_text("utf-8") if self.log.exists() else ""
                pytest.fail(f"it did not become so in {seconds} s; the daemon said: {log[-2_000:]}")
            time.sleep(0.02)

    def close(self) -> None:
        for process in self._daemons:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A place to do business."""
    tmp_path.chmod(0o700)
    with Caller(tmp_path / "store", tmp_path) as caller:
        opened = Shop(tmp_path, caller)
        yield opened
        opened.close()
