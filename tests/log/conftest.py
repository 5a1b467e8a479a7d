"""What the tests of the log leave open is closed behind them: a log that crashed on purpose never closes itself."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator

import pytest


def descriptors() -> set[int]:
    """Those that are open now."""
    return {int(name) for name in os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd")}


@pytest.fixture(autouse=True)
def _leave_nothing_open() -> Iterator[None]:
    before = descriptors()
    yield
    gc.collect()
    for fd in descriptors() - before:
        with contextlib.suppress(OSError):
            os.close(fd)
