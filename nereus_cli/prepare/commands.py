"""From wish to prepared command: what was stated, a clock reading and entropy in; frozen bytes out."""

from __future__ import annotations

from typing import Final

import msgspec

from nereus_cli.codec import decode_command, encode_command, hash_stated
from nereus_cli.domain.checks import exceeds
from nereus_cli.domain.limits import Limits
from nereus_cli.domain.message import GIVE_UP
from nereus_cli.domain.outcome import Reason
from nereus_cli.domain.records import (
    Cancel,
    Command,
    Context,
    Hold,
    In,
    Now,
    Release,
    Replay,
    Reschedule,
    Resolve,
    Schedule,
    Stated,
    Stop,
)
from nereus_cli.prepare import identities, targets, times
from nereus_cli.prepare.wishes import (
    Capture,
    ControlWish,
    Prepared,
    ReplayWish,
    ResolveWish,
    ScheduleWish,
    WishError,
)
from nereus_cli.wish.instant import Resolved

_ALLOW_PAST: Final = "--allow-past delivers it at once"


def schedule(wish: ScheduleWish, capture: Capture, limits: Limits) -> Prepared:
    """Prepares a Schedule; raises WishError."""
    command_id, message_id, fresh = identities.identities(wish.command_id, wish.message_id, capture)
    when, instant = times.when(wish.time, capture)
    expiry, expiry_instant = times.expiry(wish.time, capture)
    stated = Schedule(
        message_id=message_id,
        when=when,
        target=targets.shell(wish.target, capture),
        policy=targets.policy(wish),
        key=identities.checked_id(wish.key, "key"),
        priority=wish.priority,
        tags=targets.tags(wish.tags),
        expiry=expiry,
        late_after_ns=times.lateness(wish),
        allow_past=wish.time.allow_past,
    )
    context = _context(capture, wish.reason, instant, expiry_instant, correlation=wish.correlation)
    context = msgspec.structs.replace(context, environment=capture.environment, umask=capture.umask)
    return _freeze(command_id, stated, context, limits, fresh=fresh)


def reschedule(wish: ControlWish, capture: Capture, limits: Limits) -> Prepared:
    """Prepares a Reschedule; raises WishError."""
    command_id, fresh = identities.control_identity(wish, capture)
    when, instant = times.when(wish.time, capture)
    expiry, expiry_instant = times.expiry(wish.time, capture)
    stated = Reschedule(
        identities.message(wish), when, if_version=wish.if_version, expiry=expiry, allow_past=wish.time.allow_past
    )
    context = _context(capture, wish.reason, instant, expiry_instant)
    return _freeze(command_id, stated, context, limits, fresh=fresh)


def run_now(wish: ControlWish, capture: Capture, limits: Limits) -> Prepared:
    """Prepares a Reschedule to its own ``persisted_at``; raises WishError."""
    stated = Reschedule(identities.message(wish), Now(), if_version=wish.if_version)
    return _plain(stated, wish, capture, limits)


def cancel(wish: ControlWish, capture: Capture, limits: Limits) -> Prepared:
    """Prepares a Cancel; raises WishError."""
    return _plain(Cancel(identities.message(wish), wish.if_version), wish, capture, limits)


def hold(wish: ControlWish, capture: Capture, limits: Limits) -> Prepared:
    """Prepares a Hold; raises WishError."""
    return _plain(Hold(identities.message(wish), wish.if_version), wish, capture, limits)


def release(wish: ControlWish, capture: Capture, limits: Limits) -> Prepared:
    """Prepares a Release; raises WishError."""
    return _plain(Release(identities.message(wish), wish.if_version), wish, capture, limits)


def stop(wish: ControlWish, capture: Capture, limits: Limits, *, kill: bool) -> Prepared:
    """Prepares a Stop; raises WishError."""
    return _plain(Stop(identities.message(wish), wish.if_version, kill), wish, capture, limits)


def resolve(wish: ResolveWish, capture: Capture, limits: Limits) -> Prepared:
    """Prepares a Resolve; raises WishError. Who asks is not part of what was said: a colleague may repeat the line."""
    if wish.attempt is None and wish.verdict != GIVE_UP:
        msg = f"--{wish.verdict} is said of one attempt: --attempt N (nereus uncertain shows its number)"
        raise WishError(msg, field="attempt")
    if not wish.evidence.strip():
        msg = "say what shows it: --evidence TEXT"
        raise WishError(msg, field="evidence")
    if wish.by is not None and not wish.by.strip():
        msg = "--by takes a name"
        raise WishError(msg, field="by")
    stated = Resolve(
        identities.message(wish),
        wish.attempt or 0,
        wish.verdict,
        wish.evidence,
        by=wish.by or "",
        if_version=wish.if_version,
    )
    return _plain(stated, wish, capture, limits)


