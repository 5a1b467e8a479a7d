"""The end of the newest segment, as far as one handle has read it.

A tail enters a segment where the mark stands and reads on, frame by frame. It may do so without any lock: a frame
that is being written is not valid yet, and one that is stays where it is for as long as its segment is the newest.
"""

from __future__ import annotations

from nereus_cli.log import frame, segment
from nereus_cli.log.frame import Place
from nereus_cli.log.mark import Mark
from nereus_cli.log.room import Room
from nereus_cli.log.segment import Header, Why
from nereus_cli.ports import CorruptLogError, Kind

_CHUNK_BYTES = 1 << 16


class Tail:
    """``end`` is the offset behind the frame at ``last``, ``chain`` its checksum. ``proven`` is the highest position
    that something in this segment proves durable. ``owner`` is the position of the newest owner record (0: none)
    among the frames read without a gap since position ``seen_after``."""

    def __init__(self, room: Room, *, write: bool) -> None:
        self._room = room
        self._write = write
        self._seed = 0
        self.fd = -1
        self.ordinal = 0
        self.inode = 0
        self.last = 0
        self.end = 0
        self.chain = 0
        self.seen_after = 0
        self.owner = 0
        self.proven = 0
        self.sealed = False

    @property
    def seed(self) -> int:
        """Where the checksums of its frames start."""
        return self._seed

    @property
    def place(self) -> Place:
        """Where the next frame stands."""
        return Place(self.last + 1, self.chain)

    @property
    def name(self) -> str:
        """The segment's file."""
        return segment.name_of(self.ordinal)

    def header(self) -> Header:
        """The header of the segment it is in."""
        return self._room.header(self.ordinal)

    def enter(self, mark: Mark) -> None:
        """Follows the mark into its segment; stays where it is when it is there already."""
        if mark.ordinal == self.ordinal and mark.inode == self.inode:
            return
        before, last = self.ordinal, self.last
        self.leave()
        self.fd = self._room.open_segment(mark.ordinal, write=self._write)
        header = self._room.read_header(self.fd, mark.ordinal)
        self._seed, self.proven = header.seed, max(header.base - 1, header.through)
        if (header.why, header.ordinal, mark.durable) != (Why.ROTATED, before + 1, last):
            self.seen_after, self.owner = mark.durable, 0
        inode = self._room.disk.inode(self.fd)
        self.end, self.chain, self.sealed = mark.offset, mark.chain, False
        self.last = mark.durable
        # Last of all: until the segment is named, nobody takes the rest for true.
        self.ordinal, self.inode = mark.ordinal, inode

    def leave(self) -> None:
        """Closes the segment; the next ``enter`` opens whatever it is told."""
        fd, self.fd, self.ordinal, self.inode = self.fd, -1, 0, 0
        # Never closed twice, whatever comes in between: the number may be another file's by then.
        if fd >= 0:
            self._room.disk.close(fd)

    def advance(self) -> bool:
        """Reads to the last valid frame. False when there are bytes behind it that are none, or a SEAL.

        Raises CorruptLogError when the file is shorter than it was."""
        chunk = _CHUNK_BYTES
        disk = self._room.disk
        while not self.sealed and (size := disk.size(self.fd)) != self.end:
            if size < self.end:
                raise self.damage("is shorter than what was durable in it", self.last)
            data = disk.read_at(self.fd, min(chunk, size - self.end), self.end)
            if not self._take(data):
                claimed = frame.claimed_bytes(data) or 0
                if not len(data) < claimed <= size - self.end:
                    return False
                chunk = claimed
        return not self.sealed

    def rest(self) -> bytes:
        """What is behind the last valid frame."""
        disk = self._room.disk
        return disk.read_at(self.fd, max(disk.size(self.fd) - self.end, 0), self.end)

    def damage(self, what: str, position: int, offset: int | None = None) -> CorruptLogError:
        """The error that says so about a position, by default at the offset where the tail stands."""
        at = self.end if offset is None else offset
        message = f"{self.name}: {what} (offset {at}, position {position})"
        return CorruptLogError(message, file=self.name, position=position, offset=at)

    def _take(self, data: bytes) -> bool:
        """Everything of it at once: a tail that an exception left half way would write over frames that stand."""
        last, chain, taken, proven = self.last, self.chain, 0, self.proven
        owner, sealed = self.owner, False
        for found in frame.scan(data, 0, self.place, self._seed):
            if found.kind == frame.SEAL:
                sealed = True
                break
            last, chain, taken = found.position, found.checksum, found.end
            proven = max(proven, found.synced_through)
            if found.kind == Kind.OWNER:
                owner = found.position
        end = self.end + taken
        self.last, self.chain, self.end, self.proven, self.owner, self.sealed = last, chain, end, proven, owner, sealed
        return taken > 0 or sealed
