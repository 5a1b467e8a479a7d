"""Descendants that left their group: found because the keeper is who orphans come to.

A process that comes to the keeper is its unreaped child: its pid cannot become another's until the keeper reaps it,
so it may be signalled. One whose parent still lives comes when that parent has been killed; hence callers ask again
until nothing is left. Linux only; elsewhere the answer is that it is not known.
"""

import os
from collections.abc import Container

_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Have orphaned descendants come to this process; False where the system has no such thing."""
    if os.uname().sysname != "Linux":
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def strays(attempt_id: str, leader: int, others: Container[int]) -> list[int]:
    """The live children of this process that belong to an attempt whose leader is reaped.

    They are told by the leader's group or session, or by NEREUS_ATTEMPT_ID in their environment. ``others`` are
    the leaders of other attempts: one of those may by now have the number that the leader had."""
    mark = b"NEREUS_ATTEMPT_ID=" + attempt_id.encode("ascii")
    reused = leader in others
    found = []
    for pid in _own_children():
        if pid in others:
            continue
        words = _stat(pid)
        if words is None or words[0] in {b"Z", b"X"}:
            continue
        related = not reused and leader in {int(words[2]), int(words[3])}
        if related or mark in _read(f"/proc/{pid}/environ").split(b"\0"):
            found.append(pid)
    return found


def _own_children() -> list[int]:
    try:
        tasks = os.listdir("/proc/self/task")
    except OSError:
        return []
    listed = [_children(f"/proc/self/task/{task}/children") for task in tasks]
    if None not in listed:
        return [pid for pids in listed if pids is not None for pid in pids]
    me = str(os.getpid()).encode()
    every = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in every if (words := _stat(pid)) is not None and words[1] == me]


def _children(path: str) -> list[int] | None:
    try:
        with open(path, "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return None


def _stat(pid: int) -> list[bytes] | None:
    """State, parent, group, session and what follows; None if it is gone."""
    text = _read(f"/proc/{pid}/stat")
    return text.rpartition(b")")[2].split() or None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
