"""Whether a store may be trusted: whoever can write it can run commands as the daemon, so it is judged like
the directory of somebody's ssh keys."""

from __future__ import annotations

import os
import stat

from nereus_cli.disk import is_directory, stands
from nereus_cli.domain.records import Permission

STORE_MODE = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class UnsafeError(Exception):
    """Others could write here. The path and what is wrong with it are in the message."""


class ForeignError(Exception):
    """It belongs to somebody else."""


def judge(path: str) -> Permission:
    """What allows this process to use the store at ``path``, or raises UnsafeError or ForeignError.

    The directory must belong to this user and be closed to everybody else; every ancestor must belong to this
    user or root and be writable by nobody else, unless it is sticky."""
    uid = os.geteuid()
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(20, "not a directory", path)
    if found.st_uid != uid:
        msg = f"the store {path} belongs to uid {found.st_uid}, not to uid {uid}"
        raise ForeignError(msg)
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        msg = f"the store {path} has mode {mode:04o}: others may enter or write; chmod 700 it"
        raise UnsafeError(msg)
    _judge_ancestors(os.path.realpath(path), uid)
    return permission(mode)


def judge_place(path: str) -> None:
    """As ``judge`` for what is above a store that is yet to be made, so that a refusal leaves nothing behind."""
    if stands(path):
        return
    above = os.path.dirname(path)
    while not stands(above):
        above = os.path.dirname(above)
    if is_directory(above):
        _judge_ancestors(os.path.join(os.path.realpath(above), os.path.basename(path)), os.geteuid())


def permission(mode: int) -> Permission:
    """What allows its owner to use a store of that mode, recorded with every command."""
    return Permission("store-owner", os.geteuid(), sudo_uid=_sudo_uid(), store_mode=mode)


def _judge_ancestors(path: str, uid: int) -> None:
    while path != (parent := os.path.dirname(path)):
        path = parent
        found = os.stat(path)
        mode = stat.S_IMODE(found.st_mode)
        if found.st_uid not in (uid, 0):
            msg = f"{path}, above the store, belongs to uid {found.st_uid}"
            raise UnsafeError(msg)
        if mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:
            msg = f"{path}, above the store, has mode {mode:04o}: others could replace what is in it"
            raise UnsafeError(msg)


def _sudo_uid() -> int | None:
    text = os.environ.get("SUDO_UID", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None  # noqa: PLR2004 -- digits of a uid
