"""What is under way when the fault strikes: a store as it stood before, and the call that is made on it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from nereus_cli.clock import HostClock
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.log import mark as marks
from nereus_cli.log import segment
from nereus_cli.log.files import FileLog
from nereus_cli.ports import LogError
from nereus_cli.testing import CrashedError, Fault, FaultDisk
from tests.crash.warm import Warm

SEGMENT: Final = 1_200_000
LATER: Final = ("--in", "1h")


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """``prepare`` brings a store (or nothing) to where ``line`` begins; ``ids`` are the messages the line is about,
    ``state`` is what they are in when it was done. ``effects``: the call is an owner, and its child leaves a line.
    ``repeats``: what the line says is in the log already. ``keeper``: the fault is meant for the owner's keeper."""

    name: str
    prepare: Callable[[Warm, Path], None]
    line: tuple[str, ...]
    ids: tuple[str, ...] = ("kill-x",)
    state: str = "SCHEDULED"
    effects: bool = False
    repeats: bool = False
    keeper: bool = False
    segment: int = 0


def nothing(_call: Warm, _store: Path) -> None:
    """No store."""


def some(call: Warm, store: Path) -> None:
    """Two messages that wait."""
    for name in ("kill-old", "kill-c"):
        _done(call, store, "schedule", "--id", name, *LATER, "--", "true")


def with_x(call: Warm, store: Path) -> None:
    """The line was said before."""
    some(call, store)
    _done(call, store, *SCHEDULE)


def nearly_full(call: Warm, store: Path) -> None:
    """The next record ends the segment."""
    some(call, store)
    log = _log(store, SystemDisk())
    (first,) = log.read(0, through=1)
    size = (store / "log" / segment.name_of(1)).stat().st_size
    # Repeats of a command that is in the log: they change nothing but the size.
    frame = (size - segment.HEADER_BYTES) // 2
    log.append([first.payload] * ((SEGMENT - size) // frame))
    log.close()


def died(*faults: Fault) -> Callable[[Warm, Path], None]:
    """Somebody else died in an append, there."""

    def prepare(call: Warm, store: Path) -> None:
        some(call, store)
        log = _log(store, SystemDisk())
        (first,) = log.read(0, through=1)
        log.close()
        disk = FaultDisk(SystemDisk(), faults=faults)
        with contextlib.suppress(CrashedError, LogError):
            _log(store, disk).append([first.payload])
        disk.forget()
        if not disk.hits:
            raise RuntimeError("nobody died")

    return prepare


def unmarked(call: Warm, store: Path) -> None:
    """The mark is gone, as behind a power cut."""
    some(call, store)
    (store / "log" / "mark" / "durable").unlink()


def dead_owner(call: Warm, store: Path) -> None:
    """An owner was killed: its socket and its beat are still there, and so are the rows it had folded."""
    some(call, store)
    _done(call, store, "run", "--once")
    pid = call.begin("--store", str(store), "run")
    os.kill(pid, signal.SIGUSR1)
    end = time.monotonic() + 20
    while not (store / "owner" / "beat").exists() or not (store / "owner" / "beat").stat().st_size:
        if time.monotonic() > end:
            raise RuntimeError("no owner")
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    call.end(pid)


def due(call: Warm, store: Path) -> None:
    """One message is due, and leaves a line beside the store when it is delivered."""
    script = f'echo "$NEREUS_ATTEMPT_ID" >> {store.parent}/effects'
    _done(call, store, "schedule", "--id", "kill-x", "--in", "0s", "--", "sh", "-c", script)


def batch(call: Warm, store: Path) -> None:
    """A file of three lines."""
    some(call, store)
    lines = [f'{{"id":"{name}","in":"1h","argv":["true"]}}\n' for name in ("kill-x", "kill-y", "kill-z")]
    (store.parent / "batch").write_text("".join(lines))


SCHEDULE: Final = ("schedule", "--id", "kill-x", "--command-id", "kill-command", *LATER, "--", "true")
_CANCEL: Final = ("cancel", "kill-c", "--command-id", "kill-command")
_RUN: Final = ("run", "--until-idle")
_THREE: Final = ("kill-x", "kill-y", "kill-z")
SCENES: Final = (
    Scene(name="new store", prepare=nothing, line=SCHEDULE),
    Scene(name="next", prepare=some, line=SCHEDULE),
    Scene(name="again", prepare=with_x, line=SCHEDULE, repeats=True),
    Scene(name="batch", prepare=batch, line=("schedule", "--batch", "batch", "--wait"), ids=_THREE),
    Scene(name="cancel", prepare=some, line=_CANCEL, ids=("kill-c",), state="CANCELED"),
    Scene(name="rotation", prepare=nearly_full, line=SCHEDULE, segment=SEGMENT),
    Scene(name="behind a sync of unknown end", prepare=died(Fault(at=1, only="sync_data")), line=SCHEDULE),
    Scene(name="behind half a frame", prepare=died(Fault(at=1, only="write_at", short=True)), line=SCHEDULE),
    Scene(name="without a mark", prepare=unmarked, line=SCHEDULE),
    Scene(name="beside a dead owner", prepare=dead_owner, line=SCHEDULE),
    Scene(name="owner", prepare=due, line=_RUN, state="PUBLISHED", effects=True),
    Scene(name="keeper", prepare=due, line=_RUN, state="PUBLISHED", effects=True, keeper=True),
)


class Templates:
    """Each scene's store, made once and copied for each point."""

    def __init__(self, call: Warm, base: Path) -> None:
        """Stores stand at ``base/store``; the templates beside it."""
        self.call = call
        self.base = base
        self.store = base / "store"

    def put(self, scene: Scene) -> None:
        """The store as it is before the scene's line."""
        template = self.base / f"template {scene.name}"
        self.clear()
        if not template.exists():
            scene.prepare(self.call, self.store)
            if not self.store.exists():
                template.mkdir()
                return
            self.store.rename(template)
        if any(template.iterdir()):
            shutil.copytree(template, self.store, symlinks=True, ignore=shutil.ignore_patterns("sock", "*.sock"))
            moved(self.store / "log")
            if (template / "owner" / "sock").exists():
                # A name without a listener, as the dead leave it.
                with socket.socket(socket.AF_UNIX) as deaf:
                    deaf.bind(str(self.store / "owner" / "sock"))

    def clear(self) -> None:
        """Nothing of the point before."""
        shutil.rmtree(self.store, ignore_errors=True)
        (self.base / "effects").unlink(missing_ok=True)


def moved(log: Path) -> None:
    """Makes copied files pass for the very same ones to mark and note, which know a segment by its inode."""
    small = ((log / "mark" / "durable", marks.decode_mark), (log / "syncing", marks.decode_note))
    for file, decode in small:
        found = decode(file.read_bytes()) if file.exists() else None
        if found is not None and (log / segment.name_of(found.ordinal)).exists():
            here = msgspec.structs.replace(found, inode=(log / segment.name_of(found.ordinal)).stat().st_ino)
            file.write_bytes(marks.encode_mark(here) if isinstance(here, marks.Mark) else marks.encode_note(here))


def _log(store: Path, disk: SystemDisk | FaultDisk) -> FileLog:
    return FileLog(str(store / "log"), disk=disk, clock=HostClock(), limits=PRODUCTION)


def _done(call: Warm, store: Path, *line: str) -> None:
    called = call("--store", str(store), "--json", *line)
    if called.status:
        raise RuntimeError(called)
