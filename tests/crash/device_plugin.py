"""A disk in memory for nbdkit's Python plugin, with a write cache that can be lost, a fault, and a lie.

Standard library only: nbdkit brings its own interpreter. ``control`` is a directory of files that say what to do:

    fail    writes that hold our data fail with EIO; each is counted in ``failed``
    lie     a flush says that it was done, and is not; counted in ``lied``
    drop    everything in the cache is decided now: ``all`` of it is lost, or by that seed some of ours, counted in
            ``lost``; the rest gets to the medium
"""

from __future__ import annotations

import errno
import random
from pathlib import Path

API_VERSION = 2
BLOCK = 4_096
OURS = (b"NRfr", b"NRsg", b"NRm1", b"NRn1")


class Disk:
    """``medium`` outlives the power, ``cache`` (by block) does not."""

    def __init__(self) -> None:
        self.control = Path()
        self.medium = bytearray()
        self.cache: dict[int, bytes] = {}

    def block(self, number: int) -> bytes:
        """As a reader sees it."""
        return self.cache.get(number) or bytes(self.medium[number * BLOCK : (number + 1) * BLOCK])

    def read(self, size: int, offset: int) -> bytes:
        """Any bytes, not only whole blocks."""
        first, start = divmod(offset, BLOCK)
        blocks = range(first, (offset + size + BLOCK - 1) // BLOCK)
        return b"".join(map(self.block, blocks))[start : start + size]

    def write(self, data: bytes, offset: int) -> None:
        """Into the cache."""
        while data:
            number, start = divmod(offset, BLOCK)
            part, data = data[: BLOCK - start], data[BLOCK - start :]
            old = self.block(number)
            self.cache[number] = old[:start] + part + old[start + len(part) :]
            offset += len(part)

    def settle(self) -> None:
        """The cache gets to the medium."""
        for number, data in self.cache.items():
            self.medium[number * BLOCK : (number + 1) * BLOCK] = data
        self.cache.clear()

    def drop(self) -> None:
        """If it was told so."""
        file = self.control / "drop"
        if not file.exists():
            return
        seed = file.read_text()
        chance = random.Random(seed)
        for number, data in sorted(self.cache.items()):
            if seed == "all" or (ours(data) and chance.random() < 0.5):
                del self.cache[number]
                if ours(data):
                    self.count("lost")
        self.settle()
        file.unlink()

    def asked(self, name: str) -> bool:
        """Whether it is told to."""
        return (self.control / name).exists()

    def count(self, name: str) -> None:
        """Once more."""
        with (self.control / name).open("a") as file:
            file.write(".")


DISK = Disk()


def ours(data: bytes) -> bool:
    """Whether there is something of a log in it."""
    return any(magic in data for magic in OURS)


def config(key: str, value: str) -> None:
    """nbdkit calls this for each word of its command line."""
    if key == "control":
        DISK.control = Path(value)
    else:
        DISK.medium = bytearray(int(value))


def open(readonly: bool) -> Disk:  # noqa: A001, ARG001 -- the name and the shape that nbdkit calls
    """For each connection; there is one disk."""
    return DISK


def get_size(disk: Disk) -> int:
    """In bytes."""
    return len(disk.medium)


def pread(disk: Disk, buffer: bytearray, offset: int, _flags: int) -> None:
    """Fills the buffer."""
    disk.drop()
    buffer[:] = disk.read(len(buffer), offset)


def pwrite(disk: Disk, buffer: bytes, offset: int, _flags: int) -> None:
    """Takes the buffer, or refuses."""
    disk.drop()
    data = bytes(buffer)
    if disk.asked("fail") and ours(data):
        import nbdkit  # type: ignore[import-not-found] # it is there when nbdkit runs this

        disk.count("failed")
        nbdkit.set_error(errno.EIO)
        raise OSError(errno.EIO, "the medium refuses")
    disk.write(data, offset)


def flush(disk: Disk, _flags: int) -> None:
    """As told."""
    disk.drop()
    if disk.asked("lie"):
        disk.count("lied")
    else:
        disk.settle()
