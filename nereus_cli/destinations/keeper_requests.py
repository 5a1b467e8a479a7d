"""What a daemon asks of a keeper, as frames: u32 length, then fields, each u32 length and bytes, big-endian."""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack
from typing import Final

import msgspec

FRAME_BYTES_MAX: Final = 16 << 20
DRAIN: Final = b"\0\0\0\x09\0\0\0\x05drain"


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to start. The environment is complete: nothing is added and nothing inherited.

    ``directory`` is the number of the directory of its door, ``cwd`` an absolute path, ``stdin`` at most 256 KiB
    (None: /dev/null), ``output_bytes_max`` what is kept of each stream. Without ``timeout_ms`` it may run for ever."""

    attempt_id: str
    directory: int
    argv: tuple[bytes, ...]
    cwd: bytes
    env: tuple[tuple[bytes, bytes], ...]
    stdin: bytes | None = None
    umask: int = 0o022
    timeout_ms: int | None = None
    grace_ms: int = 10_000
    output_bytes_max: int = 1 << 20


def start_frame(request: StartRequest) -> bytes:
    """The frame that starts an attempt. Raises ValueError if no keeper would read it."""
    timeout = "" if request.timeout_ms is None else request.timeout_ms
    given = int(request.stdin is not None)
    fields = [b"start", _text(request.attempt_id), _text(directory_name(request.directory)), request.cwd]
    fields += [_text(number) for number in (request.umask, timeout, request.grace_ms, request.output_bytes_max, given)]
    fields += [request.stdin or b"", _text(len(request.argv)), *request.argv]
    for name, value in request.env:
        fields += (name, value)
    return _frame(fields)


def stop_frame(attempt_id: str, *, kill: bool) -> bytes:
    """The frame that ends an attempt."""
    return _frame([b"stop", _text(attempt_id), b"1" if kill else b"0"])


def directory_name(directory: int) -> str:
    """The directory of a door, below ``attempts/``."""
    return f"{directory:08d}"


def _text(value: str | int) -> bytes:
    return str(value).encode("ascii")


def _frame(fields: Iterable[bytes]) -> bytes:
    body = b"".join(part for field in fields for part in (pack(">I", len(field)), field))
    if len(body) > FRAME_BYTES_MAX:
        raise ValueError(f"a request of {len(body)} bytes: at most {FRAME_BYTES_MAX} can be sent")
    return pack(">I", len(body)) + body
