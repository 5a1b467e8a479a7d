"""The process in which inputs are tried: it cannot be trusted afterwards, because an audit hook stays for ever.

python -m tests.fuzz.child MODULE:TARGETS EXECUTIONS SEED     prints what was seen as one JSON document
"""

from __future__ import annotations

import contextlib
import random
import resource
import signal
import sys
import tracemalloc
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import Final

import msgspec

from tests.fuzz.mutator import Mutator
from tests.fuzz.target import May, Seen, Target

TURN: Final = 500
TRACED_BYTES_MAX: Final = 2 << 20
GROWTH_BYTES_MAX: Final = 2 << 26
_TURN_S: Final = 20
_TRACED: Final = 50
_WARMING: Final = 200
_FINDINGS_MAX: Final = 6
_INPUT_SHOWN: Final = 300
_FORBIDDEN: Final = (
    *("exec", "compile", "import", "open", "pickle.", "marshal.", "socket.", "subprocess.", "ctypes."),
    *("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "os.rename", "os.remove"),
)


class Hung(BaseException):
    """One turn took longer than any may."""


class Hook:
    """An audit hook that can be armed, and counts what no decoder may do."""

    def __init__(self) -> None:
        self.armed = False
        self.may: May = lambda _event, _args: False
        self.events: dict[str, int] = {}
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: tuple[object, ...]) -> None:
        if self.armed and event.startswith(_FORBIDDEN) and not self.may(event, args):
            what = f"{event} {args[:1]!r:.60}"
            if what in self.events or len(self.events) < _FINDINGS_MAX:
                self.events[what] = self.events.get(what, 0) + 1


class Bench:
    """Tries targets and keeps count."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self.seen = Seen(findings=[], events={})
        self._kinds: set[str] = set()
        self._hook = Hook()

    def run(self, targets: Sequence[Target], executions: int) -> Seen:
        """Each target gets its share of the executions."""
        for target in targets:
            self._warm(target)
        before = _resident()
        whole = sum(target.share for target in targets)
        for target in targets:
            mutator = Mutator(random.Random(f"{self._seed}/{target.name}"), target.samples, target.tokens, target.seal)
            count = max(executions * target.share // whole, TURN)
            traced = max(count // _TRACED, 200)
            tracemalloc.start()
            self._many(target, mutator, traced, traced=True)
            tracemalloc.stop()
            for start in range(traced, count, TURN):
                self._many(target, mutator, min(TURN, count - start), traced=False)
        self.seen.growth = _resident() - before
        if self.seen.growth > GROWTH_BYTES_MAX:
            self._say(f"the process grew by {self.seen.growth} bytes")
        self.seen.events = self._hook.events
        for event, times in self._hook.events.items():
            self._say(f"{times} times a decoder did: {event}")
        return self.seen

    def _warm(self, target: Target) -> None:
        """What is loaded when it is first needed is loaded now, by some damage too; and valid samples must be taken."""
        mutator = Mutator(random.Random(target.name), target.samples, target.tokens, target.seal)
        for _ in range(_WARMING):
            with contextlib.suppress(Exception):
                target.run(mutator.made())
        for sample in target.samples:
            try:
                wrong = target.run(sample)
            except target.allowed:
                wrong = ""
            if wrong:
                self._say(f"{target.name}: a valid sample: {wrong}: {sample[:_INPUT_SHOWN].hex()}")

    def _many(self, target: Target, mutator: Mutator, count: int, *, traced: bool) -> None:
        seen = self.seen
        signal.setitimer(signal.ITIMER_REAL, _TURN_S)
        for _ in range(count):
            data = mutator.made()
            if traced:
                tracemalloc.reset_peak()
            wrong = self._tried(target, data)
            seen.executions += 1
            if traced:
                peak = tracemalloc.get_traced_memory()[1]
                seen.peak = max(seen.peak, peak)
                if peak > TRACED_BYTES_MAX:
                    wrong = wrong or f"{peak} bytes of memory"
            if wrong:
                self._wrong(target, wrong, data)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _tried(self, target: Target, data: bytes) -> str:
        self._hook.may, self._hook.armed = target.may, True
        try:
            wrong = target.run(data)
        except target.allowed:
            return ""
        except Hung:
            return "does not come to an end"
        except BaseException as error:  # noqa: BLE001 -- whatever is not documented is what is looked for
            return f"{type(error).__name__}: {str(error)[:100]}"
        finally:
            self._hook.armed = False
        self.seen.taken += not wrong
        return wrong

    def _wrong(self, target: Target, wrong: str, data: bytes) -> None:
        """Each kind is shown once, by a small input; all are counted."""
        kind = f"{target.name}: {wrong.partition(':')[0]}"
        if kind in self._kinds:
            self.seen.violations += 1
            return
        self._kinds.add(kind)
        data = self._smaller(target, wrong.partition(":")[0], data)
        shown = data[:_INPUT_SHOWN].hex() + ("..." if len(data) > _INPUT_SHOWN else "")
        self._say(f"{target.name}: {wrong}: {shown}")

    def _smaller(self, target: Target, kind: str, data: bytes) -> bytes:
        """The smallest input that is as wrong, as far as cutting pieces out finds it."""
        size = len(data) // 2
        while size:
            at = 0
            while at < len(data):
                less = data[:at] + data[at + size :]
                if self._tried(target, less).partition(":")[0] == kind:
                    data = less
                else:
                    at += size
            size //= 2
        return data

    def _say(self, what: str) -> None:
        self.seen.violations += 1
        if len(self.seen.findings) < _FINDINGS_MAX:
            self.seen.findings.append(f"seed {self._seed}: {what}")


def _resident() -> int:
    """The most this process ever had in memory, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1_024)


def _hung(_number: int, _frame: FrameType | None) -> None:
    raise Hung


def main(argv: Sequence[str]) -> None:
    """As above."""
    module, _, name = argv[0].partition(":")
    loaded = import_module(module)
    targets: Sequence[Target] = getattr(loaded, name)
    getattr(loaded, "setup", lambda: None)()
    signal.signal(signal.SIGALRM, _hung)
    seen = Bench(argv[2]).run(targets, int(argv[1]))
    sys.stdout.buffer.write(msgspec.json.encode(seen) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
