"""What the cases share: effects on disk, what was acknowledged, clocks that move, terminals, mounts."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.calls import nereus
from tests.e2e.conftest import Shop

Document = dict[str, Any]
STATES = (
    "SCHEDULED", "RETRY_WAIT", "PUBLISHING", "UNCERTAIN", "HELD", "PUBLISHED", "CANCELED", "EXPIRED", "DEAD_LETTER",
)  # fmt: skip
EVERY_STATE = tuple(word for state in STATES for word in ("--state", state))
SECOND = 1_000_000_000
PACKAGE_ROOT = Path(__file__).parents[2]

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="mounting takes root on Linux")
NEEDS_STRACE = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

_PRELUDE = """
import sys, time
wall, boottime = time.time_ns, time.clock_gettime_ns

def offset(column):
    with open(sys.argv[1]) as file:
        return int(file.read().split()[column])

def moved_clock(which):
    return boottime(which) + (offset(1) if which == getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC) else 0)

time.time_ns = lambda: wall() + offset(0)
time.time = lambda: time.time_ns() / 1e9
time.clock_gettime_ns = moved_clock
from nereus_cli.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


class Case(Shop):
    """A shop with effects that can be counted."""

    @property
    def effects(self) -> Path:
        return self.place / "effects"

    def tick(self, name: str = "") -> tuple[str, ...]:
        """A command that appends its message's id to the effects in one write."""
        return "--", "sh", "-c", f"echo {name or '$NEREUS_MESSAGE_ID'} >> {self.effects}"

    def seen(self) -> list[str]:
        """The effects, in their order."""
        return self.effects.read_text("utf-8").split() if self.effects.exists() else []

    def aim(self, store: Path) -> None:
        """From now on about another store."""
        self.store = self.call._store = store

    def listed(self) -> dict[str, Document]:
        """Every message there is, by id, without its attempts."""
        called = self.call("list", *EVERY_STATE)
        assert called.status == 0, called
        found = [json.loads(line) for line in called.out.splitlines()]
        return {one["message_id"]: one for one in found if one["schema"] == "nereus.message/1"}

    def events(self) -> list[Document]:
        """The log."""
        called = self.call("events")
        assert called.status == 0, called
        return [json.loads(line) for line in called.out.splitlines()]

    def batch(self, lines: Iterable[Document]) -> list[Document]:
        """Schedules them in one call; the receipts."""
        file = self.place / "batch"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        called = nereus(self.store, "--json", "schedule", "--batch", str(file))
        assert called.returncode == 0, called.stderr
        return [json.loads(line) for line in called.stdout.splitlines()]

    def attest(self, acknowledged: Iterable[str]) -> dict[str, Document]:
        """What must hold at the end of every case: each acknowledged id is in exactly one state, and none shows more
        effects than attempts, or a second one without an attempt of unknown effect before it."""
        messages = self.listed()
        assert set(acknowledged) <= set(messages)
        events, effects = self.events(), Counter(self.seen())
        admitted = Counter(one["message_id"] for one in events if one["event"] == "admission")
        unknown = Counter(one["message_id"] for one in events if one.get("side_effect") == "UNKNOWN")
        for name, message in messages.items():
            assert message["state"] in STATES
            assert effects[name] <= admitted[name], (name, message)
            assert effects[name] <= 1 + unknown[name], (name, message)
        return messages

    def state(self, name: str) -> str:
        """Of one message."""
        return str(self.show(name)["state"])

    def codes(self) -> set[str]:
        """What ``status`` calls attention to."""
        return {item["code"] for item in self.call("status").document()["attention"]}

    def owner(self) -> int | None:
        """The pid ``status`` names; None also where there is no store yet."""
        owner = self.call("status").document().get("owner")
        return None if owner is None else int(owner["pid"])

    def daemon(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A ``nereus run`` that has the store, which it may have made."""
        process = self.start(*arguments)
        self.until(lambda: self.owner() == process.pid or process.poll() is not None)
        return process

    def until_words(self, path: Path, count: int) -> list[str]:
        """Waits until a file holds so many words; the words."""
        self.until(lambda: path.exists() and len(path.read_text("utf-8").split()) >= count)
        return path.read_text("utf-8").split()

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """As a power cut would, for this one process."""
        process.kill()
        process.wait()

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """As a service manager does."""
        process.terminate()
        assert process.wait(timeout=30) == 0

    def copied(self, name: str) -> Path:
        """A copy of the store, other inodes and all."""
        target = self.place / name
        subprocess.run(["cp", "-a", str(self.store), str(target)], check=True)
        return target

    def log_said(self) -> str:
        """What the daemons wrote on standard error."""
        return self.log.read_text("utf-8") if self.log.exists() else ""


class Moved:
    """Commands for which the wall clock, or both clocks, are moved by what stands in a file."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._file = case.place / "offset"
        self._wall = self._monotonic = 0.0
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.step(0)

    def step(self, seconds: float) -> None:
        """The wall clock is set; the other one goes on."""
        self._wall += seconds
        self._write()

    def sleep_through(self, seconds: float) -> None:
        """The machine was suspended: the clock that counts suspend moved as well."""
        self._monotonic += seconds
        self.step(seconds)

    def now(self) -> float:
        """Seconds since the epoch, as the commands see it."""
        return time.time() + self._wall

    def call(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """To its end."""
        return subprocess.run(
            self._command(*arguments),
            env=self._environment(env), cwd="/", capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    def start(self, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """A daemon; waits until it has the store."""
        with self._case.log.open("ab") as sink:
            command = self._command("run")
            process = subprocess.Popen(command, env=self._environment(env), stdout=sink, stderr=sink, cwd="/")
        self._daemons.append(process)
        self._case.until(lambda: self._case.owner() == process.pid)
        return process

    def close(self) -> None:
        for process in self._daemons:
            process.kill()
            process.wait()

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-c", _PRELUDE, str(self._file), "--store", str(self._case.store), *arguments]

    def _environment(self, more: dict[str, str] | None) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), **(more or {})}

    def _write(self) -> None:
        aside = self._file.with_suffix(".new")
        aside.write_text(f"{int(self._wall * SECOND)} {int(self._monotonic * SECOND)}", encoding="ascii")
        os.replace(aside, self._file)


def stamp(seconds: float) -> str:
    """An instant as ``--at`` takes it."""
    return f"@{seconds:.6f}"


def lateness_ms(message: Document) -> int:
    """Of its first attempt."""
    return int(message["attempts"][0]["lateness_ms"])


def memory_kib(pid: int, name: str = "VmHWM") -> int:
    """From the kernel; 0 when the process is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
            if line.startswith(name):
                return int(line.split()[1])
    return 0


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of its own that is soon full."""
    place.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Nothing can be written there for the time being."""
    subprocess.run(["mount", "--bind", str(path), str(path)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(path)], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def on_terminal(
    store: Path, *arguments: str, columns: int, env: dict[str, str] | None = None, before: Sequence[str] = ()
) -> tuple[int, bytes]:
    """The installed command with a terminal of that width for all three descriptors; status and what it showed."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [*before, sys.executable, "-m", "nereus_cli", "--store", str(store), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), **(env or {})}
    shown: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # the far end of a terminal that closed is an error, not an end
            while piece := os.read(ours, 65_536):
                shown.append(piece)

    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        reader = threading.Thread(target=read)
        reader.start()
        status = process.wait(timeout=60)
        reader.join(timeout=10)
    os.close(ours)
    return status, b"".join(shown)


def end(*pids: int) -> None:
    """Processes that a case itself had started, through the product; waits until they are gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while not gone(pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def gone(pid: int) -> bool:
    """Whether no such process runs; a zombie counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
