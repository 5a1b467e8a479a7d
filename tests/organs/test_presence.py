"""Is there an owner? Asked of its socket and its beat, never of its lock."""

from __future__ import annotations

import os
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nereus_cli.clock import HostClock
from nereus_cli.presence import STALE_NS, Beat, OwnerSocket, probe, read_beat


@pytest.fixture
def place(tmp_path: Path) -> str:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    return str(deep)


@pytest.fixture
def owner(place: str) -> Iterator[OwnerSocket]:
    opened = OwnerSocket(place)
    yield opened
    opened.close()


def beat_of(*, age: int = 0, boot: bytes | None = None) -> Beat:
    now = HostClock().read()
    return Beat(
        pid=os.getpid(), epoch=3, since=5, monotonic_ns=now.monotonic_ns - age, boot_id=boot or now.boot_id, trouble="t"
    )


def ask(place: str) -> str:
    now = HostClock().read()
    return probe(place, now.monotonic_ns, now.boot_id).state


def test_nobody_was_ever_here(place: str) -> None:
    assert ask(place) == "none"
    assert read_beat(place) is None


def test_a_living_owner_whatever_the_length_of_the_path(place: str, owner: OwnerSocket) -> None:
    owner.beat(beat_of())
    assert ask(place) == "alive"
    owner.answer()
    owner.answer()
    found = read_beat(place)
    assert found is not None
    assert (found.epoch, found.trouble) == (3, "t")
    assert os.stat(f"{place}/sock").st_mode & 0o777 == 0o600
    assert os.stat(f"{place}/beat").st_mode & 0o777 == 0o600


@pytest.mark.parametrize("age", [STALE_NS + 1, 100 * STALE_NS])
def test_an_owner_that_stands_still_is_stale(place: str, owner: OwnerSocket, age: int) -> None:
    owner.beat(beat_of(age=age))
    assert ask(place) == "stale"


def test_a_beat_of_another_boot_is_stale(place: str, owner: OwnerSocket) -> None:
    owner.beat(beat_of(boot=b"x" * 16))
    assert ask(place) == "stale"


def test_a_full_queue_of_callers_means_somebody_is_there(place: str, owner: OwnerSocket) -> None:
    owner.beat(beat_of())
    assert {ask(place) for _ in range(200)} == {"alive"}


def test_a_dead_owners_socket_means_nobody_and_is_replaced(place: str) -> None:
    directory = os.open(place, os.O_RDONLY)
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(f"/proc/self/fd/{directory}/sock")
    dead.close()
    assert ask(place) == "none"
    successor = OwnerSocket(place)
    successor.beat(beat_of())
    assert ask(place) == "alive"
    successor.close()
    os.close(directory)
    assert ask(place) == "none"


NO_BEATS = (b"", b"\xc1", b"\x81\xa1x" + b"\x91" * 1_010, b"\x81\xa3pid\xa1\xff")


def sealed(body: bytes) -> bytes:
    """A beat whose checksum is true of its body."""
    return zlib.crc32(body).to_bytes(4, "big") + len(body).to_bytes(2, "big") + body


def test_a_beat_that_cannot_be_read_is_no_beat(place: str, owner: OwnerSocket) -> None:
    owner.beat(beat_of())
    whole = Path(place, "beat").read_bytes()
    changed = bytes([whole[0] ^ 0xFF]) + whole[1:]
    for damaged in (b"", b"\xc1", whole[:20], changed, whole[:6] + b"\xff" + whole[7:], *map(sealed, NO_BEATS)):
        Path(place, "beat").write_bytes(damaged)
        assert ask(place) == "stale"
        assert read_beat(place) is None
    owner.beat(msgspec.structs.replace(beat_of(), trouble="\N{SNOWMAN}" * 5_000))
    assert ask(place) == "alive"
    assert owner.fileno() >= 0


def test_an_owner_that_goes_leaves_the_socket_of_its_successor(place: str) -> None:
    """Where a lock was granted twice, the one that gives up must not make the other invisible."""
    first, second = OwnerSocket(place), OwnerSocket(place)
    second.beat(beat_of())
    first.close()
    assert ask(place) == "alive"
    second.close()
    assert ask(place) == "none"
    assert not os.path.lexists(f"{place}/sock")
