"""strace from outside: what system calls a process makes on a store, and faults at the k-th of a name.

``when=`` of an injection counts each name for itself and in each thread, so a point is (name, k) as a plain trace
counted it. Whether the fault struck, and what it struck, is read from the trace of the faulted run: never assumed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

CHANGING: Final = (
    "pwrite64", "write", "fdatasync", "fsync", "ftruncate", "link", "linkat", "unlink", "unlinkat", "rename",
    "renameat", "mkdir", "mkdirat", "symlink", "symlinkat", "chmod", "fchmod", "fchmodat",
)  # fmt: skip
LOOKING: Final = (
    "openat", "pread64", "read", "newfstatat", "fstat", "lstat", "stat", "getdents64", "flock", "lseek", "fcntl",
    "close", "bind", "connect",
)  # fmt: skip
_LINE: Final = re.compile(rb"^(?:(\d+) +)?(\w+)\((.*)$")
# What a call that is not made looks like: its process ended at its entry.
_KILLED: Final = re.compile(rb"(= \?|<unfinished \.\.\.>)\s*$")
_ATTACH_S_MAX: Final = 10.0


class Point(msgspec.Struct, frozen=True, order=True):
    """The k-th call of a name in a process, as strace counts."""

    name: str
    k: int

    def __str__(self) -> str:
        """As a finding names it."""
        return f"{self.name}#{self.k}"


class Fault(msgspec.Struct, frozen=True):
    """What happens there: ``KILL``, or the name of an errno that the call gives instead of being made."""

    point: Point
    what: str

    def options(self) -> list[str]:
        """How strace is told."""
        how = "signal=KILL" if self.what == "KILL" else f"error={self.what}"
        return ["-e", f"trace={self.point.name}", "-e", f"inject={self.point.name}:{how}:when={self.point.k}"]


class Watcher:
    """An strace that holds on to a process until one of them ends; ``file`` is its trace."""

    def __init__(self, pids: int | Sequence[int], file: Path, options: Sequence[str], *, follow: bool = False) -> None:
        """Returns when the processes are held. Without ``follow`` only their first threads are."""
        pids = [pids] if isinstance(pids, int) else list(pids)
        more = ["-f"] if follow else []
        more += [word for pid in pids for word in ("-p", str(pid))]
        command = ["strace", "-qq", "-y", "-s", "0", *options, "-o", str(file), *more]
        self.file = file
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + _ATTACH_S_MAX
        while not all(map(_is_traced, pids)):
            if time.monotonic() > end or self._process.poll() is not None:
                self.close()
                raise RuntimeError("strace does not take hold")
            time.sleep(0.001)

    def stop(self) -> None:
        """Lets go of everything that is still held."""
        self._process.terminate()
        self._process.wait()

    def close(self) -> None:
        """Waits for its end, which comes with that of what it watched; ends it if it must."""
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@cache
def why_not() -> str:
    """Why there is nothing to trace with here; empty where there is."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    with subprocess.Popen(["sleep", "9"]) as process:
        try:
            watcher = Watcher(process.pid, Path("/dev/null"), ["-e", "trace=none"])
        except RuntimeError:
            return "this user may not trace processes here"
        finally:
            process.kill()
        watcher.close()
    return ""


def everything() -> list[str]:
    """The options of a plain trace; names that this machine's kernel does not have are passed over."""
    return ["-e", "trace=" + ",".join(f"?{name}" for name in (*CHANGING, *LOOKING))]


def points(trace: Path, store: Path) -> list[Point]:
    """Every call on the store in a plain trace, each once: threads count for themselves."""
    counts: Counter[tuple[bytes, str]] = Counter()
    found: dict[Point, None] = {}
    for thread, name, rest in _calls(trace):
        counts[thread, name] += 1
        if _is_on(rest, store):
            found[Point(name, counts[thread, name])] = None
    return list(found)


def calls_on(trace: Path, store: Path) -> list[str]:
    """The names of all calls on the store, in order."""
    return [name for _, name, rest in _calls(trace) if _is_on(rest, store)]


def struck(trace: Path, store: Path, fault: Fault) -> bool:
    """Whether the trace of a faulted run shows that the fault struck a call on the store."""
    for _, name, rest in _calls(trace):
        if name == fault.point.name and (_KILLED.search(rest) if fault.what == "KILL" else b"(INJECTED)" in rest):
            return _is_on(rest, store)
    return False


def _calls(trace: Path) -> Iterator[tuple[bytes, str, bytes]]:
    for line in trace.read_bytes().split(b"\n"):
        found = _LINE.match(line)
        if found:
            yield found[1] or b"", found[2].decode(), found[3]


def _is_on(rest: bytes, store: Path) -> bool:
    name = str(store).encode()
    return name + b"/" in rest or name + b">" in rest or name + b'"' in rest


def _is_traced(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "\nTracerPid:\t0\n" not in status
