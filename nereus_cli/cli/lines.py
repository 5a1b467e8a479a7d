"""Input of any length, line by line in bounded memory: a block ends where it is large enough or the input pauses."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from nereus_cli.cli.exits import usage

if TYPE_CHECKING:
    from nereus_cli.cli.sending import Item

LINES_MAX: Final = 1_000
BYTES_MAX: Final = 8 << 20
LINE_BYTES_MAX: Final = 2 << 20
_READ: Final = 1 << 16

Line: TypeAlias = tuple[int, bytes | None]


def open_input(path: bytes) -> int:
    """A descriptor for a named file, or that of standard input for ``-``."""
    if path == b"-":
        return 0
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        shown = path.decode("utf-8", "backslashreplace")
        raise usage(f"{shown}: {error.strerror}", field="file") from None


def items(blocks: Iterable[list[Line]], make: Callable[[int, bytes | None], Item | None]) -> Iterator[list[Item]]:
    """What ``make`` makes of each line, block by block; None leaves a line out."""
    for block in blocks:
        yield [item for number, line in block if (item := make(number, line)) is not None]


class Reader:
    """Blocks of numbered lines, without their ends; None stands for a line too long to be any command."""

    def __init__(self, fd: int) -> None:
        """``fd`` stays the caller's."""
        self._fd = fd
        self._rest = bytearray()
        self._skipping = False
        self._number = 0
        self._block: list[Line] = []
        self._size = 0

    def __iter__(self) -> Iterator[list[Line]]:
        """Until the end of the input; raises a usage Failure if it cannot be read."""
        while data := self._read():
            self._take(data)
            if len(self._block) >= LINES_MAX or self._size >= BYTES_MAX or (self._block and self._pauses()):
                yield from self._flush()
        if self._rest or self._skipping:
            self._end_line()
        yield from self._flush()

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, _READ)
        except OSError as error:
            raise usage(f"the input cannot be read: {error.strerror}", field="file") from None

    def _take(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            self._end_line()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        if not self._skipping:
            self._rest += part
        if len(self._rest) > LINE_BYTES_MAX:
            self._skipping = True
            self._rest.clear()

    def _end_line(self) -> None:
        self._number += 1
        self._block.append((self._number, None if self._skipping else bytes(self._rest)))
        self._size += len(self._rest)
        self._skipping = False
        self._rest.clear()

    def _pauses(self) -> bool:
        """Nothing more is there yet: who waits for receipts before sending more must get them."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return not poll.poll(0)

    def _flush(self) -> Iterator[list[Line]]:
        for start in range(0, len(self._block), LINES_MAX):
            yield self._block[start : start + LINES_MAX]
        self._block, self._size = [], 0
