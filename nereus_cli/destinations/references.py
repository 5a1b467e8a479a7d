"""What a command takes by reference: read when an attempt is materialised, never kept, never quoted.

A refusal names the reference, because that is what a person has to mend, and nothing of what it leads to.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from nereus_cli.ports import CannotStartError

_BYTES_MAX: Final = 64 << 10
_PASSING: Final = frozenset(
    {errno.EAGAIN, errno.EINTR, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE}
)


def read_reference(reference: str) -> bytes:
    """The value behind ``file:``, ``env:`` or ``credential:``; a message about it names the reference only."""
    scheme, _, rest = reference.partition(":")
    try:
        if scheme == "env":
            return os.environb[os.fsencode(rest)]
        path = rest
        if scheme == "credential":
            path = f"{os.environ['CREDENTIALS_DIRECTORY']}/{os.path.basename(rest)}"
        return _read(path).rstrip(b"\n")
    except (KeyError, OSError, ValueError) as error:
        raise _unreadable(f"the secret {scheme}:{rest} cannot be read", error, errno.ENOENT) from None


def read_environment_file(path: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """NAME=VALUE lines; empty lines and those that begin with # are left out."""
    try:
        lines = _read(os.fsdecode(path)).split(b"\n")
    except (OSError, ValueError) as error:
        raise _unreadable("the file of --env-from-file cannot be read", error, 0) from None
    pairs = []
    for line in lines:
        name, separator, value = line.partition(b"=")
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        if not separator or not name or b"\0" in line:
            msg = "the file of --env-from-file has a line that is not NAME=VALUE"
            raise CannotStartError(msg, errno=errno.EINVAL)
        pairs.append((name, value))
    return tuple(pairs)


def _unreadable(message: str, error: Exception, otherwise: int) -> CannotStartError:
    """Want of memory or descriptors, or a disk that refuses, says nothing of the reference: it may do better later."""
    number = (error.errno or 0) if isinstance(error, OSError) else otherwise
    return CannotStartError(message, errno=number, permanent=number not in _PASSING)


def _read(path: str) -> bytes:
    """A regular file of bounded size, opened so that nothing planted in its place can hold us up."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            msg = "not a regular file"
            raise ValueError(msg)
        data = os.read(fd, _BYTES_MAX + 1)
    finally:
        os.close(fd)
    if len(data) > _BYTES_MAX or b"\0" in data:
        msg = "too large, or it holds a NUL"
        raise ValueError(msg)
    return data
