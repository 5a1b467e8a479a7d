"""A failing and a lying disk, inside a namespace of their own: ``python -m tests.crash.devices SEED ROUNDS``."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from nereus_cli.log import frame, segment
from nereus_cli.log.mark import decode_mark
from nereus_cli.ports import CorruptLogError
from tests.crash.appenders import Appender, Said, complaints, open_log
from tests.crash.cutting import refused_in
from tests.crash.mounts import end_with_parent, shut_down
from tests.reliability.row import Tally

_BYTES: Final = 48 << 20
_PLUGIN: Final = Path(__file__).with_name("device_plugin.py")
_WAIT_S_MAX: Final = 10.0
_REPORTS: Final = ("CorruptLogError", "FileNotFoundError", "not sound")


class Device:
    """A disk that nbdkit plays, as a loop device with ext4 on it, mounted at ``place``."""

    def __init__(self, base: Path) -> None:
        self.control, self.place, self._disk = base / "control", base / "mounted", base / "disk"
        for path in (self.control, self.place):
            path.mkdir()
        self._disk.touch()
        server = ["nbdkit", "--exit-with-parent", "python", str(_PLUGIN), f"control={self.control}", f"size={_BYTES}"]
        self._process = subprocess.Popen(
            ["nbdfuse", str(self._disk), "[", *server, "]"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + _WAIT_S_MAX
        while self._disk.stat().st_size != _BYTES:
            if time.monotonic() > end or self._process.poll() is not None:
                raise RuntimeError("the disk does not come up")
            time.sleep(0.01)
        self._loop = ""
        self._attach()
        subprocess.run(["mkfs.ext4", "-q", "-F", self._loop], check=True, capture_output=True)
        self.mount()

    def mount(self) -> None:
        """Also replays the journal."""
        self._attach()
        subprocess.run(["mount", "-t", "ext4", self._loop, str(self.place)], check=True, capture_output=True)
        # It goes with its mount, however that ends.
        subprocess.run(["losetup", "-d", self._loop], check=True, capture_output=True)
        self._loop = ""

    def unmount(self) -> None:
        """The loop device goes too: nothing of what it had cached is seen again."""
        subprocess.run(["umount", str(self.place)], check=True, capture_output=True)
        attached = ["losetup", "--noheadings", "--associated", str(self._disk)]
        end = time.monotonic() + _WAIT_S_MAX
        while subprocess.run(attached, check=True, capture_output=True).stdout and time.monotonic() < end:
            time.sleep(0.005)

    def close(self) -> None:
        """Takes the disk away."""
        self.unmount()
        subprocess.run(["umount", str(self._disk)], check=True, capture_output=True)
        self._process.wait(_WAIT_S_MAX)

    def cut(self, seed: str, writers: list[Appender]) -> list[bytes]:
        """The power goes: the file system stops, then the cache of the disk is decided. What was said too late."""
        shut_down(self.place)
        late = [writer.lines() for writer in writers]
        for writer in writers:
            writer.kill()
        self.unmount()
        self.say("lie", on=False)
        self.say("drop", seed)
        self.mount()
        return late

    def say(self, name: str, text: str = "", *, on: bool = True) -> None:
        """Tells the disk what to do, or not to do any more."""
        if on:
            aside = self.control / f"{name}.aside"
            aside.write_text(text)
            aside.rename(self.control / name)
        else:
            (self.control / name).unlink(missing_ok=True)

    def counted(self, name: str) -> int:
        """How often the disk did that since the last time."""
        file = self.control / name
        found = file.stat().st_size if file.exists() else 0
        file.unlink(missing_ok=True)
        return found

    def _attach(self) -> None:
        if not self._loop:
            command = ["losetup", "-f", "--show", "--direct-io=on", str(self._disk)]
            self._loop = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Round:
    """One log on the device, appended to by several processes."""

    def __init__(self, device: Device, number: int, chance: random.Random, sometimes: Counter[str]) -> None:
        self.device = device
        self.log = device.place / f"log{number}"
        self.said = Said()
        self.chance = chance
        self.sometimes = sometimes
        self.writers = [Appender(self.log, f"{number}.{one}", chance.randrange(1 << 30)) for one in range(3)]

    def work(self, more: int) -> None:
        """Until so many more are acknowledged, or the time is up."""
        enough = len(self.said.acknowledged) + more
        end = time.monotonic() + _WAIT_S_MAX
        while len(self.said.acknowledged) < enough and time.monotonic() < end:
            time.sleep(0.002)
            for writer in self.writers:
                self.said.take(writer.lines())

    def failing(self) -> tuple[bool, list[str]]:
        """Writes to the medium fail for a while: nothing is acknowledged that is not there, and it goes on."""
        self.work(20)
        self.device.say("fail")
        time.sleep(0.02 + self.chance.random() * 0.1)
        self.device.say("fail", on=False)
        hit = self.device.counted("failed") > 0
        before = len(self.said.acknowledged)
        self.work(20)
        wrong = [] if len(self.said.acknowledged) >= before + 20 else ["it does not go on behind a failing disk"]
        for writer in self.writers:
            writer.kill_and_hear(self.said)
        poisoned = [header for header in headers(self.log) if header.why is segment.Why.POISONED]
        self.sometimes["poisoned"] += bool(poisoned)
        if hit and not poisoned:
            self.sometimes["failed without a poisoned segment"] += 1
        self.device.unmount()
        self.device.mount()
        return hit, wrong + complaints(self.log, self.said)

    def forgetting(self) -> tuple[bool, list[str]]:
        """The cache of an honest disk is lost: nothing that was acknowledged is."""
        self.work(10 + self.chance.randrange(20))
        late = self.device.cut("all" if self.chance.random() < 0.5 else f"{self.chance.random()}", self.writers)
        self.said.refused.update(refused_in(late))
        self.device.counted("lost")
        return True, complaints(self.log, self.said)

    def lying(self) -> tuple[bool, list[str]]:
        """A disk whose flushes are none loses what it likes: it is reported wherever something proves it."""
        self.work(5)
        subprocess.run(["sync", "-f", str(self.device.place)], check=True)
        self.device.counted("lied")
        self.device.say("lie")
        self.work(10 + self.chance.randrange(20))
        if self.chance.random() < 0.7:
            subprocess.run(["sync", "-f", str(self.device.place)], check=True)
        self.device.cut(f"{self.chance.random()}", self.writers)
        hit = self.device.counted("lied") > 0
        lost = self.device.counted("lost")
        self.sometimes["lied and lost something"] += lost > 0
        return hit, self._honest()

    def _honest(self) -> list[str]:
        """Complaints about a log that may have lost anything, but not in silence where there is proof."""
        proven = proof(self.log)
        acknowledged = dict(self.said.acknowledged)
        wrong = complaints(self.log, self.said)
        if any(one.startswith(_REPORTS) for one in wrong):
            self.sometimes["loss reported"] += 1
            return []
        stored = self._stored()
        lost = [position for position, payload in acknowledged.items() if stored.get(position) != payload]
        self.sometimes["lost without proof" if lost else "nothing lost"] += 1
        unsaid = [position for position in lost if position <= proven]
        return [f"lost in silence: {unsaid[:5]}, although {proven} was proven durable"] if unsaid else []

    def _stored(self) -> dict[int, bytes]:
        log = open_log(self.log)
        try:
            return {one.position: one.payload for one in log.read(0)}
        finally:
            log.close()


def headers(log: Path) -> list[segment.Header]:
    """Those of all segments that have one."""
    found = []
    for file in sorted(log.glob("*.seg")):
        try:
            found.append(segment.decode(file.read_bytes()[: segment.HEADER_BYTES], file.name))
        except CorruptLogError:
            continue
    return found


def proof(log: Path) -> int:
    """The highest position that the mark or any whole frame says was durable."""
    file = log / "mark" / "durable"
    mark = decode_mark(file.read_bytes()) if file.exists() else None
    proven = mark.durable if mark is not None else 0
    for header in headers(log):
        data = (log / segment.name_of(header.ordinal)).read_bytes()
        found = frame.find(data, segment.HEADER_BYTES, header.seed)
        while found is not None:
            proven = max(proven, found.synced_through)
            found = frame.find(data, found.end, header.seed)
    return proven


def main(seed: int, rounds: int) -> None:
    """Prints the row."""
    tally = Tally()
    sometimes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="nereus-disk-", ignore_cleanup_errors=True) as name:
        end_with_parent(Path(name))
        device = Device(Path(name))
        chance = random.Random(f"{seed}/device")
        for number in range(rounds):
            one = Round(device, number, chance, sometimes)
            kind = ("failing", "forgetting", "lying", "lying")[number % 4]
            hit, wrong = getattr(one, kind)()
            violation = f"seed {seed}, round {number}, {kind}: {'; '.join(wrong)}" if wrong else ""
            tally.point(hit=hit, violation=violation)
            sometimes[kind] += 1
        device.close()
    tally.notes.append(", ".join(f"{count} {what}" for what, count in sorted(sometimes.items())))
    sys.stdout.buffer.write(msgspec.json.encode(tally.row()))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
