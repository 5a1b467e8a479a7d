"""Commands on this machine: materialised here, started and watched by the keeper, judged by the outcome table.

What is given by reference (secrets, an environment file) is read when the attempt is materialised and goes to the
keeper in memory only; no message about it carries a value.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from nereus_cli.destinations import keeper_facts as facts
from nereus_cli.destinations.child_environment import attempt_environment
from nereus_cli.destinations.keeper_client import KeeperAwayError, KeeperClient
from nereus_cli.destinations.keeper_decide import (
    DoorClosed,
    NoEvidence,
    OpenAttempt,
    StillOpen,
    Verdict,
    decide_all,
)
from nereus_cli.destinations.keeper_requests import StartRequest
from nereus_cli.destinations.references import read_environment_file, read_reference
from nereus_cli.domain.instant import MILLISECOND
from nereus_cli.domain.judge import Happened, exited, judge
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import Attempt, Message
from nereus_cli.domain.records import Command, Outcome, Reschedule, Schedule, Shell, Usage
from nereus_cli.ports import CannotStartError, DestinationAwayError, Start

SHELL: Final = b"/bin/sh"
_LOOK_S: Final = 0.2
_DOUBT_S: Final = 30.0
_ASK_EVERY_S: Final = 2.0
_ASK_S: Final = 0.3
_CONNECT_S: Final = 10.0


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an ending beside how it is judged; instants in nanoseconds."""

    exit_code: int | None = None
    signal: int | None = None
    errno: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    detail: str = ""
    usage: Usage | None = None


