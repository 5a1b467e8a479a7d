"""Reading durable frames, without any lock.

A segment ends where its successor's base says, so what stands behind that is never looked at. Frames name their
positions and cannot be forged, which makes a segment its own index: a position is found by halving the file.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterator

from nereus_cli.log import frame, segment
from nereus_cli.log.frame import Frame, Place
from nereus_cli.log.room import Room
from nereus_cli.log.segment import HEADER_BYTES, Header
from nereus_cli.ports import CorruptLogError

_CHUNK_BYTES = 1 << 18
_NEAR_BYTES = 1 << 17
_STEP_BYTES = 1 << 16
_WINDOWS_BYTES = (1 << 16, 1 << 22)

Entry = tuple[int, int, int]
"""Position of a frame, its offset in the file, the checksum of the frame before."""


class Reader:
    """Remembers where it has been; safe to use from several threads."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._entries: dict[int, list[Entry]] = {}
        self._turn = threading.Lock()

    def first(self) -> int:
        """The first position that is still held. Raises CorruptLogError when a segment is missing: ordinals have no
        gaps, and begin with 1 as long as no floor was raised."""
        floor, ordinals = self._room.newest_header().floor, self._room.ordinals()
        oldest = ordinals[0] if floor else 1
        missing = next((at for at, found in enumerate(ordinals, oldest) if at != found), None)
        if missing is not None:
            name = segment.name_of(missing)
            behind = self._room.header(next(ordinal for ordinal in ordinals if ordinal > missing))
            what = f"{name}: missing, although a later segment is there"
            raise CorruptLogError(what, file=name, position=max(behind.base - 1, 1))
        return self._room.header(ordinals[0]).base

    def frames(self, after: int, through: int, newest: int) -> Iterator[Frame]:
        """The frames from ``after + 1`` to ``through``, all of them durable; ``newest`` is the last segment to look at.

        Raises CorruptLogError at the first that cannot be read."""
        if after >= through:
            return
        spans = self._spans(after + 1, newest)
        for at, header in enumerate(spans):
            stop = spans[at + 1].base - 1 if at + 1 < len(spans) else through
            first, last = max(after + 1, header.base), min(stop, through)
            if first <= last:
                yield from self._segment(header, first, last)

    def _spans(self, position: int, newest: int) -> list[Header]:
        """The segments from the one that holds a position to the newest."""
        ordinals = [ordinal for ordinal in self._room.ordinals() if ordinal <= newest]
        spans: list[Header] = []
        expected = newest
        for ordinal in reversed(ordinals):
            if ordinal != expected:
                break
            spans.append(self._room.header(ordinal))
            if spans[-1].base <= position:
                return spans[::-1]
            expected -= 1
        name = segment.name_of(expected)
        raise CorruptLogError(f"{name}: missing, it should hold position {position}", file=name, position=position)

    def _segment(self, header: Header, first: int, last: int) -> Iterator[Frame]:
        fd = self._room.open_segment(header.ordinal, write=False)
        try:
            start = self._locate(fd, header, first)
            for found in self._stream(fd, header, start, (first, last)):
                if found.position >= first:
                    yield found
        finally:
            self._room.disk.close(fd)

    def _stream(self, fd: int, header: Header, start: Entry, wanted: tuple[int, int]) -> Iterator[Frame]:
        """The frames from an entry to the last that is wanted, read in chunks; a frame larger than a chunk widens it.

        What cannot be read below the first that is wanted is stepped over."""
        position, offset, chain = start
        first, last = wanted
        chunk = _CHUNK_BYTES
        while position <= last:
            data = self._room.disk.read_at(fd, chunk, offset)
            taken = 0
            for found in frame.scan(data, 0, Place(position, chain), header.seed):
                if found.position > last or found.kind == frame.SEAL:
                    break
                self._remember(header.ordinal, (found.position, offset + found.start, found.chain))
                yield found
                position, chain, taken = found.position + 1, found.checksum, found.end
            claimed = frame.claimed_bytes(data) or 0
            if taken:
                offset, chunk = offset + taken, _CHUNK_BYTES
            elif claimed > len(data) == chunk:
                chunk = claimed
            else:
                position, offset, chain = self._beyond(fd, header, (position, offset), first)
                chunk = _CHUNK_BYTES

    def _locate(self, fd: int, header: Header, position: int) -> Entry:
        """An entry at or a little below a position."""
        entries = self._entries.setdefault(header.ordinal, [(header.base, HEADER_BYTES, header.chain)])
        at = bisect.bisect_right(entries, (position, 1 << 64, 0))
        low = entries[at - 1]
        high = entries[at][1] if at < len(entries) else self._room.disk.size(fd)
        while high - low[1] > _NEAR_BYTES and low[0] < position:
            middle = (low[1] + high) // 2
            found = self._probe(fd, header, middle)
            if found is None or found[0] > position:
                high = middle
            else:
                low = found
        return low

    def _probe(self, fd: int, header: Header, offset: int) -> Entry | None:
        """The first frame that begins at or behind an offset, if there is one near."""
        for window in _WINDOWS_BYTES:
            found = frame.find(self._room.disk.read_at(fd, window, offset), 0, header.seed)
            if found is not None:
                return found.position, offset + found.start, found.chain
        return None

    def _beyond(self, fd: int, header: Header, bad: tuple[int, int], first: int) -> Entry:
        """The frame at ``first``, wherever it is behind the bad position and offset. Raises CorruptLogError."""
        position, offset = bad
        size = self._room.disk.size(fd) if position < first else offset
        data = self._room.disk.read_at(fd, max(size - offset, 0), offset)
        found = frame.find(data, 0, header.seed)
        while found is not None and found.position < first:
            found = frame.find(data, found.end, header.seed)
        if found is None or found.position > first:
            raise _unreadable(header, position, offset)
        return found.position, offset + found.start, found.chain

    def _remember(self, ordinal: int, entry: Entry) -> None:
        entries = self._entries[ordinal]
        if entry[1] >= entries[-1][1] + _STEP_BYTES:
            with self._turn:
                bisect.insort(entries, entry)


def _unreadable(header: Header, position: int, offset: int) -> CorruptLogError:
    name = segment.name_of(header.ordinal)
    message = f"{name}: position {position} cannot be read (offset {offset})"
    return CorruptLogError(message, file=name, position=position, offset=offset)
