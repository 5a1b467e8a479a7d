"""Canonical bytes; what is hashed and what is not; and *corrupt* and *newer* kept apart."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.codec import (
    NewerRecordError,
    UndecodableError,
    decode_command,
    decode_mutation,
    encode_command,
    encode_mutation,
    hash_stated,
)
from nereus_cli.domain import records
from nereus_cli.domain.records import (
    At,
    Cancel,
    Command,
    Context,
    Expiry,
    In,
    Now,
    Permission,
    Policy,
    Schedule,
    Shell,
    Stated,
    Usage,
)
from tests.codec.samples import CONTEXT, MUTATIONS, STATED, sample

pack, unpack = msgspec.msgpack.encode, msgspec.msgpack.decode
COMMANDS = {name: encode_command(sample(stated)) for name, stated in STATED.items()}
OWNERS = {name: encode_mutation(mutation) for name, mutation in MUTATIONS.items()}


def rewritten(change: Callable[[dict[str, Any]], object], *, rehash: bool = False, payload: bytes = b"") -> bytes:
    """A command's payload with something else in it; with ``rehash`` as a writer that meant it."""
    tree = unpack(payload or COMMANDS["schedule, least"])
    change(tree)
    if rehash:
        tree["r"]["command_hash"] = sha256(b"nereus.command/1\0" + pack(tree["r"]["stated"])).digest()
    return pack(tree)


# -------------------------------------------------------------------------------------------------- canonical bytes


def test_what_is_left_at_its_default_is_not_written() -> None:
    tree = unpack(encode_command(sample(STATED["schedule, least"], Context("anna", 5))))
    assert tree == {
        "v": 1,
        "r": {
            "command_id": "c-1",
            "command_hash": hash_stated(STATED["schedule, least"]),
            "stated": {
                "type": "schedule",
                "message_id": "m",
                "when": {"type": "in", "text": "1h30m", "delay_ns": 5_400_000_000_000},
                "target": {"type": "shell", "argv": [b"true"]},
            },
            "context": {"requested_by": "anna", "requested_at": 5},
        },
    }


def _structs() -> list[type[msgspec.Struct]]:
    found = [value for value in vars(records).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)]
    return [struct for struct in found if struct.__struct_config__.omit_defaults and struct.__struct_fields__]


def _another(value: object) -> object:
    """Equal to it, and not it, where Python can tell the two apart."""
    if isinstance(value, str):
        return "".join(list(value))
    if isinstance(value, bytes):
        return bytes(bytearray(value))
    if isinstance(value, float):
        return float(str(value))
    return msgspec.structs.replace(value) if isinstance(value, msgspec.Struct) else value


def test_equal_records_are_equal_bytes_whichever_objects_they_are_made_of() -> None:
    samples = [*STATED.values(), *MUTATIONS.values(), CONTEXT, Policy(), Expiry(), Usage(), Permission("r", 1)]
    samples += [getattr(s, "target", None) or s for s in STATED.values()] + [In("x", 1), At("x"), Now()]
    by_kind: dict[type, Any] = {type(sample): sample for sample in samples}
    by_kind[Command] = sample(STATED["hold"])
    assert set(by_kind) >= set(_structs())
    for kind in _structs():
        for field in msgspec.structs.fields(kind):
            if field.default is msgspec.NODEFAULT:
                continue
            plain = msgspec.structs.replace(by_kind[kind], **{field.name: field.default})
            other = msgspec.structs.replace(by_kind[kind], **{field.name: _another(field.default)})
            assert (plain, pack(plain)) == (other, pack(other)), (kind, field.name)
            assert field.name not in unpack(pack(plain))


def test_the_hash_is_over_the_stated_bytes_under_their_own_tag() -> None:
    stated = unpack(COMMANDS["schedule"])["r"]["stated"]
    assert hash_stated(STATED["schedule"]) == sha256(b"nereus.command/1\0" + pack(stated)).digest()


CAPTURED: dict[str, object] = {
    "requested_by": "bert", "requested_at": 1, "host": "h", "reason": "r", "correlation": "c", "traceparent": "t",
    "decision": Permission("group", 7), "environment": ((b"A", b"B"),), "umask": 0, "instant": 3, "expiry_instant": 4,
    "zone_rule": "z", "zone_data": "d",
}  # fmt: skip


def test_nothing_captured_is_hashed() -> None:
    assert set(CAPTURED) == set(Context.__struct_fields__)
    for name, value in CAPTURED.items():
        other = msgspec.structs.replace(CONTEXT, **{name: value})
        assert other != CONTEXT
        assert sample(STATED["schedule"], other).command_hash == sample(STATED["schedule"]).command_hash


