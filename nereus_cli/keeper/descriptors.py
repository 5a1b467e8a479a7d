"""The limit on open files: high for the keeper, which holds two pipes a child, as it was for the children.

The number of a new descriptor must lie below the limit. A spawn needs two for a moment, so two low numbers are kept
in reserve; while they are free the limit can be what the children are to inherit.
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from os import close, dup

OPEN_FILES_MAX = 1 << 16


class Descriptors:
    """Made early, while low numbers are free. ``spare`` is any open descriptor that may be duplicated."""

    def __init__(self, spare: int) -> None:
        self._spare = spare
        self._reserve = [dup(spare), dup(spare)]
        self._inherited = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._raised = self._raise()

    def _raise(self) -> tuple[int, int] | None:
        soft, hard = self._inherited
        wanted = OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_MAX)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return None
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return None
        return wanted, hard

    @contextmanager
    def as_inherited(self) -> Iterator[None]:
        """While a child is made: the limit it is to have, and two free numbers below it."""
        if self._raised is None:
            yield
            return
        while self._reserve:
            close(self._reserve.pop())
        resource.setrlimit(resource.RLIMIT_NOFILE, self._inherited)
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, self._raised)
            self._reserve = [dup(self._spare), dup(self._spare)]
