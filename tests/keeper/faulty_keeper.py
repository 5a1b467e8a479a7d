"""A keeper with a fault planted in it; run by a script that `Owner.entry_with` writes, never imported.

``FAULT`` is (point, nth, action): at the nth passing of a point the keeper kills or stops itself, or an error strikes.
``ENTRY`` is the script of the real keeper.
"""

import errno
import os
import runpy
import signal
import sys

FAULT: tuple[str, int, str] = globals().get("FAULT", ("", 0, ""))
ENTRY: str = globals().get("ENTRY", "")

runpy.run_path(ENTRY)["alone"]()

from nereus_cli.keeper import daemons  # noqa: E402 - importable from here on
from nereus_cli.keeper.attempt import Attempt, Exit  # noqa: E402 - importable from here on
from nereus_cli.keeper.launch import main  # noqa: E402 - importable from here on
from nereus_cli.keeper.service import Keeper  # noqa: E402 - importable from here on
from nereus_cli.keeper.spawn import Child, NotStartedError  # noqa: E402 - importable from here on
from nereus_cli.keeper.wire import Start  # noqa: E402 - importable from here on

passed = [0]


def at(point: str) -> None:
    wanted, nth, action = FAULT
    if point != wanted:
        return
    passed[0] += 1
    if passed[0] != nth:
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action == "eagain":
        raise NotStartedError(errno.EAGAIN, "spawn")
    else:
        raise RuntimeError(action)


class FaultyKeeper(Keeper):
    def announce(self, batch: list[Start]) -> OSError | None:
        at("received")
        failed = super().announce(batch)
        at("taken")
        return failed

    def launch(self, start: Start) -> None:
        at("door")
        super().launch(start)

    def execute(self, start: Start) -> Child:
        at("exec")
        return super().execute(start)

    def take(self) -> None:
        super().take()
        if self.news:
            at("spawned")

    def flush(self) -> None:
        told = bool(self.news)
        super().flush()
        if told:
            at("flushed")

    def reaped(self, attempt: Attempt, end: Exit) -> None:
        at("reaped")
        super().reaped(attempt, end)

    def turn(self, quiet_since: int) -> None:
        super().turn(quiet_since)
        at("turn")


if FAULT[0] == "protocol":
    vars(daemons)["PROTOCOL"] = FAULT[1]

if __name__ == "__main__":
    sys.exit(main(sys.argv, FaultyKeeper))
