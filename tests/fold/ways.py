"""The ways of folding one log, which have to come to the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from nereus_cli.domain.limits import TINY
from nereus_cli.fold import Applied, Fold, Nothing, batches
from nereus_cli.ports import LogRecord
from nereus_cli.projection.overlay import Overlay
from nereus_cli.projection.sqlite import SqliteProjection

STORE = b"store-id-16bytes"


def in_memory(records: Sequence[LogRecord], size: int) -> tuple[Overlay, list[Applied]]:
    """Folded from the very beginning in batches of ``size``; what each record did beside it."""
    fold = Fold(Nothing(), TINY)
    applied = [one for batch in batches(iter(records), size) for one in fold.apply(batch)]
    return Overlay(None, fold.batch), applied


def committed(
    path: Path, records: Sequence[LogRecord], cuts: Iterable[int], *, reopen: bool = False
) -> SqliteProjection:
    """Folded into rows with a commit at each of the ``cuts``; with ``reopen`` the file is closed there, too."""
    projection = SqliteProjection(path, STORE, write=True)
    ends = sorted({cut for cut in cuts if cut < len(records)} | {len(records)})
    for start, end in zip([0, *ends], ends, strict=False):
        fold = Fold(projection, TINY)
        for batch in batches(iter(records[start:end]), 3):
            fold.apply(batch)
        projection.commit(fold.settle())
        if reopen:
            projection.close()
            projection = SqliteProjection(path, STORE, write=True)
    return projection
