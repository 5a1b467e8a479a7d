"""Times as typed to what a command says of them; refusals name the flag."""

from __future__ import annotations

from nereus_cli.domain.outcome import Reason
from nereus_cli.domain.records import At, Expiry, In, Now, When
from nereus_cli.prepare.wishes import Capture, ScheduleWish, TimeWish, WishError
from nereus_cli.wish.duration import parse_duration
from nereus_cli.wish.instant import Resolved, parse_instant
from nereus_cli.wish.refusal import Refusal


def when(time: TimeWish, capture: Capture) -> tuple[When, Resolved | None]:
    """What was said of the time, and the instant a calendar time resolves to; a delay resolves in apply."""
    if (time.delay is None) == (time.at is None):
        msg = "say either --in DURATION or --at TIME"
        raise WishError(msg, field="in")
    if time.delay is not None:
        if time.zone is not None or time.gap is not None or time.fold is not None:
            msg = "--tz, --gap and --fold belong to --at: a duration has no zone (a day is 24 h)"
            raise WishError(msg, field="tz")
        return In(time.delay, _duration(time.delay, "in")), None
    text = time.at or ""
    resolved = _instant(text, time, capture, "at")
    return At(text, time.zone, time.gap, time.fold), resolved


def when_or_now(time: TimeWish, capture: Capture) -> tuple[When, Resolved | None]:
    """As ``when``, but saying nothing means at once."""
    if time.delay is not None or time.at is not None:
        return when(time, capture)
    if time.zone is not None or time.gap is not None or time.fold is not None:
        msg = "--tz, --gap and --fold belong to --at"
        raise WishError(msg, field="tz")
    return Now(), None


def expiry(time: TimeWish, capture: Capture) -> tuple[Expiry, int | None]:
    """What was said of the last instant for an attempt, and what a calendar time resolves to."""
    if time.expires_after is not None and time.expires_at is not None:
        msg = "say either --expires-after or --expires-at"
        raise WishError(msg, field="expires-at")
    if time.expires_after is not None:
        return Expiry(after_ns=_duration(time.expires_after, "expires-after")), None
    if time.expires_at is None:
        return Expiry(), None
    resolved = _instant(time.expires_at, time, capture, "expires-at")
    return Expiry(at=At(time.expires_at, time.zone, time.gap, time.fold)), resolved.instant_ns


def _duration(text: str, field: str) -> int:
    try:
        return parse_duration(text)
    except Refusal as refusal:
        raise _refused(refusal, field) from None


def _instant(text: str, time: TimeWish, capture: Capture, field: str) -> Resolved:
    try:
        resolved = parse_instant(text, zone=time.zone, gap=time.gap, fold=time.fold, now_ns=capture.now)
    except Refusal as refusal:
        raise _refused(refusal, field) from None
    if not -(1 << 63) <= resolved.instant_ns < 1 << 63:
        msg = f"--{field}: that is beyond every horizon (10 years)"
        raise WishError(msg, field=field, reason=Reason.TOO_FAR)
    return resolved


def _refused(refusal: Refusal, field: str) -> WishError:
    reason = Reason.TOO_FAR if refusal.code == "TOO_FAR" else None
    return WishError(f"--{field}: {refusal.message}", field=field, reason=reason, refusal=refusal)


def optional_duration(text: str | None, field: str) -> int | None:
    """Nanoseconds, or None for what was not said."""
    return None if text is None else _duration(text, field)


def lateness(wish: ScheduleWish) -> int | None:
    """How late is too late to run without being asked, or None where late work runs."""
    if wish.if_late not in (None, "run", "hold"):
        msg = "--if-late takes run or hold"
        raise WishError(msg, field="if-late")
    if wish.if_late == "hold" and wish.late_after is None:
        msg = "--if-late hold needs --late-after DURATION"
        raise WishError(msg, field="late-after")
    late_after = optional_duration(wish.late_after, "late-after")
    return late_after if wish.if_late == "hold" else None
