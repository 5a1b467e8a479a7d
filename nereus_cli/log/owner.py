"""The writer of owner records on a log of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nereus_cli.log.batch import Batch, OwnerPlace
from nereus_cli.ports import Appended, OwnerHead

Append = Callable[[Batch], list[Appended]]
"""Appends a batch as one piece: durable on return."""


class FileOwner:
    """The ``OwnerWriter`` of a FileLog. Not safe for several threads."""

    def __init__(self, append: Append, head: OwnerHead) -> None:
        self._append = append
        self._head = head

    @property
    def head(self) -> OwnerHead:
        return self._head

    def append(self, payloads: Sequence[bytes]) -> Sequence[Appended]:
        if not payloads:
            return []
        head = self._head
        placed = self._append(Batch(payloads, OwnerPlace(head, head.epoch, head.position)))
        self._head = OwnerHead(placed[-1].position, head.epoch)
        return placed


def claim(append: Append, seen: OwnerHead, payload: bytes) -> FileOwner:
    """The first record of the epoch after the one that was seen, and its writer."""
    epoch = seen.epoch + 1
    placed = append(Batch([payload], OwnerPlace(seen, epoch, seen.position)))
    return FileOwner(append, OwnerHead(placed[0].position, epoch))
