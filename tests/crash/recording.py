"""Real runs under strace: several processes on one log, and an owner with its keeper, its children and its callers."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from nereus_cli.domain.limits import PRODUCTION, Limits
from tests.crash.appenders import SMALL
from tests.crash.traces import OPTIONS, Said, Trace
from tests.crash.tracing import Watcher
from tests.crash.warm import Warm, environment

_EFFECTS: Final = 6


class Recording(msgspec.Struct, frozen=True):
    """``trace`` of everything below a directory in which the log is at ``log``; ``limits`` its writers had; ``whole``:
    the directory is a store."""

    name: str
    trace: Trace
    log: str
    limits: Limits
    whole: bool = False


class Claims(msgspec.Struct, frozen=True):
    """What follows from what had been said: commands or payloads by position, attempts that had an effect, and what
    was said not to be in the log."""

    standing: dict[int, bytes]
    attempts: list[bytes]
    refused: list[bytes]


def claims(said: Sequence[Said]) -> Claims:
    """Reads receipts of the command line, answers of plain writers, and the lines that effects leave."""
    found = Claims({}, [], [])
    for one in said:
        for line in one.data.split(b"\n")[:-1]:
            if one.path.endswith("/effects"):
                found.attempts.append(line)
            elif line.startswith((b"A ", b"N ")):
                verdict, position, payload = line.split(b" ")
                if verdict == b"N":
                    found.refused.append(payload)
                else:
                    found.standing[int(position)] = payload
            elif line.startswith(b'{"schema":"nereus.receipt/1"'):
                found.standing.update(_receipt(line))
    return found


def writers(base: Path) -> Recording:
    """Four writers at once with tiny segments; two are killed, one in a write and one in a sync, two come later."""
    log = base / "root" / "log"
    (base / "root").mkdir(mode=0o700)
    plans = (("", "--size", "500"), ("--call", "sync_data", "--at", "9", "--signal", "9", "--size", "300"),
             ("--call", "write_at", "--at", "14", "--signal", "9"), ("", "--size", "900"))  # fmt: skip

    def command(number: int, plan: Sequence[str], count: int) -> str:
        words = [sys.executable, "-m", "tests.log.writer", str(log), f"w{number}", str(count), *filter(None, plan)]
        return f"{shlex.join(words)} > {base}/said{number}"

    together = " & ".join(command(number, plan, 8) for number, plan in enumerate(plans))
    script = f"{together} & wait; {command(7, ('--size', '700'), 6)}; {command(8, (), 2)}"
    traced = ["strace", "-f", "-qq", "-y", *OPTIONS, "-o", str(base / "trace"), "sh", "-c", script]
    subprocess.run(traced, check=True, capture_output=True, env=environment(), cwd="/", timeout=60)
    return Recording("writers", Trace(base / "trace", base / "root"), "log", SMALL)


def owner(base: Path) -> Recording:
    """Callers found a store and go on while an owner delivers; everything is watched, from callers to children."""
    store, effects = base / "store", base / "effects"
    deliver = ["sh", "-c", f'echo "$NEREUS_ATTEMPT_ID" >> {effects}']

    def schedule(call: Warm, names: Sequence[str]) -> None:
        for name in names:
            call("--store", str(store), "--json", "schedule", "--id", name, "--in", "0s", "--", *deliver)

    with ExitStack() as stack:
        callers = []
        for name in ("owner", "first", "second"):
            (base / name).mkdir()
            callers.append(stack.enter_context(Warm(base / name)))
        watcher = Watcher([call.pid for call in callers], base / "trace", OPTIONS, follow=True)
        stack.callback(watcher.stop)
        runs, first, second = callers
        schedule(first, ["m0"])
        pid = runs.begin("--store", str(store), "run")
        os.kill(pid, signal.SIGUSR1)
        (base / "batch").write_text("".join(_line(f"b{number}", deliver) for number in range(2)))
        with ThreadPoolExecutor(2) as pool:
            one = pool.submit(schedule, first, ["m1", "m2"])
            two = pool.submit(second, "--store", str(store), "--json", "schedule", "--batch", str(base / "batch"))
            one.result()
            two.result()
        schedule(second, ["m3"])
        _until(effects, _EFFECTS)
        first("--store", str(store), "--json", "cancel", "m1")
        os.kill(pid, signal.SIGTERM)
        runs.end(pid)
    return Recording("owner", Trace(base / "trace", store), "log", PRODUCTION, whole=True)


def _line(name: str, argv: Sequence[str]) -> str:
    return json.dumps({"id": name, "in": "0s", "argv": list(argv)}) + "\n"


def _until(effects: Path, count: int) -> None:
    end = time.monotonic() + 30
    while not effects.exists() or effects.read_bytes().count(b"\n") < count:
        if time.monotonic() > end:
            raise RuntimeError("nothing was delivered")
        time.sleep(0.01)


def _receipt(line: bytes) -> Iterator[tuple[int, bytes]]:
    said = json.loads(line)
    if said["outcome"] in {"QUEUED", "APPLIED", "REJECTED"}:
        yield said["position"], said["command_id"].encode()
