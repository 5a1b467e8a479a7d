"""A log that never changes, and the digest of the state it adds up to. Needs the package alone, so that any Python
can be asked: ``python -m tests.fold.canned`` prints its digest."""

from __future__ import annotations

import sys
from pathlib import Path

from nereus_cli.domain.limits import TINY
from nereus_cli.fold import Fold, Nothing, batches
from nereus_cli.ports import Kind, Link, LogRecord
from nereus_cli.projection.overlay import Overlay

FILE = Path(__file__).with_name("canned.txt")


def write(records: list[LogRecord]) -> str:
    """One record a line: position, instant, boot, monotonic clock, link, payload."""
    lines = []
    for record in records:
        link = "" if record.link is None else f"{record.link.epoch},{record.link.prev},{record.link.rid}"
        clocks = f"{record.persisted_at}|{record.boot_id.hex()}|{record.monotonic_ns}"
        lines.append(f"{record.position}|{clocks}|{link}|{record.payload.hex()}\n")
    return "".join(lines)


def read() -> list[LogRecord]:
    """The log."""
    records = []
    for line in FILE.read_text(encoding="ascii").splitlines():
        position, persisted_at, boot, monotonic, link, payload = line.split("|")
        owner = Link(*map(int, link.split(","))) if link else None
        kind = Kind.CLIENT if owner is None else Kind.OWNER
        records.append(
            LogRecord(
                int(position),
                kind,
                int(persisted_at),
                bytes.fromhex(boot),
                int(monotonic),
                owner,
                bytes.fromhex(payload),
            )
        )
    return records


def state() -> Overlay:
    """What it adds up to."""
    fold = Fold(Nothing(), TINY)
    for batch in batches(iter(read()), 5):
        fold.apply(batch)
    return Overlay(None, fold.batch)


if __name__ == "__main__":
    sys.stdout.write(f"{state().digest()}\n")
