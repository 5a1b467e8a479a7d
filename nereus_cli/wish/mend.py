"""What someone may have meant: rewrites of a refused text, for its message only. Nothing is ever resolved through them.

A rewrite is shown only after the strict reader has accepted it, so this may be as generous as it likes.
"""

import re
from collections.abc import Iterator
from typing import Final

_UNIT_WORDS: Final = (
    (r"weeks?|wks?", "w"),
    (r"days?", "d"),
    (r"hours?|hrs?", "h"),
    (r"minutes?|mins?", "m"),
    (r"milliseconds?|millis|msecs?", "ms"),
    (r"microseconds?|micros|usecs?", "us"),
    (r"nanoseconds?|nanos|nsecs?", "ns"),
    (r"seconds?|secs?", "s"),
)

_LOOSE_STAMP: Final = (
    r"(\d{4})(?:([-/.])(\d\d?)\2(\d\d?)|(\d\d)(\d\d))(?:[T\s_,]+(\d\d?)[:.]?(\d\d)(?:[:.]?(\d\d))?(?:[.,](\d{1,9})\d*)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d\d?(?::?\d\d)?)?\s*(\[[^\]]*\])?"
)


def duration_rewrites(text: str) -> Iterator[str]:
    """Yield the text without spaces and signs, in the right case, with unit words and decimal commas replaced."""
    plain = re.sub(r"\b(?:in|and)\b|[\s_+&]+", "", text.replace("\u00b5", "u").replace("\u03bc", "u"))
    plain = plain.replace(",", ".")
    yield plain
    if plain[:1] in {"p", "P"}:
        yield plain.upper()
    # An upper-case M is as likely a month: no rewrite makes minutes of it unless another unit shows what is meant.
    if not re.fullmatch(r"[0-9.]+M", plain):
        lower = plain.lower()
        yield lower
        for words, unit in _UNIT_WORDS:
            lower = re.sub(rf"(?<=[0-9])(?:{words})(?![a-z])", unit, lower)
        yield lower
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", plain):
        yield plain + "s"


def stamp_rewrites(text: str) -> Iterator[str]:
    """Yield a date and time, year first, in the one punctuation that is read; a bare number as a Unix time."""
    if re.fullmatch(r"\s*-?[0-9]{9,10}(?:\.[0-9]{1,9})?\s*", text):
        yield f"@{text.strip()}"
    if re.fullmatch(r"\s*[0-9]{13}\s*", text):
        yield f"@{text.strip()[:-3]}.{text.strip()[-3:]}"
    match = re.fullmatch(_LOOSE_STAMP, text.strip(), re.ASCII | re.IGNORECASE)
    if match is None:
        return
    year, _, month, day, basic_month, basic_day, hour, minute, second, fraction, offset, suffix = match.groups()
    date = f"{year}-{month or basic_month:0>2}-{day or basic_day:0>2}"
    if hour is None:
        yield f"{date}T09:00:00{_offset(offset)}{suffix or ''}"
        return
    seconds = "" if second is None else f":{second}" + ("" if fraction is None else f".{fraction}")
    yield f"{date}T{hour:0>2}:{minute}{seconds}{_offset(offset)}{suffix or ''}"


def _offset(said: str | None) -> str:
    if said is None:
        return ""
    if said[0] not in "+-":
        return "Z"
    digits = said[1:].replace(":", "")
    hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > len("00") else (digits, "00")
    return f"{said[0]}{hours:0>2}:{minutes}"
