"""A log as a scenario finds it, copied for each point."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from nereus_cli.log import mark as marks
from nereus_cli.log import segment
from nereus_cli.testing import Medium
from tests.log.world import Ledger, rebooted
from tests.seams.scenarios import Scenario


class Before:
    """What ``scenario`` prepares, once."""

    def __init__(self, top: Path, scenario: Scenario) -> None:
        self.scenario = scenario
        self.top = top / scenario.name.replace(" ", "-")
        (self.top / "x").mkdir(parents=True)
        self.ledger = Ledger()
        scenario.prepare(self.top / "x" / "log", self.ledger, Medium(str(self.top / "x")))

    def copy(self) -> Path:
        """A log of its own, in a directory that the caller removes."""
        base = self.top / "again"
        shutil.copytree(self.top / "x", base)
        if (base / "log").exists():
            _same_files(base / "log")
        return base / "log"

    def ledger_again(self) -> Ledger:
        """What was answered so far, to go on with."""
        ledger = Ledger()
        ledger.number, ledger.acknowledged = self.ledger.number, dict(self.ledger.acknowledged)
        return ledger


def _same_files(path: Path) -> None:
    """Makes a copy look as the files it was made of: mark and note speak of the segments by their inodes."""
    rebooted(path)
    file = path / "syncing"
    note = marks.decode_note(file.read_bytes()) if file.exists() else None
    if note is not None:
        inode = (path / segment.name_of(note.ordinal)).stat().st_ino
        file.write_bytes(marks.encode_note(msgspec.structs.replace(note, inode=inode)))