def _variants(stated: Any) -> list[Any]:  # noqa: ANN401 -- any struct of the records
    """The same with each of its fields, at any depth, said differently; the tag is what it was."""
    found = []
    for name in stated.__struct_fields__:
        value = getattr(stated, name)
        if isinstance(value, msgspec.Struct):
            others = _variants(value)
        elif isinstance(value, bool):
            others = [not value]
        elif isinstance(value, int):
            others = [value + 1]
        elif value in (None, ()):
            continue
        else:
            assert isinstance(value, str | bytes | tuple), name
            others = [value[:-1] if len(value) > 1 else value * 2]
        found += [msgspec.structs.replace(stated, **{name: other}) for other in others]
    return found


@pytest.mark.parametrize("name", ["schedule", "schedule, webhook", "schedule, named", "reschedule", "stop", "replay"])
def test_everything_stated_is_hashed(name: str) -> None:
    variants = [STATED[name], *_variants(STATED[name])]
    assert len({hash_stated(stated) for stated in variants}) == len(variants) > 2


def test_kinds_with_the_same_fields_have_different_hashes() -> None:
    kinds = [STATED[name] for name in ("cancel", "hold", "release")]
    assert len({hash_stated(stated) for stated in kinds}) == 3


texts = st.text(max_size=12)
raw = st.binary(max_size=12)
numbers = st.integers(-(1 << 63), (1 << 64) - 1)
schedules: st.SearchStrategy[Schedule] = st.builds(
    Schedule,
    texts,
    st.builds(In, texts, numbers),
    st.builds(Shell, st.lists(raw).map(tuple), st.none() | raw, raw, st.lists(st.tuples(raw, raw)).map(tuple)),
    st.builds(Policy, st.none() | numbers, st.none() | numbers, on_uncertain=st.none() | texts),
    tags=st.lists(st.tuples(texts, texts)).map(tuple),
)


@given(schedules | st.builds(Cancel, texts, st.none() | numbers), st.builds(Context, texts, numbers, umask=numbers))
def test_bytes_and_records_say_the_same(stated: Stated, context: Context) -> None:
    command = sample(stated, context)
    payload = encode_command(command)
    assert decode_command(payload) == command
    assert encode_command(decode_command(payload)) == payload


# ------------------------------------------------------------------------------------------------- corrupt or newer


@pytest.mark.parametrize("version", [2, 255, 1 << 40])
def test_a_newer_version_is_named_as_such_whatever_else_it_holds(version: int) -> None:
    for payload in COMMANDS.values():
        bodies: list[object] = [unpack(payload)["r"], [1], None, {}]
        for body in bodies:
            with pytest.raises(NewerRecordError):
                decode_command(pack({"v": version, "r": body}))
    for payload in OWNERS.values():
        with pytest.raises(NewerRecordError):
            decode_mutation(rewritten(lambda t: t.update(v=version), payload=payload))


@pytest.mark.parametrize("version", [0, -1, None, "1"])
def test_what_no_version_wrote_is_undecodable(version: object) -> None:
    with pytest.raises(UndecodableError):
        decode_command(rewritten(lambda t: t.update(v=version)))
    with pytest.raises(UndecodableError):
        decode_mutation(rewritten(lambda t: t.update(v=version), payload=OWNERS["floor"]))


def test_an_unknown_kind_is_newer() -> None:
    with pytest.raises(NewerRecordError, match="'hook'"):
        decode_command(rewritten(lambda t: t["r"]["stated"].update(type="hook")))
    with pytest.raises(NewerRecordError, match="'lease'"):
        decode_mutation(rewritten(lambda t: t["r"].update(type="lease"), payload=OWNERS["floor"]))


STATES_MORE: list[Callable[[dict[str, Any]], object]] = [
    lambda t: t["r"]["stated"].update(only_if="raining"),
    lambda t: t["r"]["stated"]["target"].update(nice=5),
    lambda t: t["r"]["stated"]["target"].update(type="queue"),
    lambda t: t["r"]["stated"]["when"].update(type="cron"),
    lambda t: t["r"]["stated"].update(message_id=7),
]


