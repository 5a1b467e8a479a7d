"""How late do shell attempts start? Prints percentiles; asserts nothing, because machines are noisy.

    python benchmarks/lateness.py [MESSAGES] [PER_SECOND]

Lateness is from ``deliver_at`` to the instant at which the child was started, as its keeper saw it. Beside it stands a
bare loop of the same shape in the same run: sleep until the instant, then spawn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.message import State
from nereus_cli.domain.records import Permission
from nereus_cli.ports import Selection
from nereus_cli.prepare.commands import schedule
from nereus_cli.prepare.wishes import Capture, ScheduleWish, ShellWish, TimeWish
from nereus_cli.store import Store, open_store

SECOND = 1_000_000_000


def percentiles(lateness_ns: list[int]) -> str:
    """p50, p99 and the extremes, in milliseconds."""
    ordered = sorted(lateness_ns)
    marks = {"min": 0, "p50": len(ordered) // 2, "p99": len(ordered) * 99 // 100, "max": len(ordered) - 1}
    return "  ".join(f"{name} {ordered[index] / 1e6:7.2f} ms" for name, index in marks.items())


def wish(store: Store, number: int, due_ns: int) -> None:
    """One message, due at an instant."""
    capture = Capture(
        now=time.time_ns(), entropy=os.urandom, decision=Permission("benchmark", os.geteuid()),
        environment=((b"PATH", os.environb[b"PATH"]),),
    )  # fmt: skip
    at = f"@{due_ns // SECOND}.{due_ns % SECOND:09d}"
    target = ShellWish(argv=(b"true",), cwd=b"/")
    prepared = schedule(ScheduleWish(time=TimeWish(at=at), target=target, message_id=f"m{number}"), capture, PRODUCTION)
    store.append([prepared])


def nereus(count: int, dues: list[int], path: str) -> list[int]:
    """Through the whole product: log, owner, keeper."""
    with open_store(path, create=True) as store:
        for number, due in enumerate(dues):
            wish(store, number, due)
    subprocess.run([sys.executable, "-m", "nereus_cli", "--store", path, "run", "--until-idle"], check=True)
    with open_store(path) as store:
        view = store.view()
        late = []
        for message in view.select(Selection(states=(State.PUBLISHED,))):
            started = view.attempts_of(message.message_id)[-1].started_at
            if started is not None:
                late.append(started - message.deliver_at)
    if len(late) != count:
        print(f"only {len(late)} of {count} were delivered", file=sys.stderr)
    return late


def bare(dues: list[int]) -> list[int]:
    """Sleep until the instant, then spawn: what no scheduler can beat."""
    late = []
    children = []
    for due in dues:
        time.sleep(max((due - time.time_ns()) / SECOND, 0))
        children.append(subprocess.Popen(["true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        late.append(time.time_ns() - due)
        children = [child for child in children if child.poll() is None]
    for child in children:
        child.wait()
    return late


def main() -> None:
    """One run of each, one after the other."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rate = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o700)
        start = time.time_ns() + 3 * SECOND
        late = nereus(count, [start + n * SECOND // rate for n in range(count)], f"{place}/store")
    start = time.time_ns() + SECOND
    loop = bare([start + n * SECOND // rate for n in range(count)])
    print(f"{count} messages at {rate}/s; early: {sum(ns < 0 for ns in late)}")
    print(f"nereus          {percentiles(late)}")
    print(f"sleep + spawn   {percentiles(loop)}")


if __name__ == "__main__":
    main()
