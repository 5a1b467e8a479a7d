"""Power cuts, inside a namespace of their own: ``python -m tests.crash.cutting SEED CUTS [unsynced]``."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec

from tests.crash.appenders import Appender, Said, complaints
from tests.crash.mounts import Image, end_with_parent, kinds
from tests.crash.storecuts import StoreCutter
from tests.crash.warm import fast_place
from tests.reliability.row import Tally

_CUTS_OF_A_LOG = 8
_KINDS = 7


class Cutter:
    """Cuts one file system's power, again and again, and looks at the log in it each time."""

    def __init__(self, image: Image, chance: random.Random, sometimes: Counter[str], *, synced: bool = True) -> None:
        """``synced=False`` plants what is to be found: appenders that make nothing durable."""
        self.image = image
        self.synced = synced
        self.chance = chance
        self.sometimes = sometimes
        self.cuts = 0
        self.spoiled = False
        self.said = Said()
        self.log = image.place / "log0"
        self.marks: list[bytes] = []
        image.mount()

    def cut(self) -> tuple[bool, list[str]]:
        """One cut: whether it hit an appender that was answered before, and what is wrong behind it."""
        if self.cuts % _CUTS_OF_A_LOG == 0 or self.spoiled:
            self._anew()
        self.cuts += 1
        writers = [
            Appender(self.log, f"{self.cuts}.{number}", self.chance.randrange(1 << 30), synced=self.synced)
            for number in range(self.chance.randrange(1, 5))
        ]
        taken = self._work(writers)
        for writer in writers:
            taken += self.said.take(writer.lines())
        self.image.cut()
        late = [writer.lines() for writer in writers]
        for writer in writers:
            writer.kill()
        self.said.refused.update(refused_in(late))
        self.image.unmount()
        self.image.mount()
        self._age()
        wrong = complaints(self.log, self.said)
        self.spoiled = bool(wrong)
        return taken > 0, wrong

    def _anew(self) -> None:
        shutil.rmtree(self.log, ignore_errors=True)
        self.said = Said()
        self.marks = []
        self.log = self.image.place / f"log{self.cuts}"

    def _work(self, writers: list[Appender]) -> int:
        """Lets them work for a while behind the first answer; sometimes all they wrote is written back meanwhile."""
        end = time.monotonic() + 5
        taken = 0
        while not taken and time.monotonic() < end:
            time.sleep(0.001)
            taken += sum(self.said.take(writer.lines()) for writer in writers)
        if self.chance.random() < 0.5:
            time.sleep(self.chance.random() * 0.01)
            self.image.write_back()
            self.sometimes["written back"] += 1
        time.sleep(self.chance.random() * 0.02)
        return taken

    def _age(self) -> None:
        """Notes what became of the mark; sometimes puts an older one back, as if it had been written back earlier."""
        file = self.log / "mark" / "durable"
        found = file.read_bytes() if file.exists() else b""
        self.sometimes["mark kept" if len(found) == 64 and any(found) else "mark lost"] += 1
        if self.marks and found and self.chance.random() < 0.3:
            file.write_bytes(self.chance.choice(self.marks))
            self.sometimes["mark made older"] += 1
        self.marks.append(found)


def refused_in(late: list[bytes]) -> set[bytes]:
    """Also what was refused while the power went is never found later."""
    lines = [line.split(b" ") for part in late for line in part.split(b"\n")[:-1]]
    return {words[2] for words in lines if words[0] == b"N"}


def main(seed: int, cuts: int, *, synced: bool) -> None:
    """Prints the row."""
    tally = Tally()
    sometimes: Counter[str] = Counter()
    base = fast_place(600 << 20)
    with tempfile.TemporaryDirectory(prefix="nereus-cuts-", dir=base, ignore_cleanup_errors=True) as name:
        end_with_parent(Path(name))
        chance = random.Random(f"{seed}/cuts")
        logs = [Cutter(Image(kind, Path(name)), chance, sometimes, synced=synced) for kind in kinds()]
        stores = [StoreCutter(one.image, Path(name), chance, sometimes) for one in logs]
        for number in range(cuts):
            which = number // _KINDS % len(logs)
            cutter = stores[which] if number % _KINDS == _KINDS - 1 else logs[which]
            hit, wrong = cutter.cut()
            where = f"seed {seed}, cut {number}, {type(cutter).__name__} on {cutter.image.kind}: "
            tally.point(hit=hit, violation=where + "; ".join(wrong) if wrong else "")
            sometimes[f"{type(cutter).__name__} on {cutter.image.kind}"] += 1
        for store in stores:
            store.close()
        for log in logs:
            log.image.unmount()
    kept = ", ".join(f"{count} {what}" for what, count in sorted(sometimes.items()))
    tally.notes.append(f"{', '.join(kinds())}; {kept}")
    sys.stdout.buffer.write(msgspec.json.encode(tally.row()))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), synced="unsynced" not in sys.argv)
