"""What may go wrong in a run, and when: which features are on, and the windows in which the disk refuses."""

from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING

import msgspec

from nereus_cli.domain.instant import SECOND
from nereus_cli.domain.limits import TINY, Limits
from nereus_cli.ports import CorruptLogError, NewerFormatError

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.world import World

ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.EROFS, errno.ENOLCK, errno.EACCES, errno.ENOMEM)


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """What a run tries; any may be off. ``switching`` is the chance that a call lets another process go first."""

    kills: bool = True
    cuts: bool = True
    pulls: bool = True
    errors: bool = True
    full: bool = True
    steps: bool = True
    suspends: bool = True
    stops: bool = True
    keeper_kills: bool = True
    rot: bool = True
    rivals: bool = True
    journal: bool = True
    evict: bool = True
    switching: float = 0.1
    segment_bytes: int = 9_216
    batch: int = 2
    gap_s: int = 400_000

    def limits(self) -> Limits:
        """Tiny ones, so that every boundary is crossed all the time."""
        return msgspec.structs.replace(TINY, segment_bytes_max=self.segment_bytes, apply_batch_max=self.batch)


SWITCHES = tuple(name for name in Features.__struct_fields__ if isinstance(getattr(Features(), name), bool))


def drawn(chance: random.Random) -> Features:
    """A swarm: each feature is off in a quarter of the runs, so that none hides what another would show."""
    on = {name: chance.random() < 0.75 for name in SWITCHES}
    return Features(
        **on,
        switching=chance.choice((0.0, 0.03, 0.1, 0.3)),
        segment_bytes=chance.choice((9_216, 9_216, 20_000, 65_536)),
        batch=chance.choice((1, 2, 7, 50)),
        gap_s=chance.choice((250_000, 500_000, 1_000_000)),
    )


class Trouble:
    """The disk's mood: outside of a window all is well. ``rate`` is the chance that a call fails inside."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.until = 0
        self.number = 0
        self.rate = 0.0
        self.only = ""
        self.rotten = False

    def begin(self, world: World) -> None:
        """A window of trouble: one error, at any call or at syncs alone, now and then or always."""
        chance = world.chance
        self.number = chance.choice((errno.EIO, errno.EIO, errno.ENOSPC, *ERRORS))
        self.only = chance.choice(("", "", "sync_data", "write_at", "sync"))
        self.rate = chance.choice((0.02, 0.2, 1.0))
        self.until = world.now + chance.choice((SECOND // 100, SECOND, 20 * SECOND))

    def strikes(self, world: World, name: str, *, changes: bool) -> int:
        """The error this call gets, or 0."""
        if world.now >= self.until or not name.startswith(self.only) or world.chance.random() >= self.rate:
            return 0
        if self.number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS) and not changes:
            return 0
        return self.number

    def calm(self) -> None:
        """All is well from now on."""
        self.until = 0

    def judge(self, world: World, process: Process, error: Exception) -> None:
        """How a process ended by an error: nothing may be called corrupt that nobody damaged."""
        if isinstance(error, CorruptLogError | NewerFormatError) and not self.rotten:
            world.failure = error
        world.sometimes(f"a {process.name} ended by {type(error).__name__}")
