"""Whether a command keeps every limit. Preparation asks before it prints a command, apply asks again."""

from __future__ import annotations

from nereus_cli.domain.identity import is_id, is_misformed
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import GIVE_UP, VERDICTS
from nereus_cli.domain.records import (
    At,
    Command,
    Expiry,
    In,
    Policy,
    Replay,
    Reschedule,
    Resolve,
    Schedule,
    Shell,
    Target,
    When,
)

ON_UNCERTAIN = ("retry", "wait", "probe")
SECRET_SCHEMES = ("file", "env", "credential")
_EXIT_CODE_MAX = 255


def exceeds(command: Command, limits: Limits) -> str | None:
    """The name of the first thing that breaks a limit, or None."""
    stated, context = command.stated, command.context
    named = getattr(stated, "message_id", None)
    if not is_id(command.command_id) or is_misformed(command.command_id):
        return "command_id"
    if named is not None and (not is_id(named) or is_misformed(named)):
        return "message_id"
    for name in ("requested_by", "host", "reason", "correlation", "traceparent"):
        if len(getattr(context, name).encode("utf-8", "surrogatepass")) > limits.text_bytes_max:
            return name
    if sum(len(name) + len(value) + 2 for name, value in context.environment) > limits.environment_bytes_max:
        return "environment"
    if isinstance(stated, Schedule):
        return _schedule(stated, limits)
    if isinstance(stated, Reschedule):
        return (
            _time(stated.when, limits)
            or _expiry(stated.expiry, limits)
            or (None if stated.policy is None else _policy(stated.policy, limits))
            or (None if stated.target is None else _target(stated.target, limits))
        )
    if isinstance(stated, Resolve):
        return _verdict(stated, limits)
    return _time(stated.when, limits) if isinstance(stated, Replay) else None


def _verdict(stated: Resolve, limits: Limits) -> str | None:
    if stated.verdict not in VERDICTS or (stated.attempt == 0 and stated.verdict != GIVE_UP):
        return "attempt" if stated.verdict in VERDICTS else "verdict"
    for name in ("evidence", "by"):
        if len(getattr(stated, name).encode("utf-8", "surrogatepass")) > limits.text_bytes_max:
            return name
    return None if stated.evidence.strip() else "evidence"


def _schedule(stated: Schedule, limits: Limits) -> str | None:
    if stated.key is not None and not is_id(stated.key):
        return "key"
    if stated.key is not None and (stated.priority or stated.policy.on_uncertain == "retry"):
        return "key"
    if abs(stated.priority) > limits.priority_max:
        return "priority"
    if len(stated.tags) > limits.tags_max:
        return "tags"
    if any(len(part.encode("utf-8", "surrogatepass")) > limits.tag_bytes_max for tag in stated.tags for part in tag):
        return "tags"
    if stated.late_after_ns is not None and not 0 <= stated.late_after_ns <= limits.horizon_ns:
        return "late_after"
    return (
        _time(stated.when, limits)
        or _expiry(stated.expiry, limits)
        or _policy(stated.policy, limits)
        or _target(stated.target, limits)
    )


def _time(when: When, limits: Limits) -> str | None:
    match when:
        case In(text=text, delay_ns=delay):
            return "in" if delay < 0 or len(text) > limits.text_bytes_max else None
        case At(text=text):
            return "at" if not 0 < len(text) <= limits.text_bytes_max else None
        case _:
            return None


def _expiry(expiry: Expiry, limits: Limits) -> str | None:
    if expiry.after_ns is not None:
        return None if expiry.at is None and 0 < expiry.after_ns <= limits.horizon_ns else "expires_after"
    return None if expiry.at is None or _time(expiry.at, limits) is None else "expires_at"


def _policy(policy: Policy, limits: Limits) -> str | None:
    if policy.max_attempts is not None and not 1 <= policy.max_attempts <= limits.attempts_max:
        return "max_attempts"
    if policy.on_uncertain not in (None, *ON_UNCERTAIN):
        return "on_uncertain"
    for name in ("timeout", "retry_base", "retry_max", "retry_for"):
        value = getattr(policy, f"{name}_ns")
        if value is not None and not 0 < value <= limits.horizon_ns:
            return name
    return None


def _target(target: Target, limits: Limits) -> str | None:
    return _shell(target, limits) if isinstance(target, Shell) else None


def _shell(shell: Shell, limits: Limits) -> str | None:
    words = (*shell.argv, *(() if shell.script is None else (shell.script,)))
    if not words or (shell.script is None) == (not shell.argv) or not words[0]:
        return "command"
    if any(b"\0" in word for word in words):
        return "command"
    if max(map(len, words)) > limits.argument_bytes_max or sum(len(w) + 1 for w in words) > limits.arguments_bytes_max:
        return "command"
    if not shell.cwd.startswith(b"/") or b"\0" in shell.cwd or len(shell.cwd) > limits.path_bytes_max:
        return "cwd"
    if len(shell.stdin or b"") > limits.inline_bytes_max:
        return "stdin"
    file = shell.environment_file
    if file is not None and not (0 < len(file) <= limits.path_bytes_max and b"\0" not in file):
        return "env_from_file"
    broken = _environment(shell, limits)
    if broken is not None:
        return broken
    codes = (*shell.ok, *shell.retry_on, *shell.fail_on)
    return "exit codes" if any(not 0 <= code <= _EXIT_CODE_MAX for code in codes) else None


def _environment(shell: Shell, limits: Limits) -> str | None:
    size = 0
    for name, value in shell.environment:
        if not _names(name) or b"\0" in value or len(name) + len(value) + 1 > limits.argument_bytes_max:
            return "env"
        size += len(name) + len(value) + 2
    for name, reference in shell.secrets:
        scheme, _, rest = reference.partition(":")
        if not _names(name) or scheme not in SECRET_SCHEMES or not rest or len(reference) > limits.path_bytes_max:
            return "secret"
        size += len(name) + len(reference) + 2
    return None if size <= limits.environment_bytes_max else "env"


def _names(name: bytes) -> bool:
    return bool(name) and b"=" not in name and b"\0" not in name