class ShellDestination:
    """The daemon's side of the keeper. One thread calls it; nothing here waits for a child."""

    def __init__(self, store: str, limits: Limits, boot_id: bytes) -> None:
        """``store`` is the store's directory; the keeper is found or started when first needed."""
        self._store = store
        self._limits = limits
        self._boot_id = boot_id
        self._client: KeeperClient | None = None
        self._running: dict[str, Start] = {}
        self._ended: list[Outcome] = []
        self._handed: set[str] = set()
        self._doubtful: set[str] = set()
        self._unsure_until = 0.0
        self._look_at = 0.0
        self._adrift = False
        self._ask_at = 0.0
        self._stops: dict[str, bool] = {}

    # ----------------------------------------------------------------------------------------------- the port

    def materialise(self, message: Message, command: Command) -> object:  # noqa: ARG002 -- the port's shape
        """The complete environment, but for what only the attempt knows. Raises CannotStartError, DestinationAwayError.

        The keeper is there before the admission: only evidence that is older can prove that nothing was started."""
        try:
            self._connected()
        except (KeeperAwayError, OSError) as error:
            raise DestinationAwayError(str(error)) from None
        shell = shell_of(command)
        environment = dict(command.context.environment)
        if shell.environment_file is not None:
            environment.update(read_environment_file(shell.environment_file))
        environment.update(shell.environment)
        for name, reference in shell.secrets:
            environment[name] = read_reference(reference)
        return environment

    def start(self, starts: Sequence[Start]) -> None:
        """Hands attempts to the keeper in one batch."""
        for start in starts:
            self._running[start.attempt.attempt_id] = start
        try:
            self._connected().start([self._request(start) for start in starts])
            self._handed.update(start.attempt.attempt_id for start in starts)
        except (KeeperAwayError, OSError) as error:
            self._decide(starts, str(error))

    def recover(self, starts: Sequence[Start]) -> Sequence[Outcome]:
        """Evidence first; what may still run is adopted and comes back from ``pump``. The keeper is started here,
        so that the first attempt need not wait for it."""
        for start in starts:
            self._running[start.attempt.attempt_id] = start
        self._decide(starts, "")
        self._reconnect(starts)
        return self.pump()

    def pump(self) -> Sequence[Outcome]:
        """What ended since the last call; never waits."""
        self._look_again()
        if self._client is not None:
            for fact in self._client.pump():
                self._learn(fact)
        ended, self._ended = self._ended, []
        return ended

    def stop(self, attempt_id: str, *, kill: bool) -> None:
        """Ends an attempt by the keeper's ladder: TERM, grace, KILL, or KILL at once. One whose keeper cannot be asked
        now is ended as soon as it can be."""
        if attempt_id in self._running:
            self._stops[attempt_id] = kill or self._stops.get(attempt_id, False)
            if self._client is not None:
                self._client.stop(attempt_id, kill=kill)

    def wake_fds(self) -> tuple[Sequence[int], Sequence[int]]:
        """The keeper's socket."""
        if self._client is None:
            return (), ()
        return (self._client.fileno(),), ()

    def close(self) -> None:
        """Lets go; the keeper goes on with what runs."""
        if self._client is not None:
            self._client.close()

    # ------------------------------------------------------------------------------------------------ the keeper

    def _connected(self, timeout_s: float = _CONNECT_S) -> KeeperClient:
        if self._client is None:
            self._client = KeeperClient(self._store, self._boot_id)
        if not self._client.accepting:
            self._client.connect(timeout_s)
        return self._client

    def _reconnect(self, starts: Sequence[Start], timeout_s: float = _CONNECT_S) -> None:
        """To hear of what still runs. What ended between the last look and the connection stands in the evidence only,
        so it is looked at once more. A keeper that does not answer, as one that is stopped, is asked again."""
        why = ""
        try:
            client = self._connected(timeout_s)
            for attempt_id, kill in self._stops.items():
                client.stop(attempt_id, kill=kill)
        except (KeeperAwayError, OSError) as error:
            why = str(error)
        self._adrift, self._ask_at = bool(why), time.monotonic() + _ASK_EVERY_S
        self._decide([start for start in starts if start.attempt.attempt_id in self._running], why)

    def _learn(self, fact: facts.Fact) -> None:
        match fact:
            case facts.Started() | facts.TimedOut() | facts.Stopped():
                return
            case facts.KeeperDraining():
                self._handed.clear()
            case facts.KeeperGone(accepting=accepting):
                self._gone(accepting=accepting)
            case facts.Lost(attempt_id=attempt_id):
                start = self._running.get(attempt_id)
                if start is not None:
                    self._decide([start], "")
            case facts.Closed(attempt_id=attempt_id):
                self._settle(attempt_id, Happened.DOOR_CLOSED, Known())
            case facts.NotStarted():
                self._not_started(fact)
            case facts.Ended():
                self._judge(fact)

    def _decide(self, starts: Iterable[Start], why: str) -> None:
        """From locks, evidence and doors; what is still open stays in ``_running``. A disk on which no door can be
        closed decides nothing: the next look tries again."""
        attempts = [_open(start.attempt, self._limits) for start in starts]
        if not attempts:
            return
        try:
            verdicts = decide_all(self._store, attempts, self._boot_id)
        except OSError:
            self._doubt(attempt.attempt_id for attempt in attempts)
            return
        for attempt_id, verdict in verdicts.items():
            self._verdict(attempt_id, verdict, why)

    def _gone(self, *, accepting: bool) -> None:
        """What the keeper had is decided; what was handed to another that lives must not be: deciding closes doors."""
        if accepting:
            self._handed.clear()
        lost = [start for name, start in self._running.items() if name not in self._handed]
        self._doubt(start.attempt.attempt_id for start in lost)
        self._decide(lost, "the keeper is gone")
        self._reconnect(lost)

    def _doubt(self, attempt_ids: Iterable[str]) -> None:
        """What is decided now may be out of date: a dying keeper's socket ends before its lock does, and a full disk
        closes no door. Look again for a while."""
        now = time.monotonic()
        self._doubtful.update(attempt_ids)
        self._unsure_until, self._look_at = now + _DOUBT_S, now + _LOOK_S

    def _look_again(self) -> None:
        now = time.monotonic()
        if self._adrift and self._running and now >= self._ask_at:
            unhanded = [start for name, start in self._running.items() if name not in self._handed]
            self._reconnect(unhanded, _ASK_S)
        self._doubtful &= self._running.keys()
        if now >= self._unsure_until:
            self._doubtful.clear()
        elif self._doubtful and now >= self._look_at:
            self._look_at = now + _LOOK_S
            self._decide([self._running[name] for name in self._doubtful], "")

    def _verdict(self, attempt_id: str, verdict: Verdict, why: str) -> None:
        match verdict:
            case StillOpen():
                return
            case DoorClosed():
                happened = Happened.NO_RESOURCES if why else Happened.DOOR_CLOSED
                self._settle(attempt_id, happened, Known(detail=why))
            case NoEvidence():
                happened = Happened.TIMED_OUT if verdict.timed_out else Happened.NO_EVIDENCE
                self._settle(
                    attempt_id,
                    Happened.STOPPED if verdict.stopped else happened,
                    Known(
                        started_at=verdict.started_at_ns,
                        detail=verdict.reason + (f"; pid {verdict.pid}" if verdict.pid else ""),
                    ),
                )
            case facts.NotStarted():
                self._not_started(verdict)
            case facts.Ended():
                self._judge(verdict)

    # -------------------------------------------------------------------------------------------------- judging

    def _judge(self, ended: facts.Ended) -> None:
        start = self._running.get(ended.attempt_id)
        if start is None:
            return
        code, signal = ended.exit_code, ended.signal
        if ended.stopped:
            happened = Happened.STOPPED
        elif ended.timed_out:
            happened = Happened.TIMED_OUT
        elif code is None:
            happened = Happened.SIGNALED
        else:
            happened = exited(shell_of(start.command), code)
        self._settle(
            ended.attempt_id,
            happened,
            Known(
                exit_code=code,
                signal=signal,
                started_at=ended.started_at_ns,
                ended_at=ended.ended_at_ns,
                usage=_usage(ended),
            ),
        )

    def _not_started(self, fact: facts.NotStarted) -> None:
        happened = Happened.NO_RESOURCES if fact.for_want_of_resources else Happened.NOT_STARTABLE
        detail = "the working directory is missing" if fact.what == "cwd" else fact.what
        known = Known(errno=fact.errno, detail=f"{detail}: {os.strerror(fact.errno)}")
        self._settle(fact.attempt_id, happened, known)

    def _settle(self, attempt_id: str, happened: Happened, known: Known) -> None:
        """Each attempt once: what comes later for it is no news."""
        start = self._running.pop(attempt_id, None)
        self._stops.pop(attempt_id, None)
        if start is None:
            return
        row = judge(happened, known.exit_code)
        self._ended.append(
            Outcome(
                message_id=start.message.message_id,
                attempt_id=attempt_id,
                side_effect=row.side_effect,
                code=row.code,
                disposition=row.disposition,
                basis=row.basis,
                exit_code=known.exit_code,
                signal=known.signal,
                errno=known.errno,
                started_at=known.started_at,
                ended_at=known.ended_at,
                detail=known.detail,
                usage=known.usage,
            )
        )

    def _request(self, start: Start) -> StartRequest:
        shell = shell_of(start.command)
        environment = start.work if isinstance(start.work, dict) else {}
        environment = {**environment, **attempt_environment(start)}
        argv = shell.argv if shell.script is None else (SHELL, b"-c", shell.script)
        timeout = start.attempt.timeout_ns
        return StartRequest(
            attempt_id=start.attempt.attempt_id,
            directory=start.attempt.admitted_position // self._limits.attempt_directory_span,
            argv=argv,
            cwd=shell.cwd,
            env=tuple(environment.items()),
            stdin=shell.stdin,
            umask=start.command.context.umask,
            timeout_ms=None if timeout is None else max(timeout // MILLISECOND, 1),
            grace_ms=start.attempt.grace_ns // MILLISECOND,
            output_bytes_max=self._limits.output_bytes_max,
        )


def shell_of(command: Command) -> Shell:
    """The shell target of a descriptor."""
    stated = command.stated
    if isinstance(stated, Schedule | Reschedule) and isinstance(stated.target, Shell):
        return stated.target
    msg = "this descriptor is not a shell command"
    raise CannotStartError(msg, errno=errno.EINVAL)


def _open(attempt: Attempt, limits: Limits) -> OpenAttempt:
    return OpenAttempt(
        attempt_id=attempt.attempt_id,
        directory=attempt.admitted_position // limits.attempt_directory_span,
        boot_id=attempt.boot_id,
        admitted_boot_ns=attempt.admitted_monotonic_ns,
    )


def _usage(ended: facts.Ended) -> Usage:
    return Usage(
        user_s=ended.utime_s,
        system_s=ended.stime_s,
        memory_kib=ended.maxrss_kib,
        stdout_bytes=ended.stdout_bytes,
        stderr_bytes=ended.stderr_bytes,
        stdout_kept=ended.stdout_kept,
        stderr_kept=ended.stderr_kept,
        survivors=ended.survivors,
    )
