"""Every limit, at its edge and just beyond."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nereus_cli.domain.checks import exceeds
from nereus_cli.domain.limits import PRODUCTION, TINY
from nereus_cli.domain.records import At, Cancel, Expiry, In, Now, Policy, Reschedule, Shell, Stated
from tests.domain.story import command, schedule

L = TINY
HORIZON = PRODUCTION.horizon_ns


def broken(stated: Stated, command_id: str = "c") -> str | None:
    return exceeds(command(stated, command_id), L)


@pytest.mark.parametrize(
    ("name", "fine", "beyond"),
    [
        ("requested_by", "a" * 128, "a" * 129),
        ("host", "\u00e9" * 64, "\u00e9" * 65),
        ("reason", "", "a" * 129),
        ("correlation", "a" * 128, "a" * 129),
        ("traceparent", "a" * 128, "a" * 129),
        ("environment", ((b"A", b"v" * 1021),), ((b"A", b"v" * 1022),)),
    ],
)
def test_what_was_captured(name: str, fine: object, beyond: object) -> None:
    for value, wanted in ((fine, None), (beyond, name)):
        plain = command(Cancel("m"), "c")
        captured = msgspec.structs.replace(plain.context, **{name: value})
        assert exceeds(msgspec.structs.replace(plain, context=captured), L) == wanted


@pytest.mark.parametrize(
    ("command_id", "message_id", "wanted"),
    [
        ("c", "m", None),
        ("c" * 128, "m" * 128, None),
        ("c" * 129, "m", "command_id"),
        ("", "m", "command_id"),
        ("nc~x", "m", "command_id"),
        ("c", "m.n", "message_id"),
        ("c", "nm~x", "message_id"),
        ("c", "", "message_id"),
    ],
)
def test_ids(command_id: str, message_id: str, wanted: str | None) -> None:
    assert broken(Cancel(message_id), command_id) == wanted
    assert broken(schedule(message_id), command_id) == wanted


FINE: list[dict[str, Any]] = [
    {"key": "k" * 128},
    {"priority": L.priority_max},
    {"priority": -L.priority_max},
    {"tags": (("a", "b" * 256),) * 64},
    {"late_after_ns": 0},
    {"late_after_ns": HORIZON},
    {"when": In("0s", 0)},
    {"when": In("t" * 128, 1)},
    {"when": At("t" * 128)},
    {"when": Now()},
    {"expiry": Expiry(after_ns=HORIZON)},
    {"expiry": Expiry(at=At("x"))},
    {"key": "k", "policy": Policy(on_uncertain="wait")},
    {"policy": Policy(max_attempts=L.attempts_max, timeout_ns=HORIZON, retry_base_ns=1)},
    {"policy": Policy(on_uncertain="probe")},
]
BEYOND: list[tuple[str, dict[str, Any]]] = [
    ("key", {"key": "k" * 129}),
    ("key", {"key": ""}),
    ("key", {"key": "k", "priority": 1}),
    ("key", {"key": "k", "policy": Policy(on_uncertain="retry")}),
    ("priority", {"priority": L.priority_max + 1}),
    ("priority", {"priority": -L.priority_max - 1}),
    ("tags", {"tags": (("a", "b"),) * 65}),
    ("tags", {"tags": (("a" * 257, "b"),)}),
    ("tags", {"tags": (("a", "\u00e9" * 129),)}),
    ("late_after", {"late_after_ns": -1}),
    ("late_after", {"late_after_ns": HORIZON + 1}),
    ("in", {"when": In("x", -1)}),
    ("in", {"when": In("t" * 129, 1)}),
    ("at", {"when": At("")}),
    ("at", {"when": At("t" * 129)}),
    ("expires_after", {"expiry": Expiry(after_ns=0)}),
    ("expires_after", {"expiry": Expiry(after_ns=HORIZON + 1)}),
    ("expires_after", {"expiry": Expiry(after_ns=1, at=At("x"))}),
    ("expires_at", {"expiry": Expiry(at=At(""))}),
    ("max_attempts", {"policy": Policy(max_attempts=0)}),
    ("max_attempts", {"policy": Policy(max_attempts=L.attempts_max + 1)}),
    ("on_uncertain", {"policy": Policy(on_uncertain="perhaps")}),
    *((name, {"policy": msgspec.structs.replace(Policy(), **{f"{name}_ns": value})})
      for name in ("timeout", "retry_base", "retry_max", "retry_for") for value in (0, -1, HORIZON + 1)),
]  # fmt: skip
SHELL_FINE: list[dict[str, Any]] = [
    {"argv": (b"x" * 1024,)},
    {"argv": (b"x", b"")},
    {"argv": (b"x" * 1022, b"y" * 1024)},
    {"argv": (), "script": b"exit 3"},
    {"cwd": b"/" * 4095},
    {"stdin": b"x" * 2048},
    {"environment": ((b"A", b"v" * 1021),)},
    {"environment_file": b"f"},
    {"secrets": ((b"A", "file:/x"), (b"B", "env:X"), (b"C", "credential:x"))},
    {"ok": (0, 255)},
]
SHELL_BEYOND: list[tuple[str, dict[str, Any]]] = [
    ("command", {"argv": ()}),
    ("command", {"script": b"x"}),
    ("command", {"argv": (), "script": b""}),
    ("command", {"argv": (b"", b"x")}),
    ("command", {"argv": (b"x\0",)}),
    ("command", {"argv": (), "script": b"x\0"}),
    ("command", {"argv": (b"x" * 1025,)}),
    ("command", {"argv": (b"x" * 1023, b"y" * 1024)}),
    ("cwd", {"cwd": b"relative"}),
    ("cwd", {"cwd": b""}),
    ("cwd", {"cwd": b"/\0"}),
    ("cwd", {"cwd": b"/" * 4096}),
    ("stdin", {"stdin": b"x" * 2049}),
    ("env_from_file", {"environment_file": b""}),
    ("env_from_file", {"environment_file": b"a\0"}),
    ("env_from_file", {"environment_file": b"a" * 4096}),
    ("env", {"environment": ((b"", b"v"),)}),
    ("env", {"environment": ((b"A=B", b"v"),)}),
    ("env", {"environment": ((b"A\0", b"v"),)}),
    ("env", {"environment": ((b"A", b"\0"),)}),
    ("env", {"environment": ((b"A", b"v" * 1023),)}),
    ("env", {"environment": ((b"A", b"v" * 510), (b"B", b"v" * 510))}),
    ("env", {"environment": ((b"A", b"v" * 1020),), "secrets": ((b"B", "env:X"),)}),
    ("secret", {"secrets": ((b"", "file:/x"),)}),
    ("secret", {"secrets": ((b"A=", "file:/x"),)}),
    ("secret", {"secrets": ((b"A", "literal"),)}),
    ("secret", {"secrets": ((b"A", "vault:x"),)}),
    ("secret", {"secrets": ((b"A", "file:"),)}),
    ("secret", {"secrets": ((b"A", "file:" + "x" * 4095),)}),
    ("exit codes", {"ok": (256,)}),
    ("exit codes", {"retry_on": (-1,)}),
    ("exit codes", {"fail_on": (1, 999)}),
]


@pytest.mark.parametrize("fields", FINE, ids=str)
def test_what_a_schedule_may_say(fields: dict[str, Any]) -> None:
    assert broken(msgspec.structs.replace(schedule(), **fields)) is None


@pytest.mark.parametrize(("name", "fields"), BEYOND, ids=str)
def test_what_a_schedule_may_not_say(name: str, fields: dict[str, Any]) -> None:
    assert broken(msgspec.structs.replace(schedule(), **fields)) == name


@pytest.mark.parametrize("fields", SHELL_FINE, ids=str)
def test_what_a_shell_may_be(fields: dict[str, Any]) -> None:
    shell = Shell(**({"argv": (b"x",)} | fields))
    assert broken(schedule(target=shell)) is None
    assert broken(Reschedule("m", Now(), target=shell)) is None


@pytest.mark.parametrize(("name", "fields"), SHELL_BEYOND, ids=str)
def test_what_a_shell_may_not_be(name: str, fields: dict[str, Any]) -> None:
    shell = Shell(**({"argv": (b"x",)} | fields))
    assert broken(schedule(target=shell)) == name
    assert broken(Reschedule("m", Now(), target=shell)) == name


@pytest.mark.parametrize(
    ("name", "fields"), [row for row in BEYOND if row[1].keys() <= {"when", "expiry", "policy"}], ids=str
)
def test_a_reschedule_keeps_the_same_limits(name: str, fields: dict[str, Any]) -> None:
    assert broken(msgspec.structs.replace(Reschedule("m", Now()), **fields)) == name


def test_a_reschedule_that_keeps_them() -> None:
    assert broken(Reschedule("m", In("1s", 1), expiry=Expiry(after_ns=1), policy=Policy(max_attempts=2))) is None
