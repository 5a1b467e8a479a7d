"""The first look at an argument vector: which verb, which store, and where the command behind ``--`` begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from nereus_cli.cli.exits import usage
from nereus_cli.cli.options import Verb
from nereus_cli.cli.verbs import BY_NAME, EVERY, LATER_VERBS, PREPARABLE

HELP: Final = "--help"
_HELP_SHORT: Final = "-h"
_VERSION: Final = "--version"
_HELP_VERB: Final = "help"
# What people try first who come from elsewhere.
_MEANT: Final = {
    "add": "schedule",
    "at": "schedule",
    "daemon": "run",
    "delete": "cancel",
    "kill": "stop",
    "log": "logs",
    "ls": "list",
    "ps": "list",
    "remove": "cancel",
    "rm": "cancel",
    "start": "run",
}


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
    moved = _before_the_verb(words)
    if not words:
        raise usage("a verb is missing; nereus --help lists them")
    name = words.pop(0)
    if name == _HELP_VERB:
        return split([*_topic(words), HELP])
    verb = BY_NAME.get(name)
    if verb is None:
        raise usage(f"no such verb: {name}; {_instead(name)}")
    prepare = verb.name == "prepare" and words[:1] not in ([HELP], [_HELP_SHORT])
    if prepare:
        verb = _prepared_verb(words, moved)
    elif verb.subverbs:
        verb = _subverb(verb, words, moved)
    if verb.command and "--" in words:
        place = words.index("--")
        words, tail = words[:place], words[place + 1 :]
    return Split(verb, [*moved, *words], tail, prepare)


def _before_the_verb(words: list[str]) -> list[str]:
    """Takes the global options off the front."""
    moved: list[str] = []
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in (HELP, _HELP_SHORT, _VERSION):
            if word == _VERSION:
                raise Help(_version())
            from nereus_cli.cli.parser import overview

            raise Help(overview())
        if word == "--store":
            if not words:
                raise usage("--store takes a directory", field="store")
            moved += [word, words.pop(0)]
        elif word == "--json" or word.startswith("--store="):
            moved.append(word)
        else:
            raise usage(f"no such option before the verb: {word}")
    return moved


def _prepared_verb(words: list[str], moved: list[str]) -> Verb:
    """The verb that ``prepare`` prepares: named right behind it, else ``schedule``."""
    _global_options(words, moved)
    named = {name.partition(" ")[0] for name in PREPARABLE}
    verb = BY_NAME[words.pop(0)] if words and words[0] in named else BY_NAME["schedule"]
    if verb.subverbs:
        verb = _subverb(verb, words, moved)
        if verb.name not in PREPARABLE and words[:1] not in ([HELP], [_HELP_SHORT]):
            raise usage(f"{verb.name} only looks: there is nothing to prepare")
    return verb


def _subverb(verb: Verb, words: list[str], moved: list[str]) -> Verb:
    """The sub-verb that comes next, or the verb itself where it may stand alone; raises a usage Failure."""
    _global_options(words, moved)
    word = words[0] if words else ""
    for one in verb.subverbs:
        if one.name == f"{verb.name} {word}":
            words.pop(0)
            return one
    if word in (HELP, _HELP_SHORT) or (verb.handler and (not word or word.startswith("-"))):
        return verb
    names = ", ".join(one.name.removeprefix(f"{verb.name} ") for one in verb.subverbs)
    said = f"no such verb: {verb.name} {word}" if word and not word.startswith("-") else "a verb is missing"
    raise usage(f"{said}; nereus {verb.name} takes {names}")


def _global_options(words: list[str], moved: list[str]) -> None:
    """Takes the options that may stand anywhere off the front."""
    while words and (words[0] == "--json" or words[0].startswith("--store=") or words[:-1][:1] == ["--store"]):
        moved.append(words.pop(0))
        if moved[-1] == "--store":
            moved.append(words.pop(0))


def _topic(words: list[str]) -> list[str]:
    """What ``help`` was asked about: a verb, or both words of a sub-verb."""
    return words[:2] if " ".join(words[:2]) in {verb.name for verb in EVERY} else words[:1]


def _instead(name: str) -> str:
    """What to do about a verb that there is not."""
    if name in LATER_VERBS:
        return "it is not in this version"
    from difflib import get_close_matches

    meant = _MEANT.get(name) or next(iter(get_close_matches(name, BY_NAME, 1)), None)
    return f"did you mean {meant}? nereus --help lists them" if meant else "nereus --help lists them"


def _version() -> str:
    from nereus_cli import __version__

    return f"nereus {__version__}"
