"""What a mutant is: one line of defence taken out of a copy of the program, and the tests that must miss it."""

from __future__ import annotations

import msgspec

Edit = tuple[str, str]


class Mutant(msgspec.Struct, frozen=True):
    """``old`` stands once in ``file`` (below nereus_cli) and becomes ``new``; so do the pairs in ``also``. ``why``
    says what breaks without it, with the invariant. ``killers`` are tests that exist for their own sake, the
    quickest first: pytest node ids below tests/, the last part may name one parameter."""

    name: str
    file: str
    old: str
    new: str
    why: str
    killers: tuple[str, ...]
    also: tuple[Edit, ...] = ()

    def applied(self, text: str) -> str:
        """The text of the broken file. ValueError for one that does not hold each old text exactly once."""
        for old, new in ((self.old, self.new), *self.also):
            if text.count(old) != 1 or old == new:
                raise ValueError(f"{self.name}: {text.count(old)} places in {self.file} read {old!r}")
            text = text.replace(old, new)
        return text
