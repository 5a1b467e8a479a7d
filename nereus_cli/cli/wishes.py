"""From options to wishes: what was typed, still as text, in the words of preparation."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from nereus_cli.capture import NoDirectoryError, capture, directory
from nereus_cli.cli import output
from nereus_cli.cli.exits import REASONS, Failure, usage
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.message import VERDICTS
from nereus_cli.prepare import commands
from nereus_cli.prepare.wishes import (
    Capture,
    ControlWish,
    Prepared,
    ReplayWish,
    ResolveWish,
    ScheduleWish,
    ShellWish,
    TimeWish,
    WishError,
)

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.domain.records import Permission

_FILE: Final = "file:"


def captured(umask: int, decision: Permission | None, cwd: bytes | None) -> Capture:
    """This process as preparation wants it; raises a Failure when it stands nowhere."""
    try:
        return capture(umask=umask, decision=decision, cwd=cwd)
    except NoDirectoryError:
        raise usage("the working directory is gone: say --cwd DIR", field="cwd") from None


def refused(error: WishError) -> Failure:
    """A wish that cannot become a command, as an answer: usage, or a stable reason."""
    details: dict[str, object] = {"field": error.field} if error.field else {}
    if error.refusal is not None:
        from nereus_cli.render.machine import candidates

        details |= {"code": error.refusal.code, "candidates": candidates(error.refusal)}
    if error.reason is None:
        return Failure("USAGE", str(error), usage("").status, details)
    return Failure(error.reason.value, str(error), REASONS[error.reason], details)


def times(call: Call) -> TimeWish:
    """When, and until when."""
    return TimeWish(
        delay=call.text("in"),
        at=call.text("at"),
        zone=call.text("tz"),
        gap=call.text("gap"),
        fold=call.text("fold"),
        expires_after=call.text("expires-after"),
        expires_at=call.text("expires-at"),
        allow_past=call.flag("allow-past"),
    )


def schedule(call: Call) -> ScheduleWish:
    """Everything that ``schedule`` was told."""
    return ScheduleWish(
        time=times(call),
        target=_shell(call),
        message_id=call.text("id"),
        command_id=call.text("command-id"),
        priority=call.whole("priority") or 0,
        tags=call.texts("tag"),
        if_late=call.text("if-late"),
        late_after=call.text("late-after"),
        timeout=call.text("timeout"),
        max_attempts=call.whole("max-attempts"),
        retry_base=call.text("retry-base"),
        retry_max=call.text("retry-max"),
        retry_for=call.text("retry-for"),
        on_uncertain=call.text("on-uncertain"),
        reason=call.text("reason") or "",
        correlation=call.text("correlation") or "",
    )


def prepare_schedule(call: Call, decision: Permission | None) -> Prepared:
    """The command of a ``schedule`` line; raises a Failure."""
    wish = schedule(call)
    warn_of_secrets(wish.target.environment)
    return frozen(lambda: commands.schedule(wish, captured(call.umask, decision, wish.target.cwd), PRODUCTION))


def prepare_control(call: Call, message_id: str, decision: Permission | None) -> Prepared:
    """The command of a line that moves one message; raises a Failure."""
    wish = ControlWish(
        message_id=message_id,
        command_id=call.text("command-id"),
        if_version=call.whole("if-version"),
        reason=call.text("reason") or "",
        time=times(call),
    )
    return frozen(lambda: _control(call, wish, captured(call.umask, decision, b"/")))


def frozen(make: Callable[[], Prepared]) -> Prepared:
    """What ``make`` prepares, or its refusal as a Failure."""
    try:
        return make()
    except WishError as error:
        raise refused(error) from None


def warn_of_secrets(environment: tuple[bytes, ...]) -> None:
    """A literal secret is in the log for as long as the log is."""
    from nereus_cli.render.text import looks_secret

    for entry in environment:
        name = entry.partition(b"=")[0]
        if looks_secret(name):
            shown = name.decode("utf-8", "backslashreplace")
            output.note(f"the value of {shown} is now in the log: --secret {shown}=file:PATH keeps it out")


def _control(call: Call, wish: ControlWish, mine: Capture) -> Prepared:
    match call.verb.name:
        case "cancel":
            return commands.cancel(wish, mine, PRODUCTION)
        case "reschedule":
            return commands.reschedule(wish, mine, PRODUCTION)
        case "hold":
            return commands.hold(wish, mine, PRODUCTION)
        case "release":
            return commands.release(wish, mine, PRODUCTION)
        case "resolve":
            return commands.resolve(_verdict(call, wish), mine, PRODUCTION)
        case "dead replay":
            return commands.replay(_replay(call, wish), mine, PRODUCTION)
        case "run-now":
            return commands.run_now(wish, mine, PRODUCTION)
        case _:
            return commands.stop(wish, mine, PRODUCTION, kill=call.flag("kill"))


def _verdict(call: Call, wish: ControlWish) -> ResolveWish:
    said = [verdict for verdict in VERDICTS if call.flag(verdict)]
    if len(said) != 1:
        spelled = ", ".join(f"--{verdict}" for verdict in VERDICTS)
        raise usage(f"say one verdict: {spelled}", field="verdict")
    return ResolveWish(
        **msgspec.structs.asdict(wish),
        attempt=call.whole("attempt", least=1),
        verdict=said[0],
        evidence=call.text("evidence") or "",
        by=call.text("by"),
    )


def _replay(call: Call, wish: ControlWish) -> ReplayWish:
    return ReplayWish(
        **msgspec.structs.asdict(wish),
        accept_duplicate=call.flag("accept-duplicate"),
        new_key=call.flag("new-key"),
    )


def _shell(call: Call) -> ShellWish:
    script = call.raw("shell")
    if (script is None) == (not call.tail):
        raise usage("say what to run: a command behind --, or --shell STRING", field="command")
    cwd = call.raw("cwd")
    return ShellWish(
        argv=call.tail or (),
        script=script,
        cwd=None if cwd is None else absolute(cwd),
        environment=tuple(call.words("env")),
        environment_file=_file_of(call.raw("env-from-file")),
        secrets=tuple(map(reference, call.texts("secret"))),
        stdin=read_stdin(call.raw("stdin")),
        ok=call.text("ok") or "",
        retry_on=call.text("retry-on") or "",
        fail_on=call.text("fail-on") or "",
    )


def absolute(path: bytes) -> bytes:
    """The path from the root; the command will stand somewhere else."""
    try:
        return directory(path)
    except NoDirectoryError:
        raise usage("the working directory is gone: say absolute paths", field="cwd") from None


def _file_of(path: bytes | None) -> bytes | None:
    return None if path is None else absolute(path)


def reference(entry: str) -> str:
    """NAME=file:PATH with an absolute path; other references as they are."""
    name, separator, where = entry.partition("=")
    path = where.removeprefix(_FILE)
    if path == where or not path or path.startswith("/"):
        return entry
    return f"{name}{separator}{_FILE}{os.fsdecode(absolute(os.fsencode(path)))}"


def read_stdin(path: bytes | None) -> bytes | None:
    """The content that the command will read, at most one byte more than the limit allows."""
    if path is None:
        return None
    most = PRODUCTION.inline_bytes_max + 1
    try:
        fd = 0 if path == b"-" else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        shown = path.decode("utf-8", "backslashreplace")
        raise usage(f"--stdin {shown}: {error.strerror}", field="stdin") from None
    try:
        content = bytearray()
        while len(content) < most and (part := os.read(fd, most - len(content))):
            content += part
        return bytes(content)
    except OSError as error:
        raise usage(f"--stdin: {error.strerror}", field="stdin") from None
    finally:
        if fd:
            os.close(fd)
