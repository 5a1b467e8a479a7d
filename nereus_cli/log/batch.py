"""Records that are to stand behind each other: what people ask, or what the owner decides."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from nereus_cli.log import frame
from nereus_cli.log.frame import Place, Stamp
from nereus_cli.log.handle import Handle
from nereus_cli.ports import FencedError, Kind, Link, OwnerHead

_RID_BYTES = 8


class OwnerPlace(msgspec.Struct, frozen=True):
    """Where owner records are to stand in the owner chain: behind ``head``, in ``epoch``. Through ``clear`` the log
    is known to hold no owner record of anybody else above the head."""

    head: OwnerHead
    epoch: int
    clear: int


class Batch:
    """Payloads that get consecutive positions; owner records when ``owner`` says where they belong."""

    def __init__(self, payloads: Sequence[bytes], owner: OwnerPlace | None = None) -> None:
        self.payloads = payloads
        self.owner = owner

    def unseen(self, handle: Handle) -> OwnerPlace | None:
        """Asked under *append*, with the tail read to its end: None when the batch may be written now.

        Else the tail has not seen everything since ``clear``: ``look`` must first. Raises FencedError."""
        owner = self.owner
        if owner is None:
            return None
        if handle.tail.owner > owner.clear:
            raise _fenced(handle.tail.owner)
        return None if handle.tail.seen_after <= owner.clear else owner

    def look(self, handle: Handle, owner: OwnerPlace) -> None:
        """Reads what the tail skipped. Raises FencedError when somebody else's owner record is there."""
        through = handle.tail.seen_after
        for found in handle.reader.frames(owner.clear, through, handle.tail.ordinal):
            if found.kind == Kind.OWNER:
                raise _fenced(found.position)
        self.owner = msgspec.structs.replace(owner, clear=through)

    def frames(self, place: Place, stamp: Stamp, seed: int) -> list[bytes]:
        """Their frames, the first one at ``place``."""
        frames: list[bytes] = []
        prev = 0 if self.owner is None else self.owner.head.position
        position, chain = place.position, place.chain
        for payload in self.payloads:
            kind, body = Kind.CLIENT, payload
            if self.owner is not None:
                rid = int.from_bytes(os.urandom(_RID_BYTES), "little")
                kind, body = Kind.OWNER, frame.owner_body(Link(self.owner.epoch, prev, rid), payload)
            frames.append(frame.encode(kind, body, Place(position, chain), stamp, seed))
            chain = frame.checksum_of(frames[-1])
            prev = position
            position += 1
        return frames

    def behind(self, count: int) -> Batch:
        """Those that are left when the first ``count`` stand."""
        return Batch(self.payloads[count:], self.owner)


def _fenced(position: int) -> FencedError:
    return FencedError(f"position {position} holds another owner's record")
