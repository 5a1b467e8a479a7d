"""Section F: the log under torn ends, flipped bits and other versions."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from nereus_cli.codec import decode_command
from nereus_cli.store import open_store
from tests.cases.world import Case

RECORDS = 20
DAMAGED = 65
NEWER = 76


class Recorded(NamedTuple):
    """A log of twenty schedules."""

    file: Path
    content: bytes
    starts: list[int]

    def spoil(self, content: bytes) -> None:
        """In place: the same file with other bytes, which is what a medium does."""
        with self.file.open("r+b") as file:
            file.truncate(len(content))
            file.write(content)


@pytest.fixture
def recorded(case: Case) -> Recorded:
    tick = f"echo $NEREUS_MESSAGE_ID >> {case.effects}"
    case.batch({"id": f"r{number:02d}", "in": "0s", "shell": tick} for number in range(1, RECORDS + 1))
    (file,) = (case.store / "log").glob("*.seg")
    content = file.read_bytes()
    # Each frame is a checksum, and then the same four bytes; the first one stands where the head of the file ends.
    magic = content[516:520]
    starts = [match.start() - 4 for match in re.finditer(re.escape(magic), content)]
    assert len(starts) == RECORDS
    return Recorded(file, content, [*starts, len(content)])


def offsets(recorded: Recorded, first: int, last: int, step: int) -> list[int]:
    """Within these records: every byte of a head, and then some."""
    chosen: set[int] = set()
    for begin, end in zip(recorded.starts[first - 1 : last], recorded.starts[first : last + 1], strict=True):
        chosen |= {begin, begin + 1, begin + 4, begin + 8, begin + 16, begin + 24, end - 1}
        chosen |= set(range(begin + 32, end, step))
    return sorted(chosen)


def test_b057_a_torn_end_in_a_copy_drops_the_torn_record_only(case: Case, recorded: Recorded) -> None:
    """In a copy nothing proves that the last records were durable: as after a power cut."""
    original = case.store
    for number, offset in enumerate(offsets(recorded, RECORDS - 1, RECORDS, 211)):
        case.aim(original)
        case.aim(case.copied(f"copy{number}"))
        complete = sum(end <= offset for end in recorded.starts[1:])
        names = [f"r{n:02d}" for n in range(1, complete + 1)]
        (file,) = (case.store / "log").glob("*.seg")
        with file.open("r+b") as opened:
            opened.truncate(offset)
        assert sorted(case.listed()) == names
        assert case.schedule("new", *case.tick("new"), after="1h").status == 0
        assert sorted(case.listed()) == sorted([*names, "new"])
        torn = offset != recorded.starts[complete]
        assert ("TORN_TAIL" in case.codes()) == torn, offset
        assert case.call("verify").status == 0
    assert number > 10


def test_b057_a_torn_end_does_not_stop_the_daemon(case: Case, recorded: Recorded) -> None:
    copy = case.copied("copy")
    case.aim(copy)
    (file,) = (copy / "log").glob("*.seg")
    with file.open("r+b") as opened:
        opened.truncate(recorded.starts[RECORDS - 1] + 33)
    assert case.run("--until-idle") == 0
    assert sorted(case.seen()) == [f"r{n:02d}" for n in range(1, RECORDS)]
    assert "TORN_TAIL" in case.codes()


def test_b057_an_acknowledged_end_that_is_missing_is_damage_and_nothing_is_cut(case: Case, recorded: Recorded) -> None:
    """In its own place the store knows what was durable; nobody goes on as if it had not been."""
    for offset in offsets(recorded, RECORDS - 1, RECORDS, 241):
        recorded.spoil(recorded.content[:offset])
        for words in (("list",), ("schedule", "--id", "new", "--in", "1h", "--", "true"), ("run", "--once")):
            called = case.call(*words)
            assert called.status == DAMAGED, (offset, words, called)
            details = called.document()["details"]
            assert details["file"]
            assert details["position"] in {RECORDS - 1, RECORDS}
        assert recorded.file.read_bytes() == recorded.content[:offset]
    recorded.spoil(recorded.content)
    assert case.run("--until-idle") == 0
    assert len(set(case.seen())) == len(case.seen()) == RECORDS


@pytest.mark.parametrize("delivered", [False, True])
def test_b059_damage_in_the_middle_is_named_and_nothing_behind_it_goes(
    case: Case, recorded: Recorded, delivered: bool
) -> None:
    if delivered:
        assert case.run("--until-idle") == 0
    content = recorded.file.read_bytes()
    for offset in offsets(recorded, 5, 5, 97 if delivered else 41):
        changed = bytearray(content)
        changed[offset] ^= 1 << offset % 8
        recorded.spoil(bytes(changed))
        verified = case.call("verify")
        assert verified.status == DAMAGED
        (finding, *_) = [one for one in verified.document()["findings"] if one["damage"]]
        assert (finding["file"], finding["position"]) == (recorded.file.name, 5), offset
        if not delivered:
            for words in (("run", "--once"), ("status", "--check"), ("list",)):
                called = case.call(*words)
                assert called.status == DAMAGED, (offset, words, called)
                assert called.document()["details"]["position"] == 5
        assert recorded.file.read_bytes() == bytes(changed)
        assert len(case.seen()) == (RECORDS if delivered else 0)
    recorded.spoil(content)
    assert case.call("verify").status == 0
    assert case.run("--until-idle") == 0
    assert sorted(case.seen()) == [f"r{n:02d}" for n in range(1, RECORDS + 1)]


@pytest.mark.parametrize(
    "words", [("schedule", "--in", "0s"), ("schedule", "--id", "new", "--in", "0s"), ("cancel", "r01")]
)
def test_b061_nothing_is_queued_behind_damage(case: Case, recorded: Recorded, words: tuple[str, ...]) -> None:
    """What no owner could reach is refused, with the file and the position, and nothing is written."""
    changed = bytearray(recorded.content)
    changed[recorded.starts[4] + 40] ^= 1
    recorded.spoil(bytes(changed))
    called = case.call(*words, *(case.tick() if words[0] == "schedule" else ()))
    assert called.status == DAMAGED
    assert "position 5" in called.document()["message"]
    assert recorded.file.read_bytes() == bytes(changed)


def test_b059_what_no_proof_covers_is_kept_aside_and_reported(case: Case, recorded: Recorded) -> None:
    """Two faults at once: a bad record, and no mark to prove that it was durable. The end is cut, and reported."""
    changed = bytearray(recorded.content)
    changed[recorded.starts[4] + 40] ^= 1
    recorded.spoil(bytes(changed))
    mark = case.store / "log" / "mark" / "durable"
    mark.write_bytes(b"!" + mark.read_bytes()[1:])
    assert case.run("--once") == 0
    assert sorted(case.seen()) == [f"r{number:02d}" for number in range(1, 5)]
    (torn,) = (case.store / "log").glob("torn-*")
    assert torn.read_bytes() == bytes(changed)[recorded.starts[4] :]
    codes = [item["code"] for item in case.call("status").document()["attention"]]
    assert "TORN_TAIL" in codes


def digest(store: Path) -> dict[str, str]:
    """Of all files that hold the truth."""
    files = [store / "store.json", *sorted((store / "log").glob("*.seg"))]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


EVERY_VERB = [
    ("list",), ("show", "r01"), ("status",), ("verify",), ("events",), ("run", "--once"), ("cancel", "r01"),
    ("schedule", "--id", "new", "--in", "1h", "--", "true"), ("schedule", "--in", "1h", "--", "true"),
]  # fmt: skip


@pytest.mark.usefixtures("recorded")
def test_b071_a_store_of_a_newer_format_is_left_alone(case: Case) -> None:
    description = case.store / "store.json"
    found = json.loads(description.read_text("utf-8"))
    description.write_text(json.dumps({**found, "format": found["format"] + 1, "more": True}), encoding="utf-8")
    before = digest(case.store)
    for words in EVERY_VERB:
        called = case.call(*words)
        assert called.status == NEWER, (words, called)
        said = called.document()["message"]
        assert str(found["format"]) in said
        assert str(found["format"] + 1) in said
    assert digest(case.store) == before
    assert case.seen() == []


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("what", ["version", "kind", "field"])
def test_b071_a_record_of_a_newer_version_is_left_alone(case: Case, what: str) -> None:
    """A record as a later version may write one: sound by its checksum and hash, and not understood."""
    with open_store(str(case.store)) as store:
        store.log.append([newer(store.log.record_at(1).payload, what)])  # type: ignore[union-attr] # the first one is there
    before = digest(case.store)
    for words in EVERY_VERB:
        if words[0] not in {"verify", "events"}:
            called = case.call(*words)
            assert called.status == NEWER, (words, called)
            assert "newer version" in called.document()["message"]
    assert digest(case.store) == before
    assert case.seen() == []


def newer(payload: bytes, what: str) -> bytes:
    """The same command under another version number, of an unknown kind, or with one more stated field."""
    import msgspec

    envelope = msgspec.msgpack.decode(payload)
    if what == "version":
        envelope["v"] += 1
        return msgspec.msgpack.encode(envelope)
    stated = envelope["r"]["stated"]
    if what == "kind":
        stated["type"] = "debounce"
    else:
        stated["moon_phase"] = "full"
    decoded = decode_command(payload)
    raw = msgspec.msgpack.encode(stated)
    envelope["r"]["command_hash"] = hashlib.sha256(b"nereus.command/1\0" + raw).digest()
    envelope["r"]["command_id"] = decoded.command_id + "z"
    return msgspec.msgpack.encode(envelope)
