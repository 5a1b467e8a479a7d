r"""Checked lines: the one form in which a keeper says anything, on disk and to a daemon.

``CRC32 WORD WORD…\n``: eight hexadecimal digits over the rest, words of printable ASCII without spaces. A line
that is torn, zeroed or glued to another fails its check and is skipped by whoever reads.
"""

from binascii import crc32


def line(*words: object) -> bytes:
    """One checked line of these words."""
    body = " ".join(map(str, words)).encode("ascii", "backslashreplace")
    return b"%08x %s\n" % (crc32(body), body)