def replay(wish: ReplayWish, capture: Capture, limits: Limits) -> Prepared:
    """Prepares a Replay; raises WishError."""
    command_id, fresh = identities.control_identity(wish, capture)
    when, instant = times.when_or_now(wish.time, capture)
    stated = Replay(
        identities.message(wish),
        when,
        accept_duplicate=wish.accept_duplicate,
        new_key=wish.new_key,
        if_version=wish.if_version,
    )
    return _freeze(command_id, stated, _context(capture, wish.reason, instant, None), limits, fresh=fresh)


def thaw(payload: bytes) -> Prepared:
    """A command prepared earlier, perhaps elsewhere; raises the errors of the codec."""
    return Prepared(decode_command(payload), payload)


def _plain(stated: Stated, wish: ControlWish, capture: Capture, limits: Limits) -> Prepared:
    command_id, fresh = identities.control_identity(wish, capture)
    return _freeze(command_id, stated, _context(capture, wish.reason, None, None), limits, fresh=fresh)


def _freeze(command_id: str, stated: Stated, context: Context, limits: Limits, *, fresh: bool) -> Prepared:
    try:
        command = Command(command_id, hash_stated(stated), stated, context)
        payload = encode_command(command)
    except UnicodeEncodeError as error:
        raise WishError("text has to be UTF-8") from error
    except OverflowError as error:
        raise WishError("a number is outside its limits") from error
    broken = exceeds(command, limits)
    if broken is not None:
        raise WishError(_limit_message(broken, limits), field=broken.replace("_", "-"))
    if len(payload) > limits.record_bytes_max:
        msg = f"all of it together is {len(payload)} bytes, and {limits.record_bytes_max} fit one record"
        raise WishError(msg, field="command")
    if fresh and isinstance(stated, Schedule | Reschedule | Replay):
        _check_time(stated, context, limits)
    return Prepared(command, payload, fresh)


def _check_time(stated: Schedule | Reschedule | Replay, context: Context, limits: Limits) -> None:
    """What apply would refuse, said while somebody listens: these ids are new, so no earlier answer is repeated."""
    instant = context.instant
    if isinstance(stated.when, In):
        instant = context.requested_at + stated.when.delay_ns
    if instant is None:
        return
    if instant < context.requested_at and not (isinstance(stated, Schedule | Reschedule) and stated.allow_past):
        remedy = "without --at it is delivered at once" if isinstance(stated, Replay) else _ALLOW_PAST
        msg = f"that time is past; {remedy}"
        raise WishError(msg, field="at", reason=Reason.PAST)
    if instant - context.requested_at > limits.horizon_ns:
        msg = "that time is more than 10 years (3653 days) ahead"
        raise WishError(msg, field="in" if isinstance(stated.when, In) else "at", reason=Reason.TOO_FAR)
    ends = context.expiry_instant
    if ends is not None and ends <= instant:
        msg = "it would expire before its delivery time"
        raise WishError(msg, field="expires-at", reason=Reason.EXPIRES_BEFORE_DELIVERY)


def _limit_message(broken: str, limits: Limits) -> str:
    sizes = {
        "command": f"a command needs 1 to {limits.argument_bytes_max} bytes an argument, "
        f"{limits.arguments_bytes_max} in all, and no NUL: larger input goes through --stdin",
        "stdin": f"stdin is limited to {limits.inline_bytes_max} bytes",
        "env": f"an environment entry is NAME=VALUE without NUL, at most {limits.environment_bytes_max} bytes in all",
        "environment": f"the captured environment is limited to {limits.environment_bytes_max} bytes",
        "key": "with --key, neither --priority nor --on-uncertain retry: both could break its order",
        "max_attempts": f"--max-attempts takes 1 to {limits.attempts_max}",
        "tags": f"at most {limits.tags_max} tags of {limits.tag_bytes_max} bytes",
        "cwd": "the working directory must be an absolute path",
        "env_from_file": "--env-from-file needs the path of a file",
        "exit codes": "exit codes run from 0 to 255",
        "evidence": f"--evidence takes 1 to {limits.text_bytes_max} bytes",
        "by": f"--by takes at most {limits.text_bytes_max} bytes",
    }
    return sizes.get(broken, f"{broken.replace('_', '-')} is outside its limits")


def _context(
    capture: Capture, reason: str, resolved: Resolved | None, expiry_instant: int | None, *, correlation: str = ""
) -> Context:
    return Context(
        requested_by=capture.requested_by,
        requested_at=capture.now,
        host=capture.host,
        reason=reason,
        correlation=correlation,
        traceparent=capture.traceparent,
        decision=capture.decision,
        instant=None if resolved is None else resolved.instant_ns,
        expiry_instant=expiry_instant,
        zone_rule="" if resolved is None else resolved.rule or "",
        zone_data="" if resolved is None else resolved.zone_data_version or "",
    )
