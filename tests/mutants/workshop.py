"""A copy of the program and its tests, in which one file at a time is broken and the killers are run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import msgspec

import nereus_cli
from tests.mutants.mutant import Mutant
from tests.mutants.witness import SAID

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = Path(nereus_cli.__file__).resolve().parent
LIMIT_S: Final = 60
_FAILED: Final = 1
_KEPT_OUT: Final = shutil.ignore_patterns("__pycache__", ".*")


class Trial(msgspec.Struct, frozen=True):
    """How the killers fared. ``status`` is pytest's; None: out of time. ``by`` is the test that failed first and
    ``said`` its first failing line. ``copy``: the program that was tried was the copy."""

    status: int | None
    by: str
    said: str
    seconds: float
    copy: bool

    @property
    def killed(self) -> bool:
        """A test failed, on the copy. A run that broke off proves nothing."""
        return self.status == _FAILED and self.copy and bool(self.by)


class Workshop:
    """``with Workshop() as workshop``: a place of its own, gone afterwards."""

    def __init__(self) -> None:
        self._made = 0
        self._sound: dict[str, str] = {}

    def __enter__(self) -> Self:
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.path = Path(tempfile.mkdtemp(prefix="nereus-mutants-", dir=base))
        for source in (PACKAGE, ROOT / "tests"):
            shutil.copytree(source, self.path / source.name, ignore=_KEPT_OUT)
        for entry in ROOT.iterdir():
            if not (self.path / entry.name).exists() and not entry.name.startswith((".", "build", "dist")):
                # Tests hold the documents against the program; nobody writes to either.
                (self.path / entry.name).symlink_to(entry)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def refused(self, killers: Iterable[str]) -> str:
        """Why some of these prove nothing: they fail without any mutant. Empty when all pass; each is asked once."""
        asked = [killer for killer in dict.fromkeys(killers) if killer not in self._sound]
        if asked:
            trial = self.run(asked, 5 * LIMIT_S)
            if trial.status == 0 and trial.copy:
                self._sound.update(dict.fromkeys(asked, ""))
            elif len(asked) > 1:
                for killer in asked:
                    self.refused([killer])
            else:
                self._sound[asked[0]] = f"{asked[0]} fails without a mutant: {trial.said or trial.status}"
        return next((why for killer in killers if (why := self._sound[killer])), "")

    def tried(self, mutant: Mutant) -> Trial:
        """The killers on the program with that one file broken."""
        with self._broken(mutant):
            return self.run(mutant.killers, LIMIT_S)

    @contextmanager
    def _broken(self, mutant: Mutant) -> Iterator[None]:
        file = self.path / "nereus_cli" / mutant.file
        text = file.read_text()
        self._put(file, mutant.applied(text))
        try:
            yield
        finally:
            self._put(file, text)

    def _put(self, file: Path, text: str) -> None:
        """Compiled files are told from stale ones by whole seconds and sizes, which are often the same here."""
        self._made += 1
        file.write_text(text)
        os.utime(file, (1_000_000_000 + 10 * self._made,) * 2)

    def run(self, killers: Iterable[str], seconds: float) -> Trial:
        """These tests in this order, up to the first that fails."""
        words = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=short", "-rfE", "-p", "tests.mutants.witness"]
        words += ["-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={self.path}/base"]
        begun = time.monotonic()
        process = subprocess.Popen(
            [*words, *(f"tests/{killer}" for killer in killers)],
            cwd=self.path,
            env={**_environment(), "PYTHONPATH": str(self.path), "COLUMNS": "300", "CI": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_hear_interrupts,  # noqa: PLW1509 -- this program has one thread
        )
        try:
            out, status = process.communicate(timeout=seconds)[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, status = process.communicate()[0], None
        return self._read(out, status, time.monotonic() - begun)

    def _read(self, out: str, status: int | None, seconds: float) -> Trial:
        by = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(\S+)", out, re.MULTILINE)
        said = re.search(r"^E +(.*)", out, re.MULTILINE)
        return Trial(
            status=status,
            by=by[1] if by else "",
            said=(said[1] if said else out.strip().rpartition("\n")[2])[:200],
            seconds=seconds,
            copy=f"{SAID}{self.path}/nereus_cli/" in out,
        )


def _environment() -> dict[str, str]:
    """Nothing of a test run that this one may be part of."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}


def _hear_interrupts() -> None:
    """Whoever was started in the background ignores interrupts, and so would everything it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
