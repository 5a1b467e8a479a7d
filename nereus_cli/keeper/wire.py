"""What a daemon may ask, and the frames it asks in.

Frame: u32 length of what follows, then fields, each u32 length and bytes; big-endian. The fields of ``start``:
id, directory, cwd, umask, timeout in ms (empty: none), grace in ms, bytes kept of each stream, 1 if there is a
standard input, that input, number of arguments, the arguments, then names and values of the environment in turn.
"""

import re
from collections.abc import Iterator
from struct import unpack_from
from typing import NamedTuple

FRAME_BYTES_MAX = 16 << 20
STDIN_BYTES_MAX = 256 << 10
UMASK_MAX = 0o777

_ID = re.compile(r"[A-Za-z0-9_:@=+~-]{1,200}", re.ASCII)
_DIRECTORY = re.compile(r"[0-9]{1,20}", re.ASCII)
_LENGTH_BYTES = 4
_HEAD_FIELDS = 11


class Start(NamedTuple):
    """One attempt to start; times in milliseconds, the environment complete."""

    attempt_id: str
    directory: str
    cwd: bytes
    umask: int
    timeout_ms: int | None
    grace_ms: int
    output_bytes_max: int
    stdin: bytes | None
    argv: list[bytes]
    env: dict[bytes, bytes]


class Stop(NamedTuple):
    """End an attempt: TERM, its grace, KILL; with ``kill`` at once KILL."""

    attempt_id: str
    kill: bool


class Drain(NamedTuple):
    """Accept no more, free name and lock, end with the last child."""


class MalformedError(ValueError):
    """Nobody of ours sends this; ``attempt_id`` is the attempt it would have started, where that can be told."""

    def __init__(self, message: str, attempt_id: str | None = None) -> None:
        super().__init__(message)
        self.attempt_id = attempt_id


def split(buffer: bytearray) -> Iterator[bytes]:
    """Take the whole frames from the front of the buffer and leave the rest. Raises MalformedError when what
    follows cannot be a frame: the connection is then of no more use."""
    while len(buffer) >= _LENGTH_BYTES:
        (length,) = unpack_from(">I", buffer)
        if length > FRAME_BYTES_MAX:
            raise MalformedError(f"a frame of {length} bytes")
        if len(buffer) < _LENGTH_BYTES + length:
            return
        body = bytes(buffer[_LENGTH_BYTES : _LENGTH_BYTES + length])
        del buffer[: _LENGTH_BYTES + length]
        yield body


def parse(body: bytes) -> Start | Stop | Drain:
    """What a frame asks. Raises MalformedError."""
    match _fields(body):
        case [b"start", *fields]:
            return _start(fields)
        case [b"stop", name, kill, *_]:
            return Stop(_known_id(name), kill == b"1")
        case [b"drain", *_]:
            return Drain()
        case _:
            raise MalformedError("an unknown request")


def _fields(body: bytes) -> list[bytes]:
    found, at = [], 0
    while at + _LENGTH_BYTES <= len(body):
        (length,) = unpack_from(">I", body, at)
        at += _LENGTH_BYTES + length
        found.append(body[at - length : at])
    if at != len(body):
        raise MalformedError("a frame that ends inside a field")
    return found


def _known_id(raw: bytes) -> str:
    text = raw.decode("ascii", "replace")
    if not _ID.fullmatch(text):
        raise MalformedError("an attempt id of other characters than ids have")
    return text


def _start(fields: list[bytes]) -> Start:
    if len(fields) < _HEAD_FIELDS - 1:
        raise MalformedError("a start with too few fields")
    attempt_id = _known_id(fields[0])
    try:
        return _checked(attempt_id, fields)
    except ValueError as wrong:
        raise MalformedError(f"{attempt_id}: {wrong}", attempt_id) from None


def _checked(attempt_id: str, fields: list[bytes]) -> Start:
    directory, cwd, umask, timeout, grace, output_max, has_stdin, stdin, count = fields[1:10]
    arguments = int(count)
    argv, rest = fields[10 : 10 + arguments], fields[10 + arguments :]
    env = dict(zip(rest[::2], rest[1::2], strict=True))
    place = directory.decode("ascii")
    start = Start(
        attempt_id=attempt_id,
        directory=place,
        cwd=cwd,
        umask=int(umask),
        timeout_ms=int(timeout) if timeout else None,
        grace_ms=int(grace),
        output_bytes_max=int(output_max),
        stdin=stdin if has_stdin == b"1" else None,
        argv=argv,
        env=env,
    )
    problem = _problem(start, arguments)
    if problem:
        raise ValueError(problem)
    return start


def _problem(start: Start, arguments: int) -> str | None:
    if arguments < 1 or len(start.argv) != arguments:
        return "arguments missing"
    if not _DIRECTORY.fullmatch(start.directory):
        return "a directory that is not a number"
    if not start.cwd.startswith(b"/") or b"\0" in start.cwd:
        return "a working directory that is not absolute"
    if not 0 <= start.umask <= UMASK_MAX:
        return "a umask out of range"
    if start.grace_ms < 0 or start.output_bytes_max < 0 or (start.timeout_ms or 0) < 0:
        return "a negative limit"
    if start.stdin is not None and len(start.stdin) > STDIN_BYTES_MAX:
        return "too much standard input"
    if any(b"\0" in text for text in start.argv):
        return "NUL in an argument"
    if any(not name or b"=" in name or b"\0" in name + value for name, value in start.env.items()):
        return "an environment variable that cannot be"
    return None
