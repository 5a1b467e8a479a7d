"""``nereus logs``: what an attempt printed, byte for byte as far as it was kept."""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, Final

from nereus_cli.cli import asking, opening, output
from nereus_cli.cli.exits import DONE, UNKNOWN, Failure
from nereus_cli.render.text import from_bytes, visible_lines

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.domain.message import Attempt
    from nereus_cli.render.machine import Document
    from nereus_cli.store import Store

_LOOK_S: Final = 0.2
_READ: Final = 1 << 16
_DIRECTORY_DIGITS: Final = 8


class Stream:
    """The file of one stream, read as it grows; missing until the first byte was printed."""

    def __init__(self, path: str) -> None:
        """Opens nothing yet."""
        self._path = path
        self._offset = 0

    @property
    def read(self) -> int:
        """How many bytes were there."""
        return self._offset

    def more(self) -> bytes:
        """What was added since the last call."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            fd = os.open(self._path, flags)
        except OSError as error:
            # No file: nothing was printed. A symlink: the door was closed, the command never began.
            if error.errno in (errno.ENOENT, errno.ELOOP):
                return b""
            raise
        try:
            parts = []
            while part := os.pread(fd, _READ, self._offset):
                parts.append(part)
                self._offset += len(part)
            return b"".join(parts)
        finally:
            os.close(fd)


def logs(call: Call) -> int:
    """Standard output, then standard error; with ``--follow`` as they come, until the attempt has ended."""
    name, number = asking.one_id(call), call.whole("attempt", least=1)
    with opening.for_reading(call) as store:
        attempt = _attempt(store, name, number)
        streams = _streams(store, attempt)
        if call.flag("follow"):
            attempt = _follow(call, store, name, attempt, streams)
        if call.json:
            output.document(_document(name, attempt, [stream.more() for stream in streams]))
        else:
            for stream in streams:
                _show(stream.more())
            _note_losses(attempt, streams)
    return DONE


def _attempt(store: Store, name: str, number: int | None) -> Attempt:
    store.forget_views()
    view, _ = asking.known(store, store.view(), name)
    attempts = view.attempts_of(name)
    for attempt in reversed(attempts):
        if number in (None, attempt.number):
            return attempt
    what = "no attempt yet" if number is None else f"no attempt {number}"
    details = {"message_id": name, "attempts": len(attempts)}
    raise Failure("NO_SUCH_ATTEMPT", f"{name} has {what}", UNKNOWN, details)


def _streams(store: Store, attempt: Attempt) -> tuple[Stream, Stream]:
    number = attempt.admitted_position // store.limits.attempt_directory_span
    path = os.path.join(store.path, "attempts", f"{number:0{_DIRECTORY_DIGITS}d}", attempt.attempt_id)
    return Stream(path), Stream(f"{path}.err")


def _follow(call: Call, store: Store, name: str, attempt: Attempt, streams: tuple[Stream, Stream]) -> Attempt:
    while attempt.side_effect is None:
        if not call.json:
            for stream in streams:
                _show(stream.more())
        time.sleep(_LOOK_S)
        attempt = _attempt(store, name, attempt.number)
    return attempt


def _show(data: bytes) -> None:
    """A terminal gets no control characters of a stranger's; anything else gets the bytes."""
    if output.on_terminal():
        text = visible_lines(data.decode("utf-8", "surrogateescape"))
        data = text.encode(output.encoding(), "backslashreplace")
    output.write(data)


def _note_losses(attempt: Attempt, streams: tuple[Stream, Stream]) -> None:
    for (name, total, kept), stream in zip(_totals(attempt), streams, strict=False):
        if kept < total:
            output.note(f"{name}: the first {kept} of {total} bytes were kept")
        if stream.read < kept:
            output.note(f"{name}: {kept} bytes were kept, {stream.read} are left")


def _totals(attempt: Attempt) -> list[tuple[str, int, int]]:
    usage = attempt.usage
    if usage is None:
        return []
    return [
        ("stdout", usage.stdout_bytes, usage.stdout_kept),
        ("stderr", usage.stderr_bytes, usage.stderr_kept),
    ]


def _document(name: str, attempt: Attempt, contents: list[bytes]) -> Document:
    document: Document = {
        "schema": "nereus.logs/1",
        "message_id": name,
        "attempt": attempt.number,
        "attempt_id": attempt.attempt_id,
        "ended": attempt.side_effect is not None,
        "stdout": from_bytes(contents[0]),
        "stderr": from_bytes(contents[1]),
    }
    known = {stream: (total, kept) for stream, total, kept in _totals(attempt)}
    for place, stream in enumerate(("stdout", "stderr")):
        total, kept = known.get(stream, (None, len(contents[place])))
        document[f"{stream}_bytes"] = total
        document[f"{stream}_truncated"] = total is not None and min(kept, len(contents[place])) < total
    return document
