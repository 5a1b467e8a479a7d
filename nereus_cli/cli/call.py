"""One call of the program, as typed: the verb, its options, the command behind ``--``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from nereus_cli.cli.exits import Failure, usage
from nereus_cli.cli.options import Verb

Given = Mapping[str, Sequence[str] | bool]
_DIGITS_MAX = 18


class Call:
    """What handlers ask. Text is normalised to what the bytes spell in UTF-8, so that no locale changes a hash."""

    def __init__(
        self,
        verb: Verb,
        given: Given,
        *,
        argv: Sequence[str],
        tail: Sequence[str] | None = None,
        umask: int = 0o022,
    ) -> None:
        """``argv`` is the whole line, for repeating it; ``tail`` what followed the first ``--``."""
        self.verb = verb
        self.argv = tuple(argv)
        self.tail = None if tail is None else tuple(map(os.fsencode, tail))
        self.umask = umask
        self.prepare = False
        self.status: int | None = None
        self._given = given

    @property
    def json(self) -> bool:
        """Machine output."""
        return self.flag("json")

    def flag(self, name: str) -> bool:
        """Whether a flag was given."""
        return bool(self._given.get(name))

    def given(self) -> set[str]:
        """The names of all options that were given."""
        return {name for name, value in self._given.items() if value}

    def words(self, name: str) -> list[bytes]:
        """Every value of an option, as bytes."""
        values = self._given.get(name) or ()
        return [] if isinstance(values, bool) else [os.fsencode(value) for value in values]

    def raw(self, name: str) -> bytes | None:
        """The value of an option, as bytes."""
        values = self.words(name)
        if len(values) > 1:
            raise usage(f"--{name} was given {len(values)} times", field=name)
        return values[0] if values else None

    def text(self, name: str) -> str | None:
        """The value of an option, as text."""
        value = self.raw(name)
        return None if value is None else _text(value, name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Every value of an option, as text."""
        return tuple(_text(value, name) for value in self.words(name))

    def whole(self, name: str, *, least: int | None = None) -> int | None:
        """The value of an option, as a whole number."""
        value = self.text(name)
        if value is None:
            return None
        digits = value.removeprefix("-")
        if not digits.isascii() or not digits.isdigit() or len(digits) > _DIGITS_MAX:
            raise usage(f"--{name} takes a whole number", field=name)
        if least is not None and int(value) < least:
            raise usage(f"--{name} takes a whole number, {least} or more", field=name)
        return int(value)

    def duration(self, name: str) -> int | None:
        """The value of an option, in nanoseconds."""
        value = self.text(name)
        if value is None:
            return None
        from nereus_cli.wish.duration import parse_duration
        from nereus_cli.wish.refusal import Refusal

        try:
            return parse_duration(value)
        except Refusal as refusal:
            raise usage(f"--{name}: {refusal.message}", field=name) from None

    def store_path(self) -> str:
        """Where the store is; raises a Failure for engines that this version does not have."""
        path = self.raw("store")
        if path is not None and not path:
            raise usage("--store takes a directory", field="store")
        path = path or os.environb.get(b"NEREUS_STORE") or _default_store()
        if b"://" in path:
            scheme = path.partition(b":")[0].decode("ascii", "replace")
            raise Failure("UNSAFE", f"no engine for {scheme}: stores is installed: a missing extra", 78)
        return os.fsdecode(path)

    def stated_store(self) -> str | None:
        """The store that this line names, if it names one: a line to be pasted has to name it too."""
        return None if self.raw("store") is None else self.store_path()


def _text(value: bytes, name: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise usage(f"--{name}: not UTF-8", field=name) from None


def _default_store() -> bytes:
    from platformdirs import user_state_dir

    return os.fsencode(user_state_dir("nereus", appauthor=False))
