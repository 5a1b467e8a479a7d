"""Whether a working directory answers, asked before the spawn.

A spawn stops the keeper until the child has called exec, and a directory on a dead network mount would stop it there
for ever. So another thread asks first; if it gets no answer in time, that directory is refused while it hangs.
"""

import errno
import os
import stat
from threading import Event, Thread

from nereus_cli.keeper.clock import SECOND, boot_ns
from nereus_cli.keeper.spawn import NotStartedError

ANSWER_WITHIN_S = 2.0
TRUSTED_FOR_NS = SECOND
REMEMBERED_MAX = 256


class Folders:
    """Remembers for a second what answered, and for as long as it lasts what did not."""

    def __init__(self) -> None:
        self._good_until: dict[bytes, int] = {}
        self._asked: dict[bytes, _Question] = {}

    def require(self, path: bytes) -> None:
        """Raises NotStartedError if nothing can start in this directory. Takes at most ``ANSWER_WITHIN_S``."""
        now = boot_ns()
        if self._good_until.get(path, 0) > now:
            return
        stuck = self._asked.get(path)
        question = stuck or _Question(path)
        if not question.answered.wait(0 if stuck else ANSWER_WITHIN_S):
            self._asked[path] = question
            raise NotStartedError(errno.ETIMEDOUT, "cwd")
        self._asked.pop(path, None)
        if question.failed:
            raise NotStartedError(question.failed, "cwd")
        if len(self._good_until) >= REMEMBERED_MAX:
            self._good_until.clear()
        self._good_until[path] = now + TRUSTED_FOR_NS


class _Question:
    """One look at one directory, by a thread of its own."""

    def __init__(self, path: bytes) -> None:
        self.answered = Event()
        self.failed = 0
        self._path = path
        try:
            Thread(target=self._ask, daemon=True).start()
        except RuntimeError:
            self.failed = errno.EAGAIN
            self.answered.set()

    def _ask(self) -> None:
        try:
            if not stat.S_ISDIR(os.stat(self._path).st_mode):
                self.failed = errno.ENOTDIR
        except OSError as failed:
            self.failed = failed.errno or errno.EIO
        finally:
            self.answered.set()
