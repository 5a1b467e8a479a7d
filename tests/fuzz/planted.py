"""Decoders that are wrong on purpose: what the harness must notice, each in its own way."""

from __future__ import annotations

import pickle
from typing import Final

from tests.fuzz.target import Target

_SAMPLES: Final = (b"abcdef", b"0123456789")


class RefusedError(Exception):
    """The one exception that these document."""


def _raises(data: bytes) -> str:
    if data[:1] == b"\0":
        raise RefusedError
    if b"\xff" in data:
        raise KeyError(data)
    return ""


def _differs(data: bytes) -> str:
    return "not as it was read" if len(data) % 7 == 3 else ""


def _recurses(data: bytes) -> str:
    return _recurses(data) if data[:1] == b"\1" else ""


def _swells(data: bytes) -> str:
    return "" if len(bytes(4 << 20)) > len(data) else "never"


def _loads(data: bytes) -> str:
    kind = pickle.loads(b"\x80\x04ccollections\nOrderedDict\n.")  # noqa: S301 -- what must be heard
    return "" if kind and data is not None else "never"


def _sound(data: bytes) -> str:
    if not data:
        raise RefusedError
    return ""


def _one(name: str) -> tuple[Target, ...]:
    run = globals()[f"_{name}"]
    return (Target(name=name, samples=_SAMPLES, tokens=(b"\xff", b"\1"), run=run, allowed=(RefusedError,)),)


RAISES: Final = _one("raises")
DIFFERS: Final = _one("differs")
RECURSES: Final = _one("recurses")
SWELLS: Final = _one("swells")
LOADS: Final = _one("loads")
SOUND: Final = _one("sound")
