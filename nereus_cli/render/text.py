"""What comes from outside, made fit to be shown: no control character reaches a terminal, no byte is lost in JSON."""

from __future__ import annotations

from typing import Final

_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SECRET: Final = ("TOKEN", "SECRET", "PASSW", "PASSPHRASE", "KEY", "CREDENTIAL", "PRIVATE", "AUTH")
_BYTE: Final = 0xDC00
_LATIN: Final = 0x100
_PLANE: Final = 0x10000
MASK: Final = "***"


def visible(text: str) -> str:
    """One line without control, bidirectional or unassigned characters: those are written as escapes."""
    return text if text.isprintable() else "".join(map(_visible, text))


def visible_lines(text: str) -> str:
    """As ``visible``, but lines and tabs stay."""
    return "".join(c if c in "\n\t" else _visible(c) for c in text)


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    if _BYTE <= number < _BYTE + _LATIN:
        number -= _BYTE
    if number < _LATIN:
        return _SHORT.get(character, f"\\x{number:02x}")
    return f"\\u{number:04x}" if number < _PLANE else f"\\U{number:08x}"


def from_bytes(data: bytes) -> object:
    """Text where it is UTF-8, else ``{"b64": …}``: nothing is lost."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"b64": b64encode(data).decode("ascii")}


def shell_word(data: bytes) -> str:
    """One word that a shell reads back as exactly these bytes, made of printable characters only."""
    if data and _PLAIN.issuperset(data):
        return data.decode("ascii")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _ansi(data)
    if not text.isprintable():
        return _ansi(data)
    return "'" + text.replace("'", "'\"'\"'") + "'"


def shell_line(words: tuple[bytes, ...] | list[bytes]) -> str:
    """A line that can be pasted into a shell."""
    return " ".join(map(shell_word, words))


def _ansi(data: bytes) -> str:
    safe = _PLAIN | {0x20}
    return "$'" + "".join(chr(byte) if byte in safe else f"\\{byte:03o}" for byte in data) + "'"


def looks_secret(name: bytes) -> bool:
    """Whether an environment variable of this name is better not shown."""
    upper = name.upper().decode("ascii", "replace")
    return any(part in upper for part in _SECRET)


def ascii_json(data: bytes) -> bytes:
    """The same JSON in printable ASCII: what is beyond it stands in strings only, and is written as escapes."""
    if data.isascii() and b"\x7f" not in data:
        return data
    return "".join(c if c < "\x7f" else _json_escape(ord(c)) for c in data.decode()).encode("ascii")


def _json_escape(number: int) -> str:
    if number < _PLANE:
        return f"\\u{number:04x}"
    number -= _PLANE
    return f"\\u{0xD800 + (number >> 10):04x}\\u{_BYTE + (number & 0x3FF):04x}"
