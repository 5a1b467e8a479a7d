"""Every adapter of Views and FactsSource, over the same log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from nereus_cli.domain.limits import TINY
from nereus_cli.fold import Fold
from nereus_cli.ports import LogRecord, Views
from nereus_cli.projection.overlay import Overlay
from nereus_cli.projection.sqlite import SqliteProjection
from tests.fold.ways import STORE, committed, in_memory

ADAPTERS = ("memory", "rows", "reader", "tail over rows", "tail over a tail over rows")


@contextmanager
def adapters(records: Sequence[LogRecord], cut: int) -> Iterator[dict[str, Views]]:
    """By name; ``cut`` is the position through which rows are stored where a tail lies over them."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(TemporaryDirectory()))
        whole = stack.enter_context(closing(committed(place / "whole.db", records, [])))
        reader = stack.enter_context(closing(SqliteProjection(place / "whole.db", STORE, write=False)))
        part = stack.enter_context(closing(committed(place / "part.db", records[:cut], [])))
        between = cut + (len(records) - cut) // 2
        middle = _over(part, records[cut:between])
        yield {
            "memory": in_memory(records, 3)[0],
            "rows": whole,
            "reader": reader,
            "tail over rows": _over(part, records[cut:]),
            "tail over a tail over rows": _over(middle, records[between:]),
        }


def _over(base: Views, tail: Sequence[LogRecord]) -> Overlay:
    fold = Fold(base, TINY)
    fold.apply(tail)
    return Overlay(base, fold.batch)
