"""The answer to a text that has no single meaning: a code, one clear line, and the readings it could have had."""

from typing import Final, Literal, NamedTuple

Code = Literal["MALFORMED", "NO_ZONE", "UNKNOWN_ZONE", "GAP", "FOLD", "OFFSET_MISMATCH", "TOO_FAR"]

_QUOTED_MAX: Final = 60


class Candidate(NamedTuple):
    """One way to read a text: the rule that chooses it, the instant (ns since the epoch), how to write just that."""

    rule: str
    instant_ns: int
    text: str


class Refusal(Exception):  # noqa: N818 - it is an answer about a text, not a fault of the program
    """The text was not understood in exactly one way.

    `code` is stable and meant for programs; `message` is one printable ASCII line that names the nearest valid form;
    `candidates` are in order of time where there are several (GAP, FOLD), else empty or by rule (OFFSET_MISMATCH).
    """

    def __init__(self, code: Code, message: str, candidates: tuple[Candidate, ...] = ()) -> None:
        """Keep all three; the exception's `args` hold them too, so that it survives copying between processes."""
        super().__init__(code, message, candidates)
        self.code: Final = code
        self.message: Final = message
        self.candidates: Final = candidates

    def __str__(self) -> str:
        """Return the one line."""
        return self.message


def quoted(text: str) -> str:
    """Return `text` between quotes, cut to a readable length, with everything that is not printable ASCII escaped."""
    cut = text if len(text) <= _QUOTED_MAX else text[:_QUOTED_MAX] + "..."
    return '"' + ascii(cut)[1:-1] + '"'
