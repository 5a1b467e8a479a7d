"""What one opened log knows: its files, its clock, the end of the log as far as it has read it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from nereus_cli.domain.limits import Limits
from nereus_cli.log.frame import Stamp
from nereus_cli.log.mark import Mark, Note
from nereus_cli.log.reader import Reader
from nereus_cli.log.room import Room
from nereus_cli.log.tail import Tail
from nereus_cli.ports import Clock, TornTail


class Handle:
    """Shared by the parts of one FileLog; not for several threads at once. ``touched``: bytes of the append that
    is under way may be in the log. ``torn``: the tails this handle has cut. ``applied``: given the store's id, the
    last position of which something beside the log proves that it was durable."""

    def __init__(
        self,
        room: Room,
        clock: Clock,
        limits: Limits,
        append_wait_s: float,
        sync_wait_s: float,
        applied: Callable[[bytes], int],
    ) -> None:
        self.room = room
        self.clock = clock
        self.limits = limits
        self.append_wait_s = append_wait_s
        self.sync_wait_s = sync_wait_s
        self.applied = applied
        self.boot_id = clock.read().boot_id
        self.tail = Tail(room, write=True)
        self.reader = Reader(room)
        self.torn: list[TornTail] = []
        self.touched = False

    def mark(self) -> Mark | None:
        """The mark if it can be believed: of this boot, of this very file, and of the newest segment there is.

        A believed mark may still be old, and then says less than is true; it never says more."""
        mark = self.room.mark()
        if mark is None or mark.boot_id != self.boot_id or self.room.inode_of(mark.ordinal) != mark.inode:
            return None
        return mark if self.room.inode_of(mark.ordinal + 1) is None else None

    def open_note(self, mark: Mark) -> Note | None:
        """The note of a sync in this segment of which nobody has said how it ended."""
        note = self.room.note()
        return note if note is not None and note.open_beside(mark) else None

    def own_note(self) -> Note | None:
        """The note, if it is about this boot and the segment the tail is in, or unreadable."""
        note = self.room.note()
        here = (self.boot_id, self.tail.ordinal, self.tail.inode)
        mine = note is not None and (note.ordinal == 0 or (note.boot_id, note.ordinal, note.inode) == here)
        return note if mine else None

    def write_note(self, first: int, last: int, *, poisoned: bool = False) -> None:
        """Says what the sync that begins now in the tail's segment covers, or that it failed."""
        self._write_note(self.tail.ordinal, self.tail.inode, first, last, poisoned=poisoned)

    def close_note(self, mark: Mark) -> None:
        """Says that no sync is under way in the segment of this mark."""
        self._write_note(mark.ordinal, mark.inode, mark.durable + 1, mark.durable, poisoned=False)

    def _write_note(self, ordinal: int, inode: int, first: int, last: int, *, poisoned: bool) -> None:
        note = Note(
            boot_id=self.boot_id,
            ordinal=ordinal,
            inode=inode,
            first=first,
            last=last,
            poisoned=poisoned,
            pid=os.getpid(),
        )
        self.room.write_note(note)

    def tail_mark(self) -> Mark:
        """The mark that says everything through the tail is durable."""
        tail = self.tail
        return Mark(
            boot_id=self.boot_id,
            ordinal=tail.ordinal,
            inode=tail.inode,
            durable=tail.last,
            offset=tail.end,
            chain=tail.chain,
        )

    def stamp(self, synced_through: int) -> Stamp:
        """What the frames written now say of their writer. Of an uncertain clock the latest reading is kept,
        so that a delay counted from it is never too short."""
        now = self.clock.read()
        return Stamp(synced_through, now.latest, now.monotonic_ns, now.boot_id)

    def write_all(self, fd: int, data: bytes, offset: int) -> None:
        """Writes until everything is taken."""
        done = 0
        while done < len(data):
            taken = self.room.disk.write_at(fd, data[done:] if done else data, offset + done)
            if taken <= 0:
                raise OSError(errno.ENOSPC, "nothing was taken")
            done += taken

    def close(self) -> None:
        """Gives back every descriptor."""
        self.tail.leave()
        self.room.close()
