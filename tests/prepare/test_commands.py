"""The same wish is the same command: ids, bytes and hash; what is stated and what is captured (design §5)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec
import pytest

from nereus_cli.codec import decode_command, hash_stated
from nereus_cli.domain.identity import command_id_for, generated_command_id, message_id_for
from nereus_cli.domain.limits import PRODUCTION, TINY, Limits
from nereus_cli.domain.outcome import Reason
from nereus_cli.domain.records import (
    At,
    Cancel,
    Expiry,
    Hold,
    In,
    Now,
    Permission,
    Policy,
    Release,
    Reschedule,
    Schedule,
    Shell,
    Stated,
    Stop,
)
from nereus_cli.prepare import commands
from nereus_cli.prepare.wishes import Capture, ControlWish, Prepared, ShellWish, TimeWish, WishError
from tests.prepare.wishing import CAPTURE, NOW, SOON, control, refused, schedule, stated, wish

DAY = 86_400 * 10**9
OTHER = msgspec.structs.replace(
    CAPTURE, now=NOW + DAY, entropy=lambda size: b"\xff" * size, requested_by="bert", host="elsewhere",
    environment=((b"PATH", b"/x"),), umask=0, traceparent="t", decision=Permission("owner", 5),
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- identity


def test_the_ids_follow_from_each_other_or_are_made_together() -> None:
    made = schedule().command
    assert made.command_id == generated_command_id(NOW // 1_000_000, bytes(range(10)))
    assert made.stated == stated(message_id=message_id_for(made.command_id), command_id=made.command_id)
    assert schedule(message_id="m").command.command_id == command_id_for("m")
    assert stated(command_id="c").message_id == message_id_for("c")
    both = schedule(message_id="m", command_id="c").command
    assert (both.command_id, stated(message_id="m", command_id="c").message_id) == ("c", "m")


def test_only_what_was_made_just_now_cannot_be_a_repeat() -> None:
    assert schedule().fresh
    assert not schedule(message_id="m").fresh
    assert not schedule(command_id="c").fresh
    assert commands.cancel(control(), CAPTURE, PRODUCTION).fresh
    assert not commands.cancel(control(command_id="c"), CAPTURE, PRODUCTION).fresh


def test_the_same_line_with_the_printed_ids_is_the_same_command() -> None:
    first = schedule()
    again = schedule(OTHER, command_id=first.command.command_id)
    assert (again.command.command_id, again.command.command_hash) == (
        first.command.command_id, first.command.command_hash,
    )  # fmt: skip
    named = schedule(message_id="m")
    assert schedule(OTHER, message_id="m").command.command_hash == named.command.command_hash
    assert schedule(OTHER, message_id="m").command.command_id == named.command.command_id


@pytest.mark.parametrize("text", ["", "-x", "a.b", "a" * 129, "nc~x", "nm~x", "\u00e9", "a b"])
def test_ids_that_may_not_be_are_refused_by_the_flag_they_came_from(text: str) -> None:
    refused("id", message_id=text)
    refused("command-id", command_id=text)
    refused("key", key=text)
    with pytest.raises(WishError):
        commands.hold(control(message_id=text), CAPTURE, PRODUCTION)
    with pytest.raises(WishError):
        commands.hold(control(command_id=text), CAPTURE, PRODUCTION)


# ------------------------------------------------------------------------------------------------- stated, captured


def test_everything_that_can_be_said_is_stated() -> None:
    said = stated(
        message_id="m",
        time=TimeWish(at="2026-12-24T18:00:00+01:00", expires_after="2h", allow_past=True),
        target=ShellWish(
            argv=(b"cp", b"\xff"), cwd=b"/tmp", environment=(b"A=1", b"B="), environment_file=b"/e",
            secrets=("K=file:/k", "L=env:X"), stdin=b"in", ok="0,3", retry_on="75", fail_on="10-12",
        ),
        tags=("b=2", "a=1", "a=3", "c="), if_late="hold", late_after="5m", timeout="30s",
        max_attempts=4, retry_base="1s", retry_max="1m", retry_for="1h", on_uncertain="wait", priority=3,
    )  # fmt: skip
    second = 10**9
    assert said == Schedule(
        "m",
        At("2026-12-24T18:00:00+01:00"),
        Shell(
            (b"cp", b"\xff"), None, b"/tmp", ((b"A", b"1"), (b"B", b"")), b"/e",
            ((b"K", "file:/k"), (b"L", "env:X")), b"in", (0, 3), (75,), (10, 11, 12),
        ),
        Policy(30 * second, 4, second, 60 * second, 3600 * second, "wait"),
        priority=3,
        tags=(("a", "3"), ("b", "2"), ("c", "")),
        expiry=Expiry(after_ns=7200 * second),
        late_after_ns=300 * second,
        allow_past=True,
    )  # fmt: skip


def test_what_is_not_said_is_not_stated() -> None:
    assert stated(message_id="m") == Schedule("m", In("10m", 600 * 10**9), Shell((b"true",), cwd=b"/srv"))


def test_what_a_process_knows_of_itself_is_captured() -> None:
    at = TimeWish(at="2026-12-24T18:00:00Z", expires_at="2026-12-24T19:00:00Z")
    context = schedule(OTHER, time=at, reason="why", correlation="x").command.context
    assert (context.requested_by, context.requested_at, context.host) == ("bert", NOW + DAY, "elsewhere")
    assert (context.environment, context.umask) == (((b"PATH", b"/x"),), 0)
    assert (context.reason, context.correlation, context.traceparent) == ("why", "x", "t")
    assert context.decision == Permission("owner", 5)
    assert (context.instant, context.expiry_instant) == (1_798_135_200 * 10**9, 1_798_138_800 * 10**9)
    assert schedule().command.context.instant is None


SAID: dict[str, object] = {
    "time": TimeWish(delay="600s"),
    "target": ShellWish(argv=(b"true", b"")),
    "key": "k",
    "priority": 1,
    "tags": ("a=b",),
    "timeout": "1s",
    "max_attempts": 1,
    "retry_base": "1s",
    "retry_max": "1s",
    "retry_for": "1s",
    "on_uncertain": "wait",
}


def test_each_thing_said_makes_another_hash_and_each_thing_captured_does_not() -> None:
    plain = schedule(message_id="m").command.command_hash
    hashes = {schedule(message_id="m", **{name: value}).command.command_hash for name, value in SAID.items()}
    hashes |= {schedule(message_id="m", if_late="hold", late_after="1s").command.command_hash, plain}
    assert len(hashes) == len(SAID) + 2
    for said in ({"reason": "why"}, {"correlation": "x"}, {"if_late": "run"}):
        assert schedule(message_id="m", **said).command.command_hash == plain
    cwd = msgspec.structs.replace(CAPTURE, cwd=b"/elsewhere")
    assert schedule(cwd, message_id="m").command.command_hash != plain


def test_the_order_of_tags_and_exit_codes_means_nothing_and_that_of_the_environment_does() -> None:
    def hashed(**fields: object) -> bytes:
        return schedule(message_id="m", **fields).command.command_hash

    assert hashed(tags=("a=1", "b=2")) == hashed(tags=("b=2", "a=1"))
    codes = [ShellWish(argv=(b"x",), ok=text) for text in ("0,3-5", "5,4,3,0", "3,03,4,5,0")]
    assert len({hashed(target=target) for target in codes}) == 1
    orders = [ShellWish(argv=(b"x",), environment=pair) for pair in itertools.permutations((b"A=1", b"A=2"))]
    assert len({hashed(target=target) for target in orders}) == 2


# ------------------------------------------------------------------------------------------------------------ verbs


VERBS: list[tuple[Callable[[ControlWish, Capture, Limits], Prepared], Stated]] = [
    (commands.cancel, Cancel("m", 3)),
    (commands.hold, Hold("m", 3)),
    (commands.release, Release("m", 3)),
    (commands.run_now, Reschedule("m", Now(), 3)),
    (commands.reschedule, Reschedule("m", In("10m", 600 * 10**9), 3)),
    (lambda w, c, limits: commands.stop(w, c, limits, kill=True), Stop("m", 3, kill=True)),
    (lambda w, c, limits: commands.stop(w, c, limits, kill=False), Stop("m", 3)),
]


@pytest.mark.parametrize(("verb", "wanted"), VERBS)
def test_what_each_verb_states(verb: Callable[[ControlWish, Capture, Limits], Prepared], wanted: Stated) -> None:
    prepared = verb(control(if_version=3, command_id="c", reason="why"), CAPTURE, PRODUCTION)
    command = prepared.command
    assert (command.stated, command.command_id, command.context.reason) == (wanted, "c", "why")
    assert command.command_hash == hash_stated(wanted)
    assert command.context.environment == ()
    assert decode_command(prepared.payload) == command


def test_a_reschedule_may_say_its_expiry() -> None:
    time = TimeWish(at="2027-01-01T00:00:00Z", expires_at="2027-01-02T00:00:00Z", allow_past=True)
    command = commands.reschedule(control(time=time), CAPTURE, PRODUCTION).command
    assert command.stated == Reschedule(
        "m", At("2027-01-01T00:00:00Z"), expiry=Expiry(at=At("2027-01-02T00:00:00Z")), allow_past=True
    )
    assert (command.context.instant, command.context.expiry_instant) == (
        1_798_761_600 * 10**9, 1_798_848_000 * 10**9,
    )  # fmt: skip


def test_prepared_bytes_are_thawed_as_they_were() -> None:
    prepared = schedule()
    assert commands.thaw(prepared.payload) == msgspec.structs.replace(prepared, fresh=False)


# --------------------------------------------------------------------------------------------------------- refusals


def test_what_apply_is_bound_to_refuse_is_refused_where_the_ids_are_new() -> None:
    past = TimeWish(at="2020-01-01T00:00:00Z")
    far = TimeWish(at="2099-01-01T00:00:00Z")
    ends = TimeWish(at="2027-01-02T00:00:00Z", expires_at="2027-01-01T00:00:00Z")
    for time, field, reason in (
        (past, "at", Reason.PAST),
        (far, "at", Reason.TOO_FAR),
        (TimeWish(delay="3654d"), "in", Reason.TOO_FAR),
        (ends, "expires-at", Reason.EXPIRES_BEFORE_DELIVERY),
        (TimeWish(delay="1000d", expires_at="2027-01-01T00:00:00Z"), "expires-at", Reason.EXPIRES_BEFORE_DELIVERY),
    ):
        refused(field, reason, time=time)
        assert not schedule(time=time, message_id="m").fresh
    assert schedule(time=msgspec.structs.replace(past, allow_past=True)).fresh


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("in", {"time": TimeWish()}),
        ("in", {"time": TimeWish(delay="1h", at="noon")}),
        ("in", {"time": TimeWish(delay="soon")}),
        ("at", {"time": TimeWish(at="some day")}),
        ("tz", {"time": TimeWish(delay="1h", zone="UTC")}),
        ("tz", {"time": TimeWish(delay="1h", gap="later")}),
        ("tz", {"time": TimeWish(delay="1h", fold="first")}),
        ("expires-at", {"time": TimeWish(delay="1h", expires_after="1h", expires_at="noon")}),
        ("expires-at", {"time": TimeWish(delay="1h", expires_at="some day")}),
        ("expires-after", {"time": TimeWish(delay="1h", expires_after="soon")}),
        ("expires-after", {"time": TimeWish(delay="1h", expires_after="0s")}),
        ("if-late", {"if_late": "perhaps"}),
        ("late-after", {"if_late": "hold"}),
        ("late-after", {"late_after": "soon", "if_late": "hold"}),
        ("timeout", {"timeout": "soon"}),
        ("timeout", {"timeout": "0s"}),
        ("retry-base", {"retry_base": "x"}),
        ("retry-max", {"retry_max": "x"}),
        ("retry-for", {"retry_for": "x"}),
        ("on-uncertain", {"on_uncertain": "perhaps"}),
        ("on-uncertain", {"on_uncertain": "probe"}),
        ("max-attempts", {"max_attempts": 0}),
        ("key", {"key": "k", "priority": 1}),
        ("key", {"key": "k", "on_uncertain": "retry"}),
        ("priority", {"priority": 1_000_001}),
        ("tag", {"tags": ("a",)}),
        ("tag", {"tags": ("=a",)}),
        ("tags", {"tags": tuple(f"{n}=x" for n in range(65))}),
        ("env", {"target": ShellWish(argv=(b"x",), environment=(b"A",))}),
        ("env", {"target": ShellWish(argv=(b"x",), environment=(b"=A",))}),
        ("secret", {"target": ShellWish(argv=(b"x",), secrets=("A",))}),
        ("secret", {"target": ShellWish(argv=(b"x",), secrets=("=file:/x",))}),
        ("secret", {"target": ShellWish(argv=(b"x",), secrets=("A=vault:x",))}),
        ("secret", {"target": ShellWish(argv=(b"x",), secrets=("A=file:",))}),
        ("ok", {"target": ShellWish(argv=(b"x",), ok="x")}),
        ("ok", {"target": ShellWish(argv=(b"x",), ok="1,")}),
        ("ok", {"target": ShellWish(argv=(b"x",), ok="256")}),
        ("ok", {"target": ShellWish(argv=(b"x",), ok="9" * 5_000)}),
        ("ok", {"target": ShellWish(argv=(b"x",), ok="1-" + "9" * 5_000)}),
        ("ok", {"target": ShellWish(argv=(b"x",), ok="\u0661")}),
        ("retry-on", {"target": ShellWish(argv=(b"x",), retry_on="5-3")}),
        ("fail-on", {"target": ShellWish(argv=(b"x",), fail_on="-3")}),
        ("fail-on", {"target": ShellWish(argv=(b"x",), fail_on="3-")}),
        ("command", {"target": ShellWish()}),
        ("command", {"target": ShellWish(argv=(b"x" * 131_072,))}),
        ("cwd", {"target": ShellWish(argv=(b"x",), cwd=b"relative")}),
        ("stdin", {"target": ShellWish(argv=(b"x",), stdin=b"x" * 262_145)}),
        ("reason", {"reason": "x" * 4_097}),
        ("", {"reason": "\ud800"}),
        ("", {"tags": ("a=\udcff",)}),
        ("", {"priority": 1 << 70}),
        ("", {"max_attempts": -(1 << 70)}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_usage_is_refused_by_the_flag_and_in_one_line(field: str, fields: dict[str, object]) -> None:
    told = refused(field, message_id="m", **fields)
    assert told.isprintable()
    assert 0 < len(told) < 400


def test_what_would_not_fit_one_record_is_refused_before_it_is_tried() -> None:
    entries = tuple(b"%d=" % n for n in range(100, 280))
    target = ShellWish(argv=(b"x" * 1000, b"y" * 1000), environment=entries, stdin=b"i" * 2_000)
    capture = msgspec.structs.replace(
        CAPTURE, environment=tuple((b"%d" % n, b"") for n in range(100, 280)), cwd=b"/" * 4_000
    )
    with pytest.raises(WishError, match="fit one record"):
        commands.schedule(wish(target=target), capture, TINY)


def test_an_instant_beyond_every_clock_is_too_far() -> None:
    for text in ("9999-01-01T00:00:00Z", "@99999999999"):
        refused("at", Reason.TOO_FAR, time=TimeWish(at=text), message_id="m")


def test_a_wish_is_not_changed_by_being_prepared() -> None:
    before = wish(tags=("b=1", "a=2"))
    commands.schedule(before, CAPTURE, PRODUCTION)
    assert before == wish(tags=("b=1", "a=2"))
    assert TimeWish(delay="10m") == SOON
