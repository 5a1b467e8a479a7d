"""Which faults a sweep tries at a call of the disk: deaths around it, and errors, once and for ever."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator, Sequence

import msgspec

from nereus_cli.testing import Fault

ERRORS = (
    errno.EIO,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EMFILE,
    errno.EINTR,
    errno.EROFS,
    errno.ENOLCK,
    errno.EACCES,
    errno.ENOMEM,
)
LOOKS = frozenset({"open_directory", "read_at", "size", "inode", "inode_of", "names", "lock_holder"})
"""Calls that change nothing: to die before or behind one is to die behind or before its neighbour."""
WRITE = "write_at"


class Point(msgspec.Struct, frozen=True):
    """One fault at one call, and words for it."""

    fault: Fault
    name: str

    def __str__(self) -> str:
        """What reproduces it, given the scenario."""
        fault = self.fault
        what = errno.errorcode[fault.error] if fault.error else "dies"
        extras = [word for word in ("after", "short", "for_ever") if getattr(fault, word)]
        return " ".join([f"call {fault.at} ({self.name}):", what, *extras])


class Plan(msgspec.Struct, frozen=True):
    """What is tried at each call: deaths, at looks too or not; every error, or ``errors`` drawn for each call. Only one
    of ``looks`` calls that change nothing is tried, and one of ``calls`` of the others."""

    deaths_at_looks: bool = False
    errors: int = len(ERRORS)
    looks: int = 1
    calls: int = 1

    def points(self, calls: Sequence[str], choose: random.Random) -> Iterator[Point]:
        """Every point of a run that makes these calls."""
        for at, name in enumerate(calls, 1):
            every = self.looks if name in LOOKS else self.calls
            if every > 1 and choose.randrange(every):
                continue
            if self.deaths_at_looks or name not in LOOKS:
                yield from _deaths(at, name)
            yield from self._errors(at, name, choose)

    def said(self) -> str:
        """How much of everything that is."""
        shares = {"calls that change something": self.calls, "looks": self.looks}
        parts = [f"{name} whole" if share == 1 else f"1 of {share} {name}" for name, share in shares.items()]
        every = self.errors >= len(ERRORS)
        parts.append("errors whole" if every else f"errors {self.errors} of {len(ERRORS)} drawn for each call")
        return ", ".join(parts)

    def _errors(self, at: int, name: str, choose: random.Random) -> Iterator[Point]:
        number = min(self.errors, len(ERRORS))
        for error in ERRORS if number == len(ERRORS) else choose.sample(ERRORS, number):
            yield Point(Fault(at=at, error=error, short=_fills(name, error)), name)
            yield Point(Fault(at=at, error=error, for_ever=True, short=_fills(name, error)), name)
        if name not in LOOKS:
            yield Point(Fault(at=at, error=errno.EIO, after=True), name)


def _deaths(at: int, name: str) -> Iterator[Point]:
    yield Point(Fault(at=at), name)
    yield Point(Fault(at=at, after=True), name)
    if name == WRITE:
        yield Point(Fault(at=at, short=True), name)


def _fills(name: str, error: int) -> bool:
    """A full disk takes a part first."""
    return name == WRITE and error in {errno.ENOSPC, errno.EDQUOT}
