"""What the keeper knows of one attempt from its exec to its ENDED."""

import enum
import resource
import sys

from nereus_cli.keeper.clock import boot_ns, wall_ns
from nereus_cli.keeper.lines import line
from nereus_cli.keeper.output import Stream
from nereus_cli.keeper.wire import Start

_MAXRSS_UNIT = 1024 if sys.platform == "darwin" else 1
UNKNOWN_SURVIVORS = -1


class Rung(enum.Enum):
    """How far the ladder was climbed: nothing was done, TERM was sent, KILL was sent."""

    GROUND = enum.auto()
    TERM = enum.auto()
    KILL = enum.auto()


class Exit:
    """How and when the leader ended, as the kernel told its reaper."""

    __slots__ = ("boot_ns", "status", "usage", "wall_ns")

    def __init__(self, status: int, usage: resource.struct_rusage) -> None:
        self.status = status
        self.usage = usage
        self.wall_ns = wall_ns()
        self.boot_ns = boot_ns()


class Attempt:
    """A child, its streams, and where it stands on the ladder. All times are nanoseconds."""

    __slots__ = (
        "boot_ns", "deadline_ns", "exit", "grace_ns", "id", "look_ns",
        "pid", "rung", "stopped", "streams", "termed", "timed_out", "wall_ns",
    )  # fmt: skip

    def __init__(self, start: Start, pid: int, streams: tuple[Stream, Stream]) -> None:
        self.id = start.attempt_id
        self.pid = pid
        self.streams = streams
        self.grace_ns = start.grace_ms * 1_000_000
        self.wall_ns = wall_ns()
        self.boot_ns = boot_ns()
        self.exit: Exit | None = None
        self.rung = Rung.GROUND
        self.deadline_ns = 0
        self.look_ns = 0
        self.termed: set[int] = set()
        self.timed_out = False
        self.stopped = False

    def started_line(self) -> bytes:
        return line("STARTED", self.id, self.pid, self.wall_ns, self.boot_ns)

    def standing_lines(self) -> list[bytes]:
        """What a new evidence file must repeat of it."""
        said = [self.started_line()]
        if self.timed_out:
            said.append(line("TIMEDOUT", self.id))
        if self.stopped:
            said.append(line("STOPPED", self.id))
        return said

    def ended_line(self, end: Exit, survivors: int) -> bytes:
        out, err = self.streams
        usage = end.usage
        return line(
            "ENDED", self.id, end.status, int(self.timed_out), int(self.stopped),
            self.wall_ns, end.wall_ns, end.boot_ns,
            round(usage.ru_utime * 1e6), round(usage.ru_stime * 1e6), usage.ru_maxrss // _MAXRSS_UNIT,
            out.total, err.total, out.kept, err.kept, survivors,
        )  # fmt: skip
