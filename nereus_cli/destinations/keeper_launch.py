"""Start a keeper: a process that forks the real one, waits until it listens, and is gone."""

from __future__ import annotations

import os
import subprocess
from typing import Final

_ANOTHER_SERVES: Final = 75
# What a Python outside the usual places needs to find its own library. The keeper gets no other variable of ours.
_LIBRARY_PATHS: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
KEEPER_ENTRY: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "keeper", "__main__.py")


class KeeperAwayError(ConnectionError):
    """No keeper can be had now: nothing was started, and nothing will be by this call."""


class Launcher:
    """How to start a keeper for a store. ``entry`` is the script that becomes one."""

    def __init__(self, python: str, entry: str, boot_id: bytes, idle_s: float) -> None:
        self._python = python
        self._entry = entry
        self._boot_id = boot_id
        self._idle_s = idle_s

    def launch(self, store: int, timeout_s: float) -> None:
        """Return once a keeper listens, this one or another. Raises KeeperAwayError."""
        command = [self._python, "-I", "-S", self._entry, str(store), str(round(self._idle_s * 1000))]
        try:
            process = subprocess.Popen(
                [*command, self._boot_id.hex()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(store,),
                cwd="/",
                env={name: os.environ[name] for name in _LIBRARY_PATHS if name in os.environ},
                start_new_session=True,
            )
        except OSError as failed:
            raise KeeperAwayError(f"the keeper cannot be started: {failed}") from failed
        with process:
            try:
                said = process.communicate(timeout=timeout_s)[1]
            except subprocess.TimeoutExpired:
                process.kill()
                raise KeeperAwayError("the keeper took too long to start") from None
        if process.returncode not in {0, _ANOTHER_SERVES}:
            reason = said.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
            raise KeeperAwayError(f"the keeper cannot be started: {reason or f'status {process.returncode}'}")
