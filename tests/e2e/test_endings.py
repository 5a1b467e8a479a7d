"""How children end, and what is claimed of it: each row of the outcome table through the whole product."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.conftest import Shop


class Ending(NamedTuple):
    """A command, and what its one attempt must say."""

    arguments: tuple[str, ...]
    state: str
    side_effect: str
    basis: str | None
    disposition: str
    code: str
    exit_code: int | None = None
    signal: int | None = None


def shell(text: str, *flags: str) -> tuple[str, ...]:
    return (*flags, "--", "sh", "-c", text)


ENDINGS = {
    "exit-0": Ending(shell("exit 0"), "PUBLISHED", "PUBLISHED", None, "NONE", "EXIT_0", 0),
    "exit-1": Ending(shell("exit 1"), "DEAD_LETTER", "NOT_PUBLISHED", "REFUSED", "RETRIABLE", "EXIT_NONZERO", 1),
    "exit-75": Ending(shell("exit 75"), "DEAD_LETTER", "NOT_PUBLISHED", "REFUSED", "RETRIABLE", "EXIT_NONZERO", 75),
    "exit-64": Ending(shell("exit 64"), "DEAD_LETTER", "NOT_PUBLISHED", "REFUSED", "PERMANENT", "EXIT_NONZERO", 64),
    "exit-127": Ending(
        shell("no-such-one"), "DEAD_LETTER", "NOT_PUBLISHED", "REFUSED", "PERMANENT", "EXIT_NONZERO", 127,
    ),
    "ok-3": Ending(shell("exit 3", "--ok", "3,5-7"), "PUBLISHED", "PUBLISHED", None, "NONE", "EXIT_NONZERO", 3),
    "fail-on-9": Ending(
        shell("exit 9", "--fail-on", "9", "--max-attempts", "5"),
        "DEAD_LETTER", "NOT_PUBLISHED", "REFUSED", "PERMANENT", "EXIT_NONZERO", 9,
    ),
    "signal": Ending(shell("kill -9 $$"), "UNCERTAIN", "UNKNOWN", None, "UNCERTAIN", "SIGNALED", None, signal.SIGKILL),
    "in-shell": Ending(
        ("--shell", "sh -c 'kill -15 $$'; exit $?"),
        "UNCERTAIN", "UNKNOWN", None, "UNCERTAIN", "SIGNALED_IN_SHELL", 143,
    ),
    "timeout": Ending(
        shell("exec sleep 60", "--timeout", "300ms"),
        "UNCERTAIN", "UNKNOWN", None, "UNCERTAIN", "TIMED_OUT", None, signal.SIGTERM,
    ),
    "stubborn": Ending(
        shell("trap '' TERM; while :; do sleep 0.05; done", "--timeout", "300ms"),
        "UNCERTAIN", "UNKNOWN", None, "UNCERTAIN", "TIMED_OUT", None, signal.SIGKILL,
    ),
    "not-found": Ending(
        ("--", "/nowhere/at-all"), "DEAD_LETTER", "NOT_PUBLISHED", "NOT_SENT", "PERMANENT", "NOT_STARTABLE",
    ),
    "not-executable": Ending(
        ("--", "/etc/passwd"), "DEAD_LETTER", "NOT_PUBLISHED", "NOT_SENT", "PERMANENT", "NOT_STARTABLE",
    ),
    "cwd-missing": Ending(
        ("--cwd", "/nowhere/at-all", "--", "true"),
        "DEAD_LETTER", "NOT_PUBLISHED", "NOT_SENT", "PERMANENT", "NOT_STARTABLE",
    ),
    "secret-missing": Ending(
        ("--secret", "TOKEN=file:/nowhere/at-all", "--", "true"),
        "DEAD_LETTER", "NOT_PUBLISHED", "NOT_SENT", "PERMANENT", "NOT_STARTABLE",
    ),
    "background": Ending(shell("sleep 60 & exit 0"), "PUBLISHED", "PUBLISHED", None, "NONE", "EXIT_0", 0),
}  # fmt: skip


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """All of them through one daemon; the status of ``run`` stands under the empty name."""
    from tests.e2e.calls import Caller

    place = tmp_path_factory.mktemp("endings")
    place.chmod(0o700)
    with Caller(place / "store", place) as caller:
        shop = Shop(place, caller)
        for name, ending in ENDINGS.items():
            assert shop.schedule(name, *ending.arguments).status == 0, name
        found: dict[str, dict[str, Any]] = {"": {"status": shop.run("--until-idle", "--grace", "500ms")}}
        found |= {name: shop.show(name) for name in ENDINGS}
        shop.close()
    return found


@pytest.mark.parametrize("name", ENDINGS)
def test_an_ending_says_what_it_proves(settled: dict[str, dict[str, Any]], name: str) -> None:
    ending, message = ENDINGS[name], settled[name]
    assert message["state"] == ending.state
    assert len(message["attempts"]) == 1
    attempt = message["attempts"][0]
    keys = ("side_effect", "basis", "disposition", "code", "exit_code", "signal")
    assert {key: attempt[key] for key in keys} == {key: getattr(ending, key) for key in keys}
    assert attempt["number"] == 1
    assert attempt["admitted_position"] > 0


def test_people_are_needed_when_something_is_uncertain_or_dead(settled: dict[str, dict[str, Any]]) -> None:
    assert settled[""]["status"] == 30


def test_a_failure_that_may_pass_is_tried_again_and_numbered_on(shop: Shop) -> None:
    flags = ("--max-attempts", "3", "--retry-base", "10ms", "--retry-max", "20ms")
    count = shop.place / "count"
    shop.schedule("heals", *flags, *shell(f"echo x >> {count}; [ $(wc -l < {count}) -ge 3 ]"))
    shop.schedule("never", *flags, *shell("exit 1"))
    assert shop.run("--until-idle") == 30
    heals, never = shop.show("heals"), shop.show("never")
    assert (heals["state"], [a["number"] for a in heals["attempts"]]) == ("PUBLISHED", [1, 2, 3])
    assert [a["side_effect"] for a in heals["attempts"]] == ["NOT_PUBLISHED", "NOT_PUBLISHED", "PUBLISHED"]
    assert (never["state"], never["reason"], len(never["attempts"])) == ("DEAD_LETTER", "EXHAUSTED", 3)


def test_what_a_child_is_told_and_nothing_else(shop: Shop) -> None:
    out = shop.place / "environment"
    receipt = shop.schedule(
        "told", "--timeout", "30s", "--env", "A=x\ny", "--env", "B==", "--env", "C=", *shell(f"env -0 > {out}")
    )
    assert receipt.status == 0
    assert shop.run("--until-idle") == 0
    pairs = dict(entry.partition(b"=")[::2] for entry in out.read_bytes().split(b"\0") if entry)
    message = shop.show("told")
    told = {name: pairs.pop(name).decode() for name in sorted(pairs) if name.startswith(b"NEREUS_")}
    attempt = message["attempts"][0]
    deadline = told.pop(b"NEREUS_DEADLINE")
    assert told == {
        b"NEREUS_MESSAGE_ID": "told",
        b"NEREUS_GENERATION": "0",
        b"NEREUS_ATTEMPT": "1",
        b"NEREUS_ATTEMPT_ID": attempt["attempt_id"],
        b"NEREUS_IDEMPOTENCY_KEY": "told:0",
        b"NEREUS_DELIVER_AT": message["deliver_at"],
        b"NEREUS_DUPLICATE_RISK": "none",
    }
    assert deadline > attempt["admitted_at"]
    assert (pairs.pop(b"A"), pairs.pop(b"B"), pairs.pop(b"C")) == (b"x\ny", b"=", b"")
    made_by_sh = {b"PWD", b"SHLVL", b"_", b"OLDPWD"}
    allowed = {b"HOME", b"LANG", b"LANGUAGE", b"LOGNAME", b"PATH", b"SHELL", b"TZ", b"USER", b"TMPDIR"}
    assert {name for name in pairs if name not in made_by_sh | allowed and not name.startswith(b"LC_")} == set()


def test_output_is_kept_as_bytes_up_to_a_bound(shop: Shop) -> None:
    made = shop.place / "made"
    made.write_bytes(bytes(range(256)) * 20_000)
    shop.schedule("loud", *shell(f"cat {made}; cat {made} >&2"))
    shop.schedule("quiet", *shell("printf 'one\\377\\n'; printf two >&2"))
    assert shop.run("--until-idle") == 0
    loud, quiet = shop.call("logs", "loud").document(), shop.call("logs", "quiet").document()
    assert loud["stdout_bytes"] == loud["stderr_bytes"] == 5_120_000
    assert quiet["stdout_bytes"] == 5
    assert quiet["stderr"] == "two"
    assert shop.show("loud")["state"] == "PUBLISHED"


def test_stdin_is_a_snapshot(shop: Shop, tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(b"\0\xff first")
    shop.schedule("reads", "--stdin", str(source), *shell(f"cat > {copy}"))
    source.write_bytes(b"second")
    assert shop.run("--until-idle") == 0
    assert copy.read_bytes() == b"\0\xff first"


def test_a_secret_is_read_at_delivery_and_stands_nowhere(shop: Shop, tmp_path: Path) -> None:
    secret, out = tmp_path / "secret", tmp_path / "out"
    secret.write_text("old", encoding="ascii")
    shop.schedule("whispers", "--secret", f"TOKEN=file:{secret}", *shell(f'printf %s "$TOKEN" > {out}'))
    secret.write_text("c4n4ry-value\n", encoding="ascii")
    assert shop.run("--until-idle") == 0
    assert out.read_text("ascii") == "c4n4ry-value"
    for file in shop.store.rglob("*"):
        if file.is_file():
            assert b"c4n4ry-value" not in file.read_bytes(), file
    assert "c4n4ry-value" not in shop.call("show", "whispers").out + shop.log.read_text("utf-8")
