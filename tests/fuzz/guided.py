"""One target under atheris, which mutates towards code that was not reached yet. Where there is no wheel of it, the
mutator of this package does alone.

    python -m tests.fuzz.guided MODULE:TARGETS NAME EXECUTIONS SEED DIRECTORY      ends with 0 when all were tried
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.fuzz.mutator import Mutator
from tests.fuzz.target import Seen, Target

_INPUT_BYTES_MAX: Final = 4_096
_MEMORY_MIB: Final = 1_024
_PATIENCE_S: Final = 60
_WARMING: Final = 500
_SECONDS_EACH: Final = 1 / 300
_SHOWN: Final = 300
_RAISED: Final = re.compile(r"(?:[A-Za-z_.]*Error|KeyboardInterrupt|MemoryError)\b")


def available() -> bool:
    """Whether this Python on this machine has it."""
    return find_spec("atheris") is not None


def guided(targets: str, name: str, executions: int, seed: int, root: Path) -> Seen:
    """Tries so many inputs on the target of that name; a finding shows the input."""
    with tempfile.TemporaryDirectory(prefix="nereus-guided-") as directory:
        words = [targets, name, str(executions), str(seed), directory]
        command = [sys.executable, "-m", "tests.fuzz.guided", *words]
        try:
            ran = subprocess.run(
                command,
                cwd=root,
                env={**os.environ, "PYTHONPATH": str(root)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=_PATIENCE_S + executions * _SECONDS_EACH,
            )
            said, status = ran.stdout.decode("utf-8", "replace"), ran.returncode
        except subprocess.TimeoutExpired:
            said, status = "it did not come to an end", 1
        if status == 0 and f"Done {executions} " in said:
            return Seen(executions=executions)
        inputs = [path.read_bytes()[:_SHOWN].hex() for path in Path(directory).glob("found-*")]
    why = next((line for line in said.splitlines() if _RAISED.match(line)), said.strip()[-200:])
    return Seen(violations=1, findings=[f"guided, seed {seed}: {name}: {why}: {' '.join(inputs)}"])


def _warm(target: Target) -> None:
    """What is loaded when it is first needed is loaded now: later it would be taken for something a decoder did."""
    mutator = Mutator(random.Random(1), target.samples, target.tokens, target.seal)
    for data in (*target.samples, *(mutator.made() for _ in range(_WARMING))):
        with contextlib.suppress(Exception):
            target.run(data)


def main(argv: Sequence[str]) -> None:
    """As above; does not return."""
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=["nereus_cli"]):
        module, _, attribute = argv[0].partition(":")
        loaded = import_module(module)
    getattr(loaded, "setup", lambda: None)()
    target: Target = next(one for one in getattr(loaded, attribute) if one.name == argv[1])
    from tests.fuzz.child import Hook

    _warm(target)
    hook = Hook()

    def tried(data: bytes) -> None:
        if target.seal is not None:
            sealed = bytearray(data)
            target.seal(sealed)
            data = bytes(sealed)
        hook.may, hook.armed = target.may, True
        try:
            wrong = target.run(data)
        except target.allowed:
            wrong = ""
        finally:
            hook.armed = False
        if wrong or hook.events:
            raise AssertionError(wrong or f"a decoder did: {', '.join(hook.events)}")

    corpus = Path(argv[4]) / "corpus"
    corpus.mkdir()
    for number, sample in enumerate(target.samples):
        (corpus / str(number)).write_bytes(sample)
    limits = [f"-max_len={_INPUT_BYTES_MAX}", f"-rss_limit_mb={_MEMORY_MIB}", "-timeout=20"]
    counts = [f"-atheris_runs={argv[2]}", f"-seed={argv[3]}", f"-artifact_prefix={argv[4]}/found-"]
    atheris.Setup([sys.argv[0], *counts, *limits, str(corpus)], tried)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
