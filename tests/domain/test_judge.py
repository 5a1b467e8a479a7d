"""The shell's outcome table, written out by hand from the design."""

from __future__ import annotations

import msgspec
import pytest

from nereus_cli.domain.judge import SHELL_TABLE, Happened, exited, judge
from nereus_cli.domain.records import Shell

PLAIN = Shell((b"x",))
SCRIPT = Shell(script=b"x")

DESIGN = """
NOT_STARTABLE      NOT_PUBLISHED  NOT_SENT  PERMANENT  NOT_STARTABLE
NO_RESOURCES       NOT_PUBLISHED  NOT_SENT  RETRIABLE  NO_RESOURCES
DOOR_CLOSED        NOT_PUBLISHED  NOT_SENT  RETRIABLE  DOOR_CLOSED
EXIT_OK            PUBLISHED      -         NONE       EXIT_0
EXIT_PERMANENT     NOT_PUBLISHED  REFUSED   PERMANENT  EXIT_NONZERO
EXIT_RETRIABLE     NOT_PUBLISHED  REFUSED   RETRIABLE  EXIT_NONZERO
SIGNALED           UNKNOWN        -         UNCERTAIN  SIGNALED
SIGNALED_IN_SHELL  UNKNOWN        -         UNCERTAIN  SIGNALED_IN_SHELL
TIMED_OUT          UNKNOWN        -         UNCERTAIN  TIMED_OUT
STOPPED            UNKNOWN        -         UNCERTAIN  STOPPED
NO_EVIDENCE        UNKNOWN        -         UNCERTAIN  NO_EVIDENCE
"""


def test_the_table_is_that_of_the_design_row_by_row() -> None:
    rows = [line.split() for line in DESIGN.strip().splitlines()]
    assert [
        [happened.name, row.side_effect, row.basis or "-", row.disposition, row.code]
        for happened, row in SHELL_TABLE.items()
    ] == rows
    assert set(SHELL_TABLE) == set(Happened)


def test_a_success_by_policy_keeps_saying_that_its_code_was_not_zero() -> None:
    assert judge(Happened.EXIT_OK, 3).code == "EXIT_NONZERO"
    assert judge(Happened.EXIT_OK, 3).side_effect == "PUBLISHED"
    assert judge(Happened.EXIT_OK, 0).code == "EXIT_0"
    assert judge(Happened.EXIT_OK).code == "EXIT_0"
    assert judge(Happened.EXIT_RETRIABLE, 3) == SHELL_TABLE[Happened.EXIT_RETRIABLE]


def test_every_exit_code_without_a_policy() -> None:
    permanent = {64, 65, 66, 67, 68, 69, 70, 76, 77, 78, 126, 127}
    words = {code: "EXIT_PERMANENT" if code in permanent else "EXIT_RETRIABLE" for code in range(1, 256)}
    words[0] = "EXIT_OK"
    assert {code: exited(PLAIN, code).name for code in range(256)} == words
    signals = dict.fromkeys(range(129, 193), "SIGNALED_IN_SHELL")
    assert {code: exited(SCRIPT, code).name for code in range(256)} == words | signals


@pytest.mark.parametrize(
    ("lists", "code", "word"),
    [
        ({"ok": (3,)}, 3, "EXIT_OK"),
        ({"ok": (3,)}, 0, "EXIT_OK"),
        ({"fail_on": (75,)}, 75, "EXIT_PERMANENT"),
        ({"retry_on": (64,)}, 64, "EXIT_RETRIABLE"),
        ({"ok": (3,), "fail_on": (3,), "retry_on": (3,)}, 3, "EXIT_OK"),
        ({"fail_on": (3,), "retry_on": (3,)}, 3, "EXIT_PERMANENT"),
        ({"fail_on": (0,)}, 0, "EXIT_OK"),
        ({"retry_on": (143,)}, 143, "EXIT_RETRIABLE"),
        ({"fail_on": (143,)}, 143, "EXIT_PERMANENT"),
        ({"ok": (143,)}, 143, "EXIT_OK"),
        ({"ok": (1,)}, 143, "SIGNALED_IN_SHELL"),
    ],
)
def test_what_a_policy_lists_goes_before_the_defaults(lists: dict[str, tuple[int, ...]], code: int, word: str) -> None:
    assert exited(msgspec.structs.replace(SCRIPT, **lists), code).name == word
