"""Commands on this machine: materialised here, started and watched by the keeper, judged by the outcome table.

What is given by reference (secrets, an environment file) is read when the attempt is materialised and goes to the
keeper in memory only; no message about it carries a value.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from typing import Final

from nereus_cli.destinations import keeper_facts as facts
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
from nereus_cli.domain.instant import MILLISECOND
from nereus_cli.domain.judge import Happened, exited, judge
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import Attempt, Message
from nereus_cli.domain.outcome import Risk
from nereus_cli.domain.records import Command, Outcome, Reschedule, Schedule, Shell, Usage
from nereus_cli.ports import CannotStartError, Start

SHELL: Final = b"/bin/sh"
_REFERENCE_BYTES_MAX: Final = 64 << 10
Pairs = tuple[tuple[bytes, bytes], ...]


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

    # ----------------------------------------------------------------------------------------------- the port

    def materialise(self, message: Message, command: Command) -> object:
        """The complete environment, but for what only the attempt knows. Raises CannotStartError.

        The keeper is there before the admission: only evidence that is older can prove that nothing was started."""
        try:
            self._connected()
        except (KeeperAwayError, OSError) as error:
            raise CannotStartError(str(error), permanent=False) from None
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
        except (KeeperAwayError, OSError) as error:
            self._decide(starts, str(error))

    def recover(self, starts: Sequence[Start]) -> Sequence[Outcome]:
        """Evidence first; what may still run is adopted and comes back from ``pump``."""
        for start in starts:
            self._running[start.attempt.attempt_id] = start
        self._decide(starts, "")
        if self._running:
            self._reconnect()
        return self.pump()

    def pump(self) -> Sequence[Outcome]:
        """What ended since the last call; never waits."""
        if self._client is not None:
            for fact in self._client.pump():
                self._learn(fact)
        ended, self._ended = self._ended, []
        return ended

    def stop(self, attempt_id: str, *, kill: bool) -> None:
        """Ends an attempt by the keeper's ladder: TERM, grace, KILL, or KILL at once."""
        if self._client is not None and attempt_id in self._running:
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

    def _connected(self) -> KeeperClient:
        if self._client is None:
            self._client = KeeperClient(self._store, self._boot_id)
        if not self._client.accepting:
            self._client.connect()
        return self._client

    def _reconnect(self) -> None:
        """To hear of what still runs; if nobody answers, evidence will have decided by the next look."""
        try:
            self._connected()
        except (KeeperAwayError, OSError) as error:
            self._decide(list(self._running.values()), str(error))
            return
        # What ended between the first look and the connection stands in the evidence only.
        self._decide(list(self._running.values()), "")

    def _learn(self, fact: facts.Fact) -> None:
        match fact:
            case facts.Started() | facts.TimedOut() | facts.Stopped() | facts.KeeperDraining():
                return
            case facts.KeeperGone():
                self._decide(list(self._running.values()), "the keeper is gone")
                if self._running:
                    self._reconnect()
            case facts.Lost(attempt_id=attempt_id):
                start = self._running.get(attempt_id)
                if start is not None:
                    self._decide([start], "")
            case facts.Closed(attempt_id=attempt_id):
                self._settle(attempt_id, Happened.DOOR_CLOSED)
            case facts.NotStarted():
                self._not_started(fact)
            case facts.Ended():
                self._judge(fact)

    def _decide(self, starts: Iterable[Start], why: str) -> None:
        """From locks, evidence and doors; what is still open stays in ``_running``."""
        attempts = [_open(start.attempt, self._limits) for start in starts]
        if not attempts:
            return
        for attempt_id, verdict in decide_all(self._store, attempts, self._boot_id).items():
            self._verdict(attempt_id, verdict, why)

    def _verdict(self, attempt_id: str, verdict: Verdict, why: str) -> None:
        match verdict:
            case StillOpen():
                return
            case DoorClosed():
                happened = Happened.NO_RESOURCES if why else Happened.DOOR_CLOSED
                self._settle(attempt_id, happened, detail=why)
            case NoEvidence():
                happened = Happened.TIMED_OUT if verdict.timed_out else Happened.NO_EVIDENCE
                self._settle(
                    attempt_id,
                    Happened.STOPPED if verdict.stopped else happened,
                    started_at=verdict.started_at_ns,
                    detail=verdict.reason + (f"; pid {verdict.pid}" if verdict.pid else ""),
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
            exit_code=code,
            signal=signal,
            started_at=ended.started_at_ns,
            ended_at=ended.ended_at_ns,
            usage=_usage(ended),
        )

    def _not_started(self, fact: facts.NotStarted) -> None:
        happened = Happened.NO_RESOURCES if fact.for_want_of_resources else Happened.NOT_STARTABLE
        detail = "the working directory is missing" if fact.what == "cwd" else fact.what
        self._settle(fact.attempt_id, happened, number=fact.errno, detail=f"{detail}: {os.strerror(fact.errno)}")

    def _settle(
        self,
        attempt_id: str,
        happened: Happened,
        *,
        exit_code: int | None = None,
        signal: int | None = None,
        number: int | None = None,
        started_at: int | None = None,
        ended_at: int | None = None,
        detail: str = "",
        usage: Usage | None = None,
    ) -> None:
        """Each attempt once: what comes later for it is no news."""
        start = self._running.pop(attempt_id, None)
        if start is None:
            return
        row = judge(happened, exit_code)
        self._ended.append(
            Outcome(
                message_id=start.message.message_id,
                attempt_id=attempt_id,
                side_effect=row.side_effect,
                code=row.code,
                disposition=row.disposition,
                basis=row.basis,
                exit_code=exit_code,
                signal=signal,
                errno=number,
                started_at=started_at,
                ended_at=ended_at,
                detail=detail,
                usage=usage,
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


def attempt_environment(start: Start) -> dict[bytes, bytes]:
    """What every child is told of itself."""
    message, attempt = start.message, start.attempt
    deadline = ""
    if attempt.timeout_ns is not None:
        deadline = _seconds(attempt.admitted_at + attempt.timeout_ns)
    others = any(a.side_effect is not None for a in message.open_attempts)
    risk = Risk.POSSIBLE if others and message.risk is Risk.NONE else message.risk
    values = {
        "NEREUS_MESSAGE_ID": message.message_id,
        "NEREUS_GENERATION": str(attempt.generation),
        "NEREUS_ATTEMPT": str(attempt.number),
        "NEREUS_ATTEMPT_ID": attempt.attempt_id,
        "NEREUS_IDEMPOTENCY_KEY": f"{message.message_id}:{attempt.generation}",
        "NEREUS_DELIVER_AT": _seconds(message.deliver_at),
        "NEREUS_DUPLICATE_RISK": risk.value,
        "NEREUS_DEADLINE": deadline,
    }
    return {name.encode(): value.encode() for name, value in values.items()}


def read_reference(reference: str) -> bytes:
    """The value behind ``file:``, ``env:`` or ``credential:``; a message about it names the reference only."""
    scheme, _, rest = reference.partition(":")
    try:
        if scheme == "env":
            return os.environb[os.fsencode(rest)]
        path = rest
        if scheme == "credential":
            path = f"{os.environ['CREDENTIALS_DIRECTORY']}/{os.path.basename(rest)}"
        return _read(path).rstrip(b"\n")
    except (KeyError, OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else errno.ENOENT
        msg = f"the secret {scheme}:{rest} cannot be read"
        raise CannotStartError(msg, errno=number or 0) from None


def read_environment_file(path: bytes) -> Pairs:
    """NAME=VALUE lines; empty lines and those that begin with # are left out."""
    try:
        lines = _read(os.fsdecode(path)).split(b"\n")
    except (OSError, ValueError) as error:
        msg = "the file of --env-from-file cannot be read"
        raise CannotStartError(msg, errno=(error.errno or 0) if isinstance(error, OSError) else 0) from None
    pairs = []
    for line in lines:
        name, separator, value = line.partition(b"=")
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        if not separator or not name or b"\0" in line:
            msg = "the file of --env-from-file has a line that is not NAME=VALUE"
            raise CannotStartError(msg, errno=errno.EINVAL)
        pairs.append((name, value))
    return tuple(pairs)


def _read(path: str) -> bytes:
    """A regular file of bounded size, opened so that nothing planted in its place can hold us up."""
    import stat

    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            msg = "not a regular file"
            raise ValueError(msg)
        data = os.read(fd, _REFERENCE_BYTES_MAX + 1)
    finally:
        os.close(fd)
    if len(data) > _REFERENCE_BYTES_MAX or b"\0" in data:
        msg = "too large, or it holds a NUL"
        raise ValueError(msg)
    return data


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


def _seconds(instant: int) -> str:
    """RFC 3339 in UTC with milliseconds, as in every other interface."""
    from nereus_cli.wish.show import rfc3339

    return rfc3339(instant)
