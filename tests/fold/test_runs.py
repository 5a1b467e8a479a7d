"""Runs of records: bounded by count and by bytes, in order, none left out."""

from __future__ import annotations

from itertools import chain

import pytest

from nereus_cli.fold import batches
from nereus_cli.ports import Kind, LogRecord

MEGABYTE = 1 << 20


def records(sizes: list[int]) -> list[LogRecord]:
    return [LogRecord(n, Kind.CLIENT, 0, b"", 0, None, b"x" * size) for n, size in enumerate(sizes, 1)]


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        ([], []),
        ([1] * 7, [3, 3, 1]),
        ([1] * 6, [3, 3]),
        ([8 * MEGABYTE, 1, 1], [1, 2]),
        ([5 * MEGABYTE, 5 * MEGABYTE, 1], [2, 1]),
        ([4 * MEGABYTE] * 5, [2, 2, 1]),
    ],
)
def test_a_run_ends_by_count_or_by_bytes(sizes: list[int], lengths: list[int]) -> None:
    given = records(sizes)
    runs = list(batches(iter(given), 3))
    assert [len(run) for run in runs] == lengths
    assert list(chain.from_iterable(runs)) == given
