"""One record of each kind, with every field said."""

from __future__ import annotations

from typing import Final

from nereus_cli.codec import hash_stated
from nereus_cli.domain.outcome import Basis, Code, Disposition, SideEffect
from nereus_cli.domain.records import (
    Admission,
    At,
    Cancel,
    Catalog,
    ClockStep,
    ClockTrust,
    Command,
    Context,
    Destination,
    Evidence,
    Expire,
    Expiry,
    Floor,
    Hold,
    In,
    LaneControl,
    LateHold,
    Mutation,
    Named,
    Now,
    Outcome,
    OwnerAcquired,
    Permission,
    Policy,
    Release,
    Replay,
    Reschedule,
    Resolve,
    Retire,
    Schedule,
    Shell,
    Stated,
    Stop,
    TimeFence,
    Usage,
    Webhook,
)

CONTEXT: Final = Context(
    requested_by="anna",
    requested_at=1_800_000_000_000_000_000,
    host="host",
    reason="why",
    correlation="x-1",
    traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    decision=Permission("owner", 1000, sudo_uid=1001, store_mode=0o700),
    environment=((b"PATH", b"/bin"), (b"ODD", b"\xff")),
    umask=0o077,
    instant=1_800_000_060_000_000_000,
    expiry_instant=1_800_000_120_000_000_000,
    zone_rule="CET-1CEST",
    zone_data="2026a",
)
_SHELL: Final = Shell(
    argv=(b"cp", b"\xff", b""),
    cwd=b"/srv",
    environment=((b"A", b"1"),),
    environment_file=b"/etc/x.env",
    secrets=((b"KEY", "file:/run/key"),),
    stdin=b"in\0put",
    ok=(0, 3),
    retry_on=(75,),
    fail_on=(64, 70),
)
_POLICY: Final = Policy(30, 8, 1_000, 3_600_000, 86_400_000, "wait")

STATED: Final[dict[str, Stated]] = {
    "schedule": Schedule(
        "m", At("2027-01-15T08:00", "Europe/Berlin", "earlier", "first"), _SHELL, _POLICY,
        key="k", priority=-2, tags=(("a", "b"), ("c", "")), expiry=Expiry(at=At("tomorrow")),
        late_after_ns=5, allow_past=True,
    ),
    "schedule, least": Schedule("m", In("1h30m", 5_400_000_000_000), Shell(argv=(b"true",))),
    "schedule, script": Schedule("m", Now(), Shell(script=b"exit 3"), expiry=Expiry(after_ns=7)),
    "schedule, webhook": Schedule(
        "m", In("1s", 10**9),
        Webhook("https://localhost/x", "PUT", (("a", "b"),), (("c", "env:D"),), b"body", allow_http=True),
    ),
    "schedule, named": Schedule("m", In("1s", 10**9), Named("backup", b"body")),
    "cancel": Cancel("m", 3),
    "reschedule": Reschedule("m", Now(), 3, Expiry(after_ns=9), allow_past=True, target=_SHELL, policy=_POLICY),
    "hold": Hold("m", 3),
    "release": Release("m", 3),
    "stop": Stop("m", 3, kill=True),
    "resolve": Resolve("m", 2, "published", "a receipt", "anna", 3),
    "replay": Replay("m", In("1s", 10**9), accept_duplicate=True, new_key=True, if_version=3),
    "lane": LaneControl("shell", "pause", At("noon")),
    "destination": Destination("backup", "add", (("url", "https://localhost"),)),
    "clock-trust": ClockTrust("a watch"),
}  # fmt: skip
MUTATIONS: Final[dict[str, Mutation]] = {
    "owner": OwnerAcquired("host", 7, 1 << 40, "0.1.0"),
    "admission": Admission("m", 1, "na~1", b"\x01" * 32, 10, 12, "bounded", 5, 2),
    "outcome": Outcome(
        "m", "na~1", SideEffect.NOT_PUBLISHED, Code.EXIT_NONZERO, Disposition.RETRIABLE, Basis.REFUSED,
        3, 9, 503, 2, 11, 12, "no", Usage(0.25, 0.5, 1024, 1, 2, 3, 4, 5), 6,
    ),
    "outcome, least": Outcome("m", "na~1", SideEffect.UNKNOWN, Code.NO_EVIDENCE, Disposition.UNCERTAIN),
    "evidence": Evidence("m", "na~1", SideEffect.PUBLISHED, "seen"),
    "expire": Expire("m", 1, 10),
    "late-hold": LateHold("m", 1, 10),
    "time-fence": TimeFence(10),
    "clock-step": ClockStep(10, 12),
    "catalog": Catalog("c-1", 4, b"\x02" * 32),
    "floor": Floor(4),
    "retire": Retire(("m", "n")),
}  # fmt: skip


def sample(stated: Stated, context: Context = CONTEXT) -> Command:
    """The command that says it."""
    return Command("c-1", hash_stated(stated), stated, context)
