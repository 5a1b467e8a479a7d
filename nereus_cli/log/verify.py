"""Reading a whole log to say whether it is sound: headers, chain, checksums, how each segment ends.

Nothing is changed, and nothing is raised for what is found: a finding names file, offset and position.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nereus_cli.log import frame, segment
from nereus_cli.log.frame import Frame, Place
from nereus_cli.log.handle import Handle
from nereus_cli.log.making import torn_names, unfinished
from nereus_cli.log.segment import HEADER_BYTES, Header, Why
from nereus_cli.ports import CorruptLogError


class Finding(msgspec.Struct, frozen=True):
    """Something a person should know. ``damage`` is False for what crashes leave behind by design. ``position`` is
    0 where none is meant."""

    file: str
    offset: int
    position: int
    what: str
    damage: bool


class Verification(msgspec.Struct, frozen=True):
    """What was read, and what was found. ``durable`` is how far the log claims to be durable."""

    segments: int
    records: int
    bytes_read: int
    first: int
    durable: int
    findings: Sequence[Finding]

    @property
    def sound(self) -> bool:
        """Nothing that was durable is damaged."""
        return not any(finding.damage for finding in self.findings)


class Walk:
    """The state of one verification."""

    def __init__(self, handle: Handle) -> None:
        self.room = handle.room
        self.mark = handle.room.mark()
        self.findings: list[Finding] = []
        self.records = 0
        self.bytes_read = 0
        self.durable = 0

    def say(self, file: str, offset: int, position: int, what: str, *, damage: bool = True) -> None:
        """Keeps a finding."""
        self.findings.append(Finding(file, offset, position, what, damage))


def verify(handle: Handle) -> Verification:
    """Walks every segment. Raises NewerFormatError, OSError."""
    walk = Walk(handle)
    headers = _headers(walk)
    for header, behind in zip(headers, [*headers[1:], None], strict=True):
        _segment(walk, header, behind)
    names = list(walk.room.disk.names(walk.room.directory))
    for name in torn_names(names):
        walk.say(name, 0, 0, "a tail that was cut off and kept", damage=False)
    for name in unfinished(names):
        walk.say(name, 0, 0, "a segment whose making was broken off", damage=False)
    return Verification(
        segments=len(headers),
        records=walk.records,
        bytes_read=walk.bytes_read,
        first=headers[0].base if headers else 1,
        durable=walk.durable,
        findings=walk.findings,
    )


def _headers(walk: Walk) -> list[Header]:
    headers: list[Header] = []
    for ordinal in walk.room.ordinals():
        try:
            header = walk.room.header(ordinal)
        except CorruptLogError as error:
            walk.say(error.file, error.offset, error.position, str(error))
            continue
        if headers and headers[-1].ordinal + 1 != ordinal:
            missing = segment.name_of(headers[-1].ordinal + 1)
            walk.say(missing, 0, 0, "a segment is missing between its neighbours")
        headers.append(header)
    return headers


def _segment(walk: Walk, header: Header, behind: Header | None) -> None:
    fd = walk.room.open_segment(header.ordinal, write=False)
    try:
        data = walk.room.disk.read_at(fd, walk.room.disk.size(fd), 0)
        check = Check(walk, header, behind, data)
        if walk.mark is not None and (walk.mark.ordinal, walk.mark.inode) == (header.ordinal, walk.room.disk.inode(fd)):
            check.proven = max(check.proven, walk.mark.durable)
    finally:
        walk.room.disk.close(fd)
    walk.bytes_read += len(data)
    check.frames()
    if behind is not None:
        check.end(behind)
    walk.durable = max(
        check.place.position - 1 if behind is not None else min(check.proven, check.place.position - 1), 0
    )


class Check:
    """One segment against its own header, frame by frame, and its end against its successor's header."""

    def __init__(self, walk: Walk, header: Header, behind: Header | None, data: bytes) -> None:
        self.walk = walk
        self.name = segment.name_of(header.ordinal)
        self.data = data
        self.seed = header.seed
        self.stop = None if behind is None else behind.base - 1
        self.proven = max(header.base - 1, header.through) if self.stop is None else self.stop
        self.offset = HEADER_BYTES
        self.place = header.place

    def frames(self) -> None:
        """Reads to the end; where something cannot be read, goes on at the next frame that can."""
        while not self._done():
            self._consecutive()
            if self._done():
                return
            found = self._next()
            if self.proven < self.place.position:
                if self.offset < len(self.data) and not self._sealed():
                    self._say("a torn tail, which the next append will cut", damage=False)
                return
            last = self.proven if found is None else found.position - 1
            self._say(f"positions {self.place.position} to {last} cannot be read")
            if found is None:
                return
            self.offset, self.place = found.start, Place(found.position, found.chain)

    def end(self, behind: Header) -> None:
        """Holds the segment's end against what its successor says of it."""
        if (self.offset, self.place.position, self.place.chain) != (behind.previous_end, behind.base, behind.chain):
            self._say("the segment does not end where its successor says")
        elif behind.why == Why.ROTATED and not self._sealed():
            self._say("the segment was ended without its SEAL")
        elif behind.why == Why.POISONED and self.offset < len(self.data):
            left = len(self.data) - self.offset
            self._say(f"{left} bytes behind the end of a segment whose sync failed", damage=False)

    def _done(self) -> bool:
        return self.stop is not None and self.place.position > self.stop

    def _consecutive(self) -> None:
        for found in frame.scan(self.data, self.offset, self.place, self.seed):
            if found.kind == frame.SEAL:
                return
            self.walk.records += 1
            if self.stop is None:
                self.proven = max(self.proven, found.synced_through)
            self.offset, self.place = found.end, Place(found.position + 1, found.checksum)
            if self._done():
                return

    def _next(self) -> Frame | None:
        """The next frame that can be read; all that follow add to what is proven of the newest segment."""
        first: Frame | None = None
        found = frame.find(self.data, self.offset, self.seed)
        while found is not None:
            if found.kind != frame.SEAL and found.position > self.place.position:
                first = first or found
                if self.stop is not None:
                    break
                self.proven = max(self.proven, found.synced_through)
            found = frame.find(self.data, found.end, self.seed)
        return first

    def _sealed(self) -> bool:
        found = frame.parse(self.data, self.offset, self.seed)
        return found is not None and found.kind == frame.SEAL and found.position == self.place.position

    def _say(self, what: str, *, damage: bool = True) -> None:
        self.walk.say(self.name, self.offset, self.place.position, what, damage=damage)
