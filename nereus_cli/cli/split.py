"""The first look at an argument vector: which verb, which store, and where the command behind ``--`` begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from nereus_cli.cli.exits import usage
from nereus_cli.cli.options import Verb
from nereus_cli.cli.verbs import BY_NAME, LATER_VERBS, PREPARABLE

HELP: Final = "--help"
_HELP_SHORT: Final = "-h"
_VERSION: Final = "--version"


class Help(Exception):  # noqa: N818 -- the way out of a parser that was asked for help
    """Somebody asked for help: the text."""


class Split(msgspec.Struct):
    """An argument vector taken apart: global options are moved behind the verb, the command behind ``--`` aside."""

    verb: Verb
    words: list[str]
    tail: list[str] | None
    prepare: bool = False


def split(argv: Sequence[str]) -> Split:
    """Finds the verb and the command; raises Help or a usage Failure."""
    words, tail = list(argv), None
    moved: list[str] = []
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in (HELP, _HELP_SHORT, _VERSION):
            if word == _VERSION:
                raise Help(_version())
            from nereus_cli.cli.parser import overview

            raise Help(overview())
        if word == "--store" and words:
            moved += [word, words.pop(0)]
        elif word == "--json" or word.startswith("--store="):
            moved.append(word)
        else:
            raise usage(f"no such option before the verb: {word}")
    if not words:
        raise usage("a verb is missing; nereus --help lists them")
    name = words.pop(0)
    verb = BY_NAME.get(name)
    if verb is None:
        later = "; it is not in this version" if name in LATER_VERBS else "; nereus --help lists them"
        raise usage(f"no such verb: {name}{later}")
    prepare = verb.name == "prepare" and words[:1] not in ([HELP], [_HELP_SHORT])
    if prepare:
        verb = _prepared_verb(words, moved)
    if verb.command and "--" in words:
        place = words.index("--")
        words, tail = words[:place], words[place + 1 :]
    return Split(verb, [*moved, *words], tail, prepare)


def _prepared_verb(words: list[str], moved: list[str]) -> Verb:
    """The verb that ``prepare`` prepares: named right behind it, else ``schedule``."""
    while words[:1] == ["--json"] or (words[:1] == ["--store"] and len(words) > 1):
        moved.append(words.pop(0))
        if moved[-1] == "--store":
            moved.append(words.pop(0))
    return BY_NAME[words.pop(0)] if words and words[0] in PREPARABLE else BY_NAME["schedule"]


def _version() -> str:
    from nereus_cli import __version__

    return f"nereus {__version__}"
