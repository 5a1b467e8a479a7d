"""Through which mount a file is seen. A file system that was mounted anew within one boot may have lost whatever was
never synced, although its files are on the same device under the same inodes.

The keeper, which imports nothing of ours, has the same in keeper/mounted.py; a test holds the two together."""

from __future__ import annotations

import sys
from typing import Final

_EMPTY_PATH: Final = 0x1000
_UNIQUE_MOUNT: Final = 0x4000
_STATX_BYTES: Final = 256
_MASK: Final = slice(0, 4)
_MOUNT: Final = slice(144, 152)


def mount_of(fd: int) -> int:
    """A number that no other mount has in this boot; 0 where the system has none (Linux before 6.8, others)."""
    try:
        import ctypes

        statx = ctypes.CDLL(None).statx
    except (ImportError, OSError, AttributeError):
        return 0
    found = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(fd, b"", _EMPTY_PATH, _UNIQUE_MOUNT, found) != 0:
        return 0
    known = int.from_bytes(found.raw[_MASK], sys.byteorder) & _UNIQUE_MOUNT
    return int.from_bytes(found.raw[_MOUNT], sys.byteorder) if known else 0
