"""The three descriptors: what is printed goes through here, straight to them, and says what became of it.

Python's own streams are not used: their buffers fail late, at exit, with a traceback and another status.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Mapping
from typing import Final

from nereus_cli.render.text import ascii_json, visible

_OUT: Final = 1
_ERR: Final = 2
_CLOSED: set[int] = set()


class ReaderGone(Exception):  # noqa: N818 -- an ordinary end, not an error
    """Nobody reads our standard output any more."""


class Unprintable(Exception):  # noqa: N818 -- says what could not be done, the caller decides what it means
    """Standard output is closed or full."""


def secure_descriptors() -> None:
    """Nothing we open may get the number of a closed standard stream: a receipt would be written into it."""
    for fd in (0, _OUT, _ERR):
        try:
            os.fstat(fd)
        except OSError:
            _CLOSED.add(fd)
            with contextlib.suppress(OSError):
                opened = os.open(os.devnull, os.O_RDWR)
                if opened != fd:
                    os.dup2(opened, fd)
                    os.close(opened)


def write(data: bytes) -> None:
    """All of it to standard output; raises ReaderGone or Unprintable."""
    if _OUT in _CLOSED:
        raise Unprintable("standard output is closed")
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(_OUT, view) :]
        except BlockingIOError:
            _until_writable()
        except BrokenPipeError:
            raise ReaderGone from None
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise ReaderGone from None
            raise Unprintable(f"standard output: {error.strerror}") from None


def line(text: str) -> None:
    """One line for people."""
    write((visible(text) + "\n").encode(encoding(), "backslashreplace"))


def document(value: Mapping[str, object]) -> None:
    """One JSON document on one line, in ASCII."""
    write(as_json(value) + b"\n")


def note(text: str) -> None:
    """A notice for people on standard error; whether it arrives changes nothing."""
    raw_note(f"nereus: {visible(text)}\n".encode(encoding(), "backslashreplace"))


def raw_note(data: bytes) -> None:
    """A line for machines on standard error; whether it arrives changes nothing."""
    if _ERR not in _CLOSED:
        with contextlib.suppress(OSError):
            os.write(_ERR, data)


def as_json(value: object) -> bytes:
    """A document as bytes."""
    try:
        return ascii_json(_encoded(value))
    except UnicodeEncodeError:
        return ascii_json(_encoded(_without_surrogates(value)))


def encoding() -> str:
    """How text is written: as the locale says, or as PYTHONIOENCODING does."""
    return getattr(sys.stdout, "encoding", None) or getattr(sys.stderr, "encoding", None) or "utf-8"


def on_terminal() -> bool:
    """Whether a person is looking."""
    return _OUT not in _CLOSED and os.isatty(_OUT)


def _encoded(value: object) -> bytes:
    """As the codec does it, and for its reasons; but where nothing can be opened any more, that cannot be loaded."""
    import msgspec

    buffer = bytearray(512)
    msgspec.json.Encoder().encode_into(value, buffer)
    return bytes(buffer)


def _without_surrogates(value: object) -> object:
    """Names of files and the like may hold bytes that are no text."""
    if isinstance(value, str):
        return value if _is_text(value) else visible(value)
    if isinstance(value, dict):
        return {key: _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _until_writable() -> None:
    import select

    poll = select.poll()
    poll.register(_OUT, select.POLLOUT)
    poll.poll(1_000)
