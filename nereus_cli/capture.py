"""What this process knows of itself, read once and handed to preparation, which reads nothing."""

from __future__ import annotations

import os
import time
from typing import Final

from nereus_cli.domain.records import BytePairs, Permission
from nereus_cli.prepare.wishes import Capture

_ALLOWED: Final = frozenset({b"HOME", b"LANG", b"LANGUAGE", b"LOGNAME", b"PATH", b"SHELL", b"TMPDIR", b"TZ", b"USER"})
_ALLOWED_PREFIX: Final = b"LC_"
_TRACE_FIELDS: Final = (2, 32, 16, 2)
_HEX: Final = frozenset("0123456789abcdef")


class NoDirectoryError(Exception):
    """The working directory of this process is gone."""


def capture(*, umask: int, decision: Permission | None, cwd: bytes | None = None) -> Capture:
    """This process now; ``umask`` is the one it was started with, ``cwd`` the directory that was stated.

    Raises NoDirectoryError when neither is a directory that has a name."""
    return Capture(
        now=time.time_ns(),
        entropy=os.urandom,
        requested_by=user_name(),
        host=_text(os.uname().nodename),
        cwd=directory(cwd),
        environment=environment(),
        umask=umask,
        traceparent=trace_parent(),
        decision=decision,
    )


def directory(stated: bytes | None) -> bytes:
    """The absolute working directory for a command; links in it are kept as they were said."""
    if stated is not None and stated.startswith(b"/"):
        return stated
    try:
        here = os.getcwdb()
    except OSError:
        raise NoDirectoryError from None
    return here if stated is None else os.path.join(here, stated)


def environment() -> BytePairs:
    """Those variables that every command gets as they were, byte for byte; no others are captured."""
    found = os.environb.items()
    return tuple(sorted((k, v) for k, v in found if k in _ALLOWED or k.startswith(_ALLOWED_PREFIX)))


def user_name() -> str:
    """A statement of who asks, not a proof: the name of the effective user, or its number."""
    import pwd

    uid = os.geteuid()
    try:
        return _text(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return str(uid)


def trace_parent() -> str:
    """A W3C trace context of the caller, if it is one."""
    text = os.environ.get("TRACEPARENT", "")
    fields = text.split("-")
    sound = tuple(map(len, fields)) == _TRACE_FIELDS and all(_HEX.issuperset(field) for field in fields)
    return text if sound and fields[0] != "ff" else ""


def _text(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
