"""What a keeper could not tell anybody else: a few lines on standard error, which is ``keeper.log``."""

import os
import time

LOG_BYTES_MAX = 256 << 10

_written = 0


def note(what: object) -> None:
    """One line with the time; silent once this process has written its share, or cannot write."""
    global _written  # noqa: PLW0603 - the bound is the process's, like standard error
    detail = f"{type(what).__name__}: {what}" if isinstance(what, BaseException) else str(what)
    text = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} [{os.getpid()}] {detail}\n"
    data = text.encode("utf-8", "backslashreplace")
    if _written + len(data) > LOG_BYTES_MAX:
        return
    _written += len(data)
    try:
        os.write(2, data)
    except OSError:
        return


def open_log(directory: int) -> int:
    """The log for appending, emptied if earlier keepers have filled it. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open("keeper.log", flags, 0o600, dir_fd=directory)
    if os.fstat(fd).st_size > LOG_BYTES_MAX:
        os.ftruncate(fd, 0)
    return fd
