"""Seeded, structure-aware damage: bits, lengths at their extremes, cuts, splices of valid samples, tokens that mean
something to the format. The same seed gives the same inputs on every Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

Seal = Callable[[bytearray], object]
"""Makes outer checksums true again, in place, so that what lies behind them is reached."""

_INPUT_BYTES_MAX: Final = 8_192
_SEALED: Final = 0.8
_EXTREMES: Final = (0, 1, 0x7F, 0x80, 0xFE, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_WIDE: Final = (*_EXTREMES, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)

MSGPACK_TOKENS: Final = (
    b"\xc0", b"\xc1", b"\xc2", b"\xc3", b"\x80", b"\x90", b"\xa0", b"\xff", b"\xa1\xff", b"\xc4\x00",
    b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff",
    b"\xdc\xff\xff", b"\xde\xff\xff", b"\xda\xff\xff", b"\xc9\xff\xff\xff\xff\x00", b"\xd6\xff\0\0\0\0",
    b"\xcf" + b"\xff" * 8, b"\xd3\x80" + bytes(7), b"\xcb\x7f\xf8" + bytes(6), b"\xcb\xff\xf0" + bytes(6),
    b"\x91" * 40, b"\x81\xa1a" * 40, b"\x91" * 3_000, b"\x81\xa1a" * 1_500, b"\xa3\xed\xa0\x80",
)  # fmt: skip
JSON_TOKENS: Final = (
    b"[", b"]", b"{", b"}", b'"', b",", b":", b"null", b"true", b"-0", b"1e999", b"-1e-999", b"9" * 400, b"0.1",
    b'"\\ud800"', b'"\\u0000"', b'"\xff"', b"[" * 3_000, b'{"a":' * 700, b"\xef\xbb\xbf", b'"v":[[[[', b"/**/",
)  # fmt: skip
TEXT_TOKENS: Final = (
    b"-1", b"0", b"9" * 30, b"9" * 5_000, b"1_0", b" ", b"\n", b"\0", b"\xff", b"\xd9\xa3", b"0x10", b"nan", b"1e9",
    b"ENDED", b"STARTED", b"NOSTART", b"HEAD", b"TAKEN", b"start", b"stop", b"drain",
)  # fmt: skip


class Mutator:
    """Inputs made of ``samples``; ``tokens`` are what the format takes for more than bytes."""

    def __init__(
        self, rng: random.Random, samples: Sequence[bytes], tokens: Sequence[bytes], seal: Seal | None = None
    ) -> None:
        self._float = rng.random
        self._bits = rng.getrandbits
        self._samples = samples
        self._tokens = tokens
        self._seal = seal
        self._ways = (
            *(self._flip, self._byte, self._number, self._cut, self._token, self._splice, self._double),
            *(self._delete, self._flip, self._byte, self._number, self._over),
        )

    def made(self) -> bytes:
        """One more input."""
        one = self._float
        data = bytearray(self._samples[int(one() * len(self._samples))])
        while True:
            if data:
                self._ways[int(one() * len(self._ways))](data, int(one() * len(data)))
            if one() < 0.6:
                break
        del data[_INPUT_BYTES_MAX:]
        if self._seal is not None and one() < _SEALED:
            self._seal(data)
        return bytes(data)

    def _flip(self, data: bytearray, at: int) -> None:
        data[at] ^= 1 << self._bits(3)

    def _byte(self, data: bytearray, at: int) -> None:
        data[at] = self._bits(8)

    def _number(self, data: bytearray, at: int) -> None:
        width = 1 << self._bits(2)
        number = _WIDE[int(self._float() * len(_WIDE))] & ((1 << 8 * width) - 1)
        data[at : at + width] = number.to_bytes(width, "big" if self._float() < 0.5 else "little")

    def _cut(self, data: bytearray, at: int) -> None:
        del data[at:]

    def _delete(self, data: bytearray, at: int) -> None:
        del data[at : at + 1 + self._bits(4)]

    def _double(self, data: bytearray, at: int) -> None:
        data[at:at] = data[at : at + 1 + self._bits(6)]

    def _token(self, data: bytearray, at: int) -> None:
        data[at:at] = self._tokens[int(self._float() * len(self._tokens))]

    def _over(self, data: bytearray, at: int) -> None:
        token = self._tokens[int(self._float() * len(self._tokens))]
        data[at : at + 1] = token

    def _splice(self, data: bytearray, at: int) -> None:
        other = self._samples[int(self._float() * len(self._samples))]
        data[at:] = other[int(self._float() * len(other)) :]
