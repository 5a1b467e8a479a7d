"""What to deliver and under which policy, from flags."""

from __future__ import annotations

from nereus_cli.domain.records import Policy, Shell
from nereus_cli.prepare.times import optional_duration
from nereus_cli.prepare.wishes import Capture, ScheduleWish, ShellWish, WishError


def policy(wish: ScheduleWish) -> Policy:
    """How often and how long; what was not stated stays unstated."""
    if wish.on_uncertain not in (None, "retry", "wait", "probe"):
        msg = "--on-uncertain takes retry, wait or probe"
        raise WishError(msg, field="on-uncertain")
    if wish.on_uncertain == "probe":
        msg = "--on-uncertain probe needs a named destination that declares one"
        raise WishError(msg, field="on-uncertain")
    return Policy(
        timeout_ns=optional_duration(wish.timeout, "timeout"),
        max_attempts=wish.max_attempts,
        retry_base_ns=optional_duration(wish.retry_base, "retry-base"),
        retry_max_ns=optional_duration(wish.retry_max, "retry-max"),
        retry_for_ns=optional_duration(wish.retry_for, "retry-for"),
        on_uncertain=wish.on_uncertain,
    )


def shell(wish: ShellWish, capture: Capture) -> Shell:
    """What to run, and where: the working directory is part of what was stated."""
    environment = []
    for entry in wish.environment:
        name, separator, value = entry.partition(b"=")
        if not name or not separator:
            msg = "--env takes NAME=VALUE"
            raise WishError(msg, field="env")
        environment.append((name, value))
    return Shell(
        argv=wish.argv,
        script=wish.script,
        cwd=capture.cwd if wish.cwd is None else wish.cwd,
        environment=tuple(environment),
        environment_file=wish.environment_file,
        secrets=tuple(_secret(entry) for entry in wish.secrets),
        stdin=wish.stdin,
        ok=parse_codes(wish.ok, "ok"),
        retry_on=parse_codes(wish.retry_on, "retry-on"),
        fail_on=parse_codes(wish.fail_on, "fail-on"),
    )


def _secret(entry: str) -> tuple[bytes, str]:
    name, _, reference = entry.partition("=")
    scheme, _, rest = reference.partition(":")
    if not name or scheme not in ("file", "env", "credential") or not rest:
        msg = "--secret takes NAME=file:PATH, NAME=env:NAME or NAME=credential:NAME"
        raise WishError(msg, field="secret")
    return name.encode("utf-8", "surrogateescape"), reference


def parse_codes(text: str, field: str) -> tuple[int, ...]:
    """Exit codes as typed, ``0,3,10-12``, as sorted numbers."""
    codes: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.strip().partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            msg = f"--{field} takes exit codes such as 0,3,10-12"
            raise WishError(msg, field=field)
        low, high = (int(text.lstrip("0")[:4] or "0") for text in (first, last or first))
        if high > 255 or low > high:  # noqa: PLR2004 -- the largest exit status there is
            msg = f"--{field}: exit codes run from 0 to 255"
            raise WishError(msg, field=field)
        codes.update(range(low, high + 1))
    return tuple(sorted(codes))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def tags(entries: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Pairs by name, so that the order of the flags means nothing; of a name said twice the last one counts."""
    tags = {}
    for entry in entries:
        name, separator, value = entry.partition("=")
        if not name or not separator:
            msg = "--tag takes NAME=VALUE"
            raise WishError(msg, field="tag")
        tags[name] = value
    return tuple(sorted(tags.items()))
