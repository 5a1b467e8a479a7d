"""``nereus schedule --batch``: one command a line, the same names as the flags, one receipt a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from nereus_cli.cli import lines, opening, wishes
from nereus_cli.cli.exits import Failure, usage
from nereus_cli.cli.sending import Item, Sender, send_all
from nereus_cli.cli.write import decision_at
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.prepare import commands
from nereus_cli.prepare.wishes import ScheduleWish, ShellWish, TimeWish

if TYPE_CHECKING:
    from nereus_cli.cli.call import Call
    from nereus_cli.domain.records import Permission


class Base64(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are not UTF-8."""

    b64: bytes


Bytes: TypeAlias = str | Base64


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=lambda name: name.rstrip("_")):
    """What a line may say. Names and meanings are those of the flags."""

    id: str | None = None
    command_id: str | None = None
    in_: str | None = None
    at: str | None = None
    tz: str | None = None
    gap: str | None = None
    fold: str | None = None
    allow_past: bool = False
    expires_after: str | None = None
    expires_at: str | None = None
    argv: list[Bytes] | None = None
    shell: Bytes | None = None
    cwd: Bytes | None = None
    env: dict[str, Bytes] = {}
    env_from_file: Bytes | None = None
    secret: dict[str, str] = {}
    stdin: Bytes | None = None
    ok: str = ""
    retry_on: str = ""
    fail_on: str = ""
    tags: dict[str, str] = {}
    priority: int = 0
    if_late: str | None = None
    late_after: str | None = None
    timeout: str | None = None
    max_attempts: int | None = None
    retry_base: str | None = None
    retry_max: str | None = None
    retry_for: str | None = None
    on_uncertain: str | None = None
    reason: str = ""
    correlation: str = ""
    key: Any = None
    url: Any = None
    to: Any = None
    method: Any = None
    headers: Any = None
    header_from: Any = None
    data: Any = None
    data_b64: Any = None
    data_file: Any = None
    allow_http: Any = None


_decoder = msgspec.json.Decoder(Line)
_WEBHOOK = ("url", "to", "method", "headers", "header_from", "data", "data_b64", "data_file", "allow_http")


def schedule_batch(call: Call, *, wait: bool) -> int:
    """Streams the file: one durable commit for each block of lines, the receipts in order."""
    if call.flag("dry-run"):
        raise usage("--dry-run takes one command", field="dry-run")
    fd = lines.open_input(call.raw("batch") or b"-")
    decision = decision_at(call)
    sender = Sender(call, lambda: opening.for_writing(call, create=True), wait=wait, single=False)
    return send_all(sender, lines.items(lines.Reader(fd), lambda number, line: _item(call, number, line, decision)))


def _item(call: Call, number: int, line: bytes | None, decision: Permission | None) -> Item:
    name = None
    try:
        if line is None:
            raise usage(f"the line is longer than {lines.LINE_BYTES_MAX} bytes")
        said = _decode(line)
        name = said.id
        wish = _wish(said)
        mine = wishes.captured(call.umask, decision, wish.target.cwd)
        return Item(wishes.frozen(lambda: commands.schedule(wish, mine, PRODUCTION)), line=number, name=name)
    except Failure as failure:
        return Item(failure=failure, line=number, name=name)


def _decode(line: bytes) -> Line:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if not line.strip():
            raise usage("an empty line is no command") from None
        why = "a string in it is no text: half of a surrogate pair" if _has_surrogate(line) else str(error)
        raise usage(f"not a command: {why}") from None


def _has_surrogate(line: bytes) -> bool:
    """The decoder calls them truncated; the standard library reads them, which tells."""
    import json

    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _wish(said: Line) -> ScheduleWish:
    for field in _WEBHOOK:
        if getattr(said, field) is not None:
            raise usage(f"{field}: webhook destinations are not in this version", field=field)
    if said.key is not None:
        raise usage("key: ordered keys are not in this version", field="key")
    if (said.argv is None) == (said.shell is None):
        raise usage("say what to run: argv or shell", field="argv")
    return ScheduleWish(
        time=TimeWish(
            delay=said.in_,
            at=said.at,
            zone=said.tz,
            gap=said.gap,
            fold=said.fold,
            expires_after=said.expires_after,
            expires_at=said.expires_at,
            allow_past=said.allow_past,
        ),
        target=_target(said),
        message_id=said.id,
        command_id=said.command_id,
        priority=said.priority,
        tags=tuple(f"{_name(name, 'tags')}={value}" for name, value in said.tags.items()),
        if_late=said.if_late,
        late_after=said.late_after,
        timeout=said.timeout,
        max_attempts=said.max_attempts,
        retry_base=said.retry_base,
        retry_max=said.retry_max,
        retry_for=said.retry_for,
        on_uncertain=said.on_uncertain,
        reason=said.reason,
        correlation=said.correlation,
    )


def _target(said: Line) -> ShellWish:
    environment = tuple(_name(name, "env").encode() + b"=" + _bytes(value) for name, value in said.env.items())
    return ShellWish(
        argv=tuple(map(_bytes, said.argv or ())),
        script=_optional(said.shell),
        cwd=_path(said.cwd),
        environment=environment,
        environment_file=_path(said.env_from_file),
        secrets=tuple(wishes.reference(f"{_name(name, 'secret')}={where}") for name, where in said.secret.items()),
        stdin=_stdin(_optional(said.stdin)),
        ok=said.ok,
        retry_on=said.retry_on,
        fail_on=said.fail_on,
    )


def _name(name: str, field: str) -> str:
    """Flags say NAME=VALUE: a name with an equals sign in it would become another one."""
    if "=" in name:
        raise usage(f"{field}: {name} is no name: it holds an equals sign", field=field)
    return name


def _bytes(value: Bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value.b64


def _optional(value: Bytes | None) -> bytes | None:
    return None if value is None else _bytes(value)


def _path(value: Bytes | None) -> bytes | None:
    return None if value is None else wishes.absolute(_bytes(value))


def _stdin(path: bytes | None) -> bytes | None:
    if path == b"-":
        raise usage("stdin: a line names a file; standard input belongs to the batch", field="stdin")
    return wishes.read_stdin(path)
