"""Turn a start into a child: standard streams, environment, session, exec.

An error here means that nothing was exec'ed, with one word for where: ``request``, ``door``, ``evidence``, ``cwd``,
``stdin``, ``pipe``, ``spawn`` (no process or memory) or ``exec`` (the kernel's answer to exec). The executable is
searched in the child's own PATH; a file the kernel cannot execute, such as a script without ``#!``, is ENOEXEC.
"""

import errno
import os
import subprocess
from typing import NamedTuple

from nereus_cli.keeper.descriptors import Descriptors
from nereus_cli.keeper.wire import Start


class Child(NamedTuple):
    """A child that was exec'ed, and the reading ends of its output."""

    pid: int
    stdout: int
    stderr: int


class NotStartedError(Exception):
    """Never exec'ed, for certain."""

    def __init__(self, number: int, what: str) -> None:
        super().__init__(number, what)
        self.number = number
        self.what = what


def spawn(start: Start, null: int, place: int, descriptors: Descriptors) -> Child:
    """Start the child; ``place`` is a directory for a standard input that must be a file. Raises NotStartedError."""
    opened: list[int] = []
    try:
        stdin = null if start.stdin is None else _stdin(start.stdin, place, opened)
        try:
            out_read, out_write = _pipe(opened)
            err_read, err_write = _pipe(opened)
        except OSError as failed:
            raise NotStartedError(failed.errno or errno.EMFILE, "pipe") from None
        pid = _execute(start, (stdin, out_write, err_write), descriptors)
        opened.remove(out_read)
        opened.remove(err_read)
        return Child(pid, out_read, err_read)
    finally:
        for fd in opened:
            os.close(fd)


def _pipe(opened: list[int]) -> tuple[int, int]:
    reading, writing = os.pipe()
    opened += (reading, writing)
    return reading, writing


def _stdin(data: bytes, place: int, opened: list[int]) -> int:
    """A file, not a pipe: writing it can block nobody, and the child may seek in it."""
    try:
        fd = _unnamed(place)
        opened.append(fd)
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError as failed:
        raise NotStartedError(failed.errno or errno.EIO, "stdin") from None
    return fd


def _unnamed(place: int) -> int:
    memory_file = getattr(os, "memfd_create", None)
    if memory_file is not None:
        return int(memory_file("stdin"))
    name = f"stdin.{os.getpid()}"
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=place)
    os.unlink(name, dir_fd=place)
    return fd


def _execute(start: Start, streams: tuple[int, int, int], descriptors: Descriptors) -> int:
    if not start.argv[0]:
        raise NotStartedError(errno.ENOENT, "exec")
    stdin, stdout, stderr = streams
    try:
        # Every descriptor of ours is closed by exec, so there is none to close beforehand.
        with descriptors.as_inherited():
            child = subprocess.Popen(
                start.argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=start.cwd,
                env=start.env,
                umask=start.umask,
                start_new_session=True,
                close_fds=False,
            )
    except OSError as failed:
        raise NotStartedError(failed.errno or errno.EIO, _where(failed, start)) from None
    except (ValueError, subprocess.SubprocessError):
        raise NotStartedError(errno.EINVAL, "spawn") from None
    # The keeper reaps by wait4; Popen must believe that this is done.
    child.returncode = 0
    return child.pid


def _where(failed: OSError, start: Start) -> str:
    if failed.filename == start.cwd:
        return "cwd"
    return "spawn" if failed.filename is None else "exec"