@pytest.mark.parametrize("change", STATES_MORE)
def test_what_a_person_stated_must_be_understood_in_full(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(NewerRecordError):
        decode_command(rewritten(change, rehash=True))
    with pytest.raises(UndecodableError):
        decode_command(rewritten(lambda t: (change(t), t["r"].update(command_hash=b"x" * 32))))


def test_a_default_that_its_writer_chose_to_write_is_understood() -> None:
    for change in (
        lambda t: t["r"]["stated"].update(priority=0, policy={}, tags=[]),
        lambda t: t["r"]["stated"]["target"].update(cwd=b"/", script=None),
        lambda t: t["r"].update(stated=dict(reversed(t["r"]["stated"].items()))),
    ):
        payload = rewritten(change, rehash=True)
        command = decode_command(payload)
        assert command.stated == STATED["schedule, least"]
        assert command.command_hash != hash_stated(command.stated)


def test_what_was_captured_may_hold_more_than_we_know() -> None:
    payload = rewritten(lambda t: (t["r"]["context"].update(terminal="vt100"), t["r"].update(note="x"), t.update(w=1)))
    assert decode_command(payload) == sample(STATED["schedule, least"])
    for name, bytes_ in OWNERS.items():
        more = rewritten(lambda t: t["r"].update(note="x"), payload=bytes_)
        assert decode_mutation(more) == MUTATIONS[name]


def test_a_hash_that_is_not_that_of_the_content_is_undecodable() -> None:
    with pytest.raises(UndecodableError, match="hash"):
        decode_command(rewritten(lambda t: t["r"]["stated"].update(message_id="n")))
    with pytest.raises(UndecodableError, match="hash"):
        decode_command(rewritten(lambda t: t["r"].update(command_hash=b"")))


def test_what_was_captured_wrongly_is_told_apart_from_what_was_stated_wrongly() -> None:
    broken = rewritten(lambda t: t["r"].update(context={"requested_at": "noon"}))
    with pytest.raises(UndecodableError):
        decode_command(broken)


GARBAGE = [
    b"", b"\xc1", b"\x80", b"\x81\xa1v\x01", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff",
    b"\x91" * 100_000, b"\x82\xa1v\x01\xa1r" + b"\x81\xa1r" * 50_000, pack([1, 2]), pack("text"),
    pack({"v": 1, "r": 1}), pack({"v": 1, "r": {"stated": "x"}}), pack({"v": 1, "r": {"type": 3}}),
    pack({"v": 1, "r": {}}),
]  # fmt: skip


@pytest.mark.parametrize("payload", GARBAGE, ids=lambda payload: payload[:8].hex())
def test_garbage_is_undecodable(payload: bytes) -> None:
    for decode in (decode_command, decode_mutation):
        with pytest.raises(UndecodableError):
            decode(payload)


@pytest.mark.parametrize("name", ["schedule", "cancel"])
def test_a_command_cut_anywhere_or_longer_than_it_is_is_undecodable(name: str) -> None:
    payload = COMMANDS[name]
    for other in (*(payload[:size] for size in range(len(payload))), payload + b"\0", payload + payload):
        with pytest.raises(UndecodableError):
            decode_command(other)


def test_text_that_is_not_text_is_undecodable() -> None:
    payload = COMMANDS["schedule, least"]
    assert payload.count(b"\xa1m") == 1
    with pytest.raises(UndecodableError):
        decode_command(payload.replace(b"\xa1m", b"\xa1\xff"))
    with pytest.raises(UndecodableError):
        decode_mutation(OWNERS["expire"].replace(b"\xa1m", b"\xa1\xff"))


@given(st.binary(max_size=64), st.sampled_from(sorted(COMMANDS)), st.data())
def test_no_bytes_at_all_bring_the_decoder_down(noise: bytes, name: str, data: st.DataObject) -> None:
    payload = COMMANDS[name]
    start = data.draw(st.integers(0, len(payload)))
    for candidate in (noise, payload[:start] + noise + payload[start + len(noise) :]):
        for decode in (decode_command, decode_mutation):
            try:
                decode(candidate)
            except (UndecodableError, NewerRecordError):
                continue


@given(st.sampled_from(sorted(COMMANDS)), st.data())
def test_one_flipped_bit_never_changes_what_was_stated(name: str, data: st.DataObject) -> None:
    payload = bytearray(COMMANDS[name])
    bit = data.draw(st.integers(0, 8 * len(payload) - 1))
    payload[bit // 8] ^= 1 << bit % 8
    try:
        decoded = decode_command(bytes(payload))
    except (UndecodableError, NewerRecordError):
        return
    assert decoded.stated == STATED[name]


@pytest.mark.parametrize(("decode", "name"), [(decode_command, "_command"), (decode_mutation, "_mutation")])
def test_want_of_memory_says_nothing_of_a_record(
    monkeypatch: pytest.MonkeyPatch, decode: Callable[[bytes], object], name: str
) -> None:
    """A fold that took it for an undecodable record would go on in another state than everybody else's."""

    class Poor:
        def decode(self, _: bytes) -> object:
            raise MemoryError

    monkeypatch.setattr(f"nereus_cli.codec.{name}", Poor())
    with pytest.raises(MemoryError):
        decode(b"whatever")
