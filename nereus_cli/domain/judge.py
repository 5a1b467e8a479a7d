"""The outcome table of shell attempts: what happened, and what that proves. Data, from which the docs are drawn."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from nereus_cli.domain.outcome import Basis, Code, Disposition, SideEffect
from nereus_cli.domain.records import Shell

PERMANENT_CODES: Final = frozenset({*range(64, 71), 76, 77, 78, 126, 127})
SHELL_SIGNALS: Final = range(128 + 1, 128 + 64 + 1)


class Happened(enum.StrEnum):
    """How a shell attempt ended, as its evidence tells."""

    NOT_STARTABLE = "exec refused by the kernel, or its working directory, environment or secrets were missing"
    NO_RESOURCES = "no process, memory, descriptor or space; or the keeper was away"
    DOOR_CLOSED = "a recovering owner closed its door first"
    EXIT_OK = "exit 0, or a code that the policy calls success"
    EXIT_PERMANENT = "exit code that the policy calls permanent"
    EXIT_RETRIABLE = "any other exit code"
    SIGNALED = "ended by a signal"
    SIGNALED_IN_SHELL = "128 + n under --shell"
    TIMED_OUT = "ended by its timeout"
    STOPPED = "ended by a stop"
    NO_EVIDENCE = "nothing tells how it ended"


class Judgement(msgspec.Struct, frozen=True):
    """Side effect, on what basis, and what it asks for next."""

    side_effect: SideEffect
    basis: Basis | None
    disposition: Disposition
    code: Code


def _not_sent(code: Code, disposition: Disposition) -> Judgement:
    return Judgement(SideEffect.NOT_PUBLISHED, Basis.NOT_SENT, disposition, code)


def _refused(disposition: Disposition) -> Judgement:
    return Judgement(SideEffect.NOT_PUBLISHED, Basis.REFUSED, disposition, Code.EXIT_NONZERO)


def _unknown(code: Code) -> Judgement:
    return Judgement(SideEffect.UNKNOWN, None, Disposition.UNCERTAIN, code)


SHELL_TABLE: Final[dict[Happened, Judgement]] = {
    Happened.NOT_STARTABLE: _not_sent(Code.NOT_STARTABLE, Disposition.PERMANENT),
    Happened.NO_RESOURCES: _not_sent(Code.NO_RESOURCES, Disposition.RETRIABLE),
    Happened.DOOR_CLOSED: _not_sent(Code.DOOR_CLOSED, Disposition.RETRIABLE),
    Happened.EXIT_OK: Judgement(SideEffect.PUBLISHED, None, Disposition.NONE, Code.EXIT_0),
    Happened.EXIT_PERMANENT: _refused(Disposition.PERMANENT),
    Happened.EXIT_RETRIABLE: _refused(Disposition.RETRIABLE),
    Happened.SIGNALED: _unknown(Code.SIGNALED),
    Happened.SIGNALED_IN_SHELL: _unknown(Code.SIGNALED_IN_SHELL),
    Happened.TIMED_OUT: _unknown(Code.TIMED_OUT),
    Happened.STOPPED: _unknown(Code.STOPPED),
    Happened.NO_EVIDENCE: _unknown(Code.NO_EVIDENCE),
}


def judge(happened: Happened, exit_code: int | None = None) -> Judgement:
    """The row of the table; a success by policy keeps saying that its code was not zero."""
    judgement = SHELL_TABLE[happened]
    if happened is Happened.EXIT_OK and exit_code:
        return msgspec.structs.replace(judgement, code=Code.EXIT_NONZERO)
    return judgement


def exited(shell: Shell, code: int) -> Happened:
    """What an exit code means under this command's policy: stated lists first, then the defaults."""
    if code == 0 or code in shell.ok:
        return Happened.EXIT_OK
    if code in shell.fail_on:
        return Happened.EXIT_PERMANENT
    if code in shell.retry_on:
        return Happened.EXIT_RETRIABLE
    if shell.script is not None and code in SHELL_SIGNALS:
        return Happened.SIGNALED_IN_SHELL
    return Happened.EXIT_PERMANENT if code in PERMANENT_CODES else Happened.EXIT_RETRIABLE
