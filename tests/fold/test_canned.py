"""One log, one digest: on every Python there is (I4)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nereus_cli.codec import UndecodableError, decode_command, decode_mutation
from nereus_cli.domain.message import STATE_OF, State
from nereus_cli.projection import rows
from tests.fold import canned

# Whoever has to change this has changed what rows hold: LAYOUT has to move with it.
LAYOUT, DIGEST = 2, "1fa9a25d87cf5a8b7219ccf7cdb2cd3faebc97f31340c46e617fe73a27a81aac"
ROOT = Path(canned.__file__).parents[2]
MINORS = ("3.11", "3.12", "3.13", "3.14")


def test_the_digest_is_what_it_always_was() -> None:
    assert (rows.LAYOUT, canned.state().digest()) == (LAYOUT, DIGEST)


def test_the_canned_log_has_something_of_everything() -> None:
    states = {message.state for message in canned.state()._batch.messages.values()}
    assert states == set(STATE_OF.values()) == set(State)
    kinds: set[str] = set()
    for record in canned.read():
        try:
            decoded = decode_command(record.payload).stated if record.link is None else decode_mutation(record.payload)
        except UndecodableError:
            continue
        kinds.add(type(decoded).__name__)
    assert kinds >= {"Schedule", "Cancel", "Reschedule", "Hold", "Release", "Stop", "Resolve", "LaneControl"}
    assert kinds >= {"OwnerAcquired", "Admission", "Outcome", "Expire", "LateHold", "TimeFence", "ClockStep", "Floor"}
    head = canned.state().head()
    assert (head.quarantined > 0, head.epoch > 1, head.clock_steps > 0, head.fence != 0) == (True, True, True, True)


def _interpreters() -> list[str]:
    """Those on PATH; and those that a version manager keeps beside its shims."""
    found = []
    for directory in map(Path, os.get_exec_path()):
        kept = sorted(directory.parent.glob("versions/*/bin")) if directory.name == "shims" else [directory]
        found += [str(place / f"python{minor}") for place in kept for minor in MINORS]
    return [path for path in dict.fromkeys(found) if shutil.which(path)]


def test_every_python_here_adds_it_up_to_the_same() -> None:
    """Those without the dependency cannot be asked; CI asks each of its Pythons by the test above."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    others = [python for python in _interpreters() if Path(python) != Path(sys.executable)]
    able = [
        p
        for p in others
        if subprocess.run([p, "-c", "import msgspec"], capture_output=True, check=False).returncode == 0
    ]
    for python in able:
        answer = subprocess.run(
            [python, "-m", "tests.fold.canned"], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (answer.stdout.strip(), answer.returncode) == (DIGEST, 0), answer.stderr
    if not able:
        pytest.skip(f"none of {len(others)} other Pythons here can import msgspec")
