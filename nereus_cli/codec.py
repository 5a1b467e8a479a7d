"""How a record is written: records to canonical bytes and back, their hash, and upcasting. The only encoders.

A payload is a MessagePack map ``{"v": version, "r": record}``. The same record always gives the same bytes:
fields in their declared order, defaults left out, no maps with free keys. An undecodable payload and one from
a newer version are told apart: the first is quarantined by the fold, the second stops it untouched.

Fields are only ever added. One we do not know is passed over where it was captured, but never in what a person
stated: content that is intact by its own hash and yet not wholly understood is from a newer version. A new
member of a closed vocabulary in an owner record has no such proof, so it takes a new version number.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from nereus_cli.domain.records import Command, Mutation, Stated

VERSION = 1
_HASH_DOMAIN = b"nereus.command/1\0"
# Not MemoryError: that says something of this machine at this moment, and a record is what it is everywhere.
_DECODE_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class UndecodableError(Exception):
    """The bytes are no record that any version wrote."""


class NewerRecordError(Exception):
    """The bytes are of a version, or carry a kind of record, that this one does not know."""


class _CommandEnvelope(msgspec.Struct, frozen=True):
    v: int
    r: Command


class _MutationEnvelope(msgspec.Struct, frozen=True):
    v: int
    r: Mutation


class _Version(msgspec.Struct, frozen=True):
    v: int


class _Stated(msgspec.Struct, frozen=True):
    command_hash: bytes
    stated: msgspec.Raw


class _Intact(msgspec.Struct, frozen=True):
    v: int
    r: _Stated


class _AnyTag(msgspec.Struct, frozen=True):
    type: str = ""


class _AnyCommand(msgspec.Struct, frozen=True):
    stated: _AnyTag = _AnyTag()
    type: str = ""


class _Tagged(msgspec.Struct, frozen=True):
    v: int
    r: _AnyCommand


Encodable: TypeAlias = _CommandEnvelope | _MutationEnvelope | Stated
_encoder = msgspec.msgpack.Encoder()
_json = msgspec.json.Encoder()
_command = msgspec.msgpack.Decoder(_CommandEnvelope)
_mutation = msgspec.msgpack.Decoder(_MutationEnvelope)
_version = msgspec.msgpack.Decoder(_Version)
_tagged = msgspec.msgpack.Decoder(_Tagged)
_intact = msgspec.msgpack.Decoder(_Intact)
_stated: msgspec.msgpack.Decoder[Stated] = msgspec.msgpack.Decoder(Stated)


def _tags(union: Any) -> frozenset[str]:  # noqa: ANN401 -- a typing union has no better static type
    return frozenset(str(member.__struct_config__.tag) for member in union.__args__)


_KNOWN_COMMANDS = _tags(Stated)
_KNOWN_MUTATIONS = _tags(Mutation)


def encode_command(command: Command) -> bytes:
    """The bytes that every physical retry of this command sends."""
    return _encode(_CommandEnvelope(VERSION, command))


def encode_mutation(mutation: Mutation) -> bytes:
    """The body of an owner record; its link travels beside it."""
    return _encode(_MutationEnvelope(VERSION, mutation))


def decode_command(payload: bytes) -> Command:
    """Raises UndecodableError or NewerRecordError; checks that the hash is that of what was stated."""
    try:
        envelope = _command.decode(payload)
    except _DECODE_ERRORS as error:
        raise _why(payload, _KNOWN_COMMANDS, error) from None
    _check_version(envelope.v)
    command = envelope.r
    if command.command_hash == hash_stated(command.stated):
        return command
    stated = _intact_part(payload)
    if stated is None:
        msg = "the hash is not that of the content"
        raise UndecodableError(msg)
    if not _is_understood(stated):
        msg = "a command that states more than this version knows"
        raise NewerRecordError(msg)
    return command


def decode_mutation(payload: bytes) -> Mutation:
    """Raises UndecodableError or NewerRecordError."""
    try:
        envelope = _mutation.decode(payload)
    except _DECODE_ERRORS as error:
        raise _why(payload, _KNOWN_MUTATIONS, error) from None
    _check_version(envelope.v)
    return envelope.r


def hash_stated(stated: Stated) -> bytes:
    """SHA-256 over what the person stated, under a domain tag: 32 bytes."""
    return sha256(_HASH_DOMAIN + _encode(stated)).digest()


def packed(value: object) -> bytes:
    """Any value as MessagePack. Not by ``encode``: when its first allocation fails, it crashes the interpreter
    (msgspec 0.23), where this raises MemoryError."""
    buffer = bytearray(512)
    _encoder.encode_into(value, buffer)
    return bytes(buffer)


def as_json(value: object) -> bytes:
    """Any value as JSON, and as safe."""
    buffer = bytearray(512)
    _json.encode_into(value, buffer)
    return bytes(buffer)


def _encode(value: Encodable) -> bytes:
    return packed(value)


def _check_version(version: int) -> None:
    if version > VERSION:
        msg = "this record is of a newer version"
        raise NewerRecordError(msg)
    if version < 1:
        msg = "no version wrote this record"
        raise UndecodableError(msg)


def _intact_part(payload: bytes) -> bytes | None:
    """What was stated, byte for byte as its writer wrote it, if the hash beside it is of just these bytes."""
    try:
        command = _intact.decode(payload).r
    except _DECODE_ERRORS:
        return None
    stated = bytes(command.stated)
    return stated if command.command_hash == sha256(_HASH_DOMAIN + stated).digest() else None


def _is_understood(stated: bytes) -> bool:
    """Whether we know every field in it, however its writer chose to write them."""
    try:
        return _knows(msgspec.msgpack.decode(stated), _stated.decode(stated))
    except _DECODE_ERRORS:
        return False


def _knows(tree: Any, known: object) -> bool:  # noqa: ANN401 -- whatever there was in the bytes
    if not isinstance(known, msgspec.Struct):
        return True
    return all(
        name == "type" or (name in known.__struct_fields__ and _knows(tree[name], getattr(known, name)))
        for name in tree
    )


def _why(payload: bytes, known: frozenset[str], error: BaseException) -> Exception:
    """Newer, if a version or a kind that we do not know can still be read from it."""
    try:
        if _version.decode(payload).v > VERSION:
            return NewerRecordError("this record is of a newer version")
        head = _tagged.decode(payload).r
    except _DECODE_ERRORS:
        return UndecodableError(str(error))
    tag = head.stated.type or head.type
    if tag and tag not in known:
        return NewerRecordError(f"records of kind {tag!r} are not known to this version")
    stated = _intact_part(payload)
    if stated is not None and not _is_understood(stated):
        return NewerRecordError("a command of a kind that this version does not know")
    return UndecodableError(str(error))
