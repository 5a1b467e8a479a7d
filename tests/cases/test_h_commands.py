"""Section H: running commands."""

from __future__ import annotations

import base64
import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cases.world import PACKAGE_ROOT, Case, gone

LOCALES = {
    "C.UTF-8": {"LC_ALL": "C.UTF-8"},
    "strict": {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8:strict"},
    "ascii": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:strict"},
}


def raw(
    case: Case, *words: str | bytes, env: dict[str, str] | dict[bytes, bytes] | None = None, **options: str
) -> tuple[int, bytes, bytes]:
    """As a process of its own, with bytes."""
    full = {**os.environb, b"PYTHONPATH": os.fsencode(PACKAGE_ROOT)}
    full |= {os.fsencode(k): os.fsencode(v) for k, v in (env or {}).items()}
    command = [sys.executable, "-m", "nereus_cli", "--store", str(case.store), *words]
    ran = subprocess.run(command, env=full, capture_output=True, check=False, timeout=60, cwd=options.get("cwd", "/"))
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize(
    "became",
    [
        "nothing",
        "a file",
        pytest.param("closed", marks=pytest.mark.skipif(os.geteuid() == 0, reason="root enters any directory")),
    ],
)
def test_b081_a_directory_that_is_gone_by_then_is_said_to_be(case: Case, tmp_path: Path, became: str) -> None:
    place = tmp_path / "checkout"
    place.mkdir()
    status, _, said = raw(case, "schedule", "--id", "x", "--in", "0s", *case.tick(), cwd=str(place))
    assert status == 0, said
    assert case.schedule("root", "--cwd", "/", *case.tick()).status == 0
    if became == "closed":
        place.chmod(0)
    else:
        place.rmdir()
        if became == "a file":
            place.touch()
    try:
        assert case.run("--until-idle") == 30
        message = case.show("x")
        (attempt,) = message["attempts"]
        assert (attempt["side_effect"], attempt["basis"]) == ("NOT_PUBLISHED", "NOT_SENT")
        assert (attempt["code"], attempt["exit_code"]) == ("NOT_STARTABLE", None)
        number = {"nothing": errno.ENOENT, "a file": errno.ENOTDIR, "closed": errno.EACCES}[became]
        assert attempt["evidence"]["errno"] == number
        assert "working directory" in attempt["evidence"]["detail"]
    finally:
        place.chmod(0o700) if place.exists() else None
    assert case.seen() == ["root"]


def test_b083_an_environment_of_any_bytes_arrives_as_it_is(case: Case, tmp_path: Path) -> None:
    values = {
        b"A": b"x\ny", b"B": b"=", b"C": b"", b"D": b"\xff\xfe", b"BASH_FUNC_f%%": b"() {  echo one;\n echo two\n}",
        b"E": b"x\nEVIL=1", b"F": "ž".encode(),
    }  # fmt: skip
    words = [word for name, value in values.items() for word in (b"--env", name + b"=" + value)]
    status, _, said = raw(
        case, "schedule", "--id", "x", "--in", "0s", *words, "--", "sh", "-c", f"env -0 > {tmp_path}/env",
        env={b"LC_ODD": b"one\n\xfftwo"},
    )  # fmt: skip
    assert status == 0, said
    assert case.run("--until-idle") == 0
    found = dict(pair.split(b"=", 1) for pair in (tmp_path / "env").read_bytes().split(b"\0") if pair)
    expected = {name: value for name, value in values.items() if name != b"BASH_FUNC_f%%" or name in found}
    assert {name: found[name] for name in expected} == expected
    assert found[b"LC_ODD"] == b"one\n\xfftwo"
    assert b"EVIL" not in found
    assert [one["event"] for one in case.events()].count("schedule") == 1
    assert case.call("verify").status == 0
    shown = {one["name"]: one["value"] for one in case.show("x")["destination"]["env"]}
    assert base64.b64decode(shown["D"]["b64"]) == b"\xff\xfe"
    assert shown["A"] == "x\ny"


ODD = [
    b"\xff\xfe",
    "žluť \u202e abc".encode(),
    b"\x1b[31mred\x1b]0;title\x07",
    b"a\nb",
    b"\x01\x7f\xc2\x9b",
    b"\xed\xa0\x80",
    b"",
]


@pytest.mark.parametrize("locale", LOCALES)
def test_b085_arguments_of_any_bytes_arrive_and_are_shown_harmlessly(case: Case, tmp_path: Path, locale: str) -> None:
    environment = LOCALES[locale]
    place = tmp_path / "d\udcff"
    place.mkdir()
    script = 'printf "%s\\0" "$@" > out'
    words: list[str | bytes] = [
        "schedule",
        "--id",
        "x",
        "--in",
        "0s",
        "--cwd",
        os.fsencode(place),
        "--",
        "sh",
        "-c",
        script,
        "sh",
        *ODD,
    ]
    status, out, said = raw(case, "--json", *words, env=environment)
    assert status == 0, said
    json.loads(out)
    assert case.run("--until-idle") == 0
    assert (place / "out").read_bytes() == b"".join(word + b"\0" for word in ODD)
    for verb in (["show", "x"], ["list", "--state", "PUBLISHED"], ["events"]):
        status, out, said = raw(case, *verb, env=environment)
        assert status == 0, said
        assert b"Traceback" not in said
        lines = out.decode("ascii" if locale == "ascii" else "utf-8")
        assert not {"\x1b", "\x07", "\x01", "\x7f", "\x9b", "\u202e"} & set(lines)
        status, out, _ = raw(case, "--json", *verb, env=environment)
        assert status == 0
        assert out.isascii()
        assert [json.loads(line) for line in out.splitlines()]
    shown = case.show("x")["destination"]
    argv = [base64.b64decode(one["b64"]) if isinstance(one, dict) else one.encode() for one in shown["argv"]]
    assert argv == [b"sh", b"-c", script.encode(), b"sh", *ODD]
    assert base64.b64decode(shown["cwd"]["b64"]) == os.fsencode(place)


NO_IDS = [b"\xff", "žluť".encode(), b"a b", b"a.b", b"-a", b"a\x1b", b"x" * 129, b"", b"a\n"]
IN_LOCALES = [("strict", name) for name in NO_IDS] + [
    (one, name) for one in ("C.UTF-8", "ascii") for name in NO_IDS[:2]
]


@pytest.mark.parametrize(("locale", "name"), IN_LOCALES)
def test_b085_ids_of_other_characters_are_refused_clearly(case: Case, locale: str, name: bytes) -> None:
    status, out, said = raw(case, "schedule", b"--id=" + name, "--in", "1h", "--", "true", env=LOCALES[locale])
    assert status == 2
    assert b"Traceback" not in said
    assert b"\x1b" not in said + out
    assert len(said.splitlines()) == 1
    assert not case.store.exists()


def test_b085_a_lone_surrogate_in_json_is_refused_and_the_rest_goes_on(case: Case, tmp_path: Path) -> None:
    batch = tmp_path / "batch"
    batch.write_bytes(
        b'{"id":"a","in":"1h","argv":["echo","\\ud800"]}\n'
        b'{"id":"b","in":"1h","argv":["echo",{"b64":"7aCA"}]}\n'
        b'{"id":"c","in":"1h","argv":["echo","\xff"]}\n'
        b'{"id":"d","in":"1h","argv":["echo","fine"]}\n'
    )
    called = case.call("schedule", "--batch", str(batch))
    assert called.status == 1
    receipts = [json.loads(line) for line in called.out.splitlines()]
    assert [one["outcome"] for one in receipts] == ["NOT_QUEUED", "QUEUED", "NOT_QUEUED", "QUEUED"]
    assert sorted(case.listed()) == ["b", "d"]


def test_b086_a_timeout_ends_and_holds_up_nobody(case: Case, tmp_path: Path) -> None:
    """Children that leave others behind, ignore what they are told, or hand their pipes on."""
    pids = tmp_path / "pids"
    timeout, grace = 1.0, 1.0
    cases = {
        "a": "sleep 60 & echo a $! >> {0}; wait",
        "b": "echo b $$ >> {0}; trap '' TERM; sleep 60",
        "c": "setsid sleep 60 & echo c $! >> {0}; sleep 60",
    }
    for name, text in cases.items():
        case.schedule(name, "--timeout", f"{timeout}s", "--", "sh", "-c", text.format(pids))
    case.schedule("d", "--", "sh", "-c", f"sleep 60 & echo d $! >> {pids}; exit 0")
    for number in range(10):
        case.schedule(f"other{number}", *case.tick())
    case.daemon("--grace", f"{grace}s", "--concurrency", "4")
    begun = time.monotonic()
    assert case.call("wait", "d", "--timeout", "30s").status == 0
    assert case.call("wait", *(f"other{n}" for n in range(10)), "--timeout", "30s").status == 0
    case.until(lambda: {case.state(name) for name in cases} == {"UNCERTAIN"})
    assert time.monotonic() - begun < 20
    started = dict(line.split() for line in pids.read_text("ascii").splitlines())
    for name in cases:
        (attempt,) = case.show(name)["attempts"]
        assert (attempt["side_effect"], attempt["code"]) == ("UNKNOWN", "TIMED_OUT")
        survivors = attempt["evidence"]["usage"]["survivors"]
        assert survivors > 0 or gone(int(started[name])), (name, attempt)
        if name in {"a", "b"}:
            assert gone(int(started[name]))
    (attempt,) = case.show("d")["attempts"]
    assert (attempt["side_effect"], attempt["code"]) == ("PUBLISHED", "EXIT_0")
    # What a command leaves running without a timeout is its own affair.
    assert not gone(int(started["d"]))
    os.kill(int(started["d"]), 9)


def test_b087_a_pipe_that_nobody_reads_ends_its_writer(case: Case, tmp_path: Path) -> None:
    """Whatever the daemon's own parent ignored or blocked."""
    case.schedule("yes", "--timeout", "20s", "--", "sh", "-c", f"yes | head -1 > {tmp_path}/yes")
    masks = f"grep -E '^Sig(Ign|Blk)' /proc/self/status > {tmp_path}/masks; umask >> {tmp_path}/masks"
    case.schedule("masks", "--", "sh", "-c", masks)
    ignore = 'trap \'\' HUP PIPE QUIT USR1 TSTP CHLD; umask 000; exec "$0" -m nereus_cli --store "$1" run --until-idle'
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
    words = ["nohup", "sh", "-c", ignore, sys.executable, str(case.store)]
    ran = subprocess.run(words, env=environment, capture_output=True, check=False, timeout=60, cwd="/")
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "yes").read_text("ascii") == "y\n"
    lines = (tmp_path / "masks").read_text("ascii").split()
    assert (lines[0], lines[2]) == ("SigBlk:", "SigIgn:")
    # 32 and 33 are glibc's own: its posix_spawn, which make uses, leaves them ignored, and its calls cannot undo that.
    assert [int(lines[place], 16) & ~(0b11 << 31) for place in (1, 3)] == [0, 0]
    mask = os.umask(0)
    os.umask(mask)
    assert int(lines[4], 8) == mask


def test_b089_output_that_is_not_text_is_kept_and_holds_up_nobody(case: Case, tmp_path: Path) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(os.urandom(3_000_000))
    case.schedule("loud", "--timeout", "60s", "--", "sh", "-c", f"cat {noise}; cat {noise} >&2")
    small = os.urandom(5_000)
    (tmp_path / "small").write_bytes(small)
    case.schedule("small", "--", "cat", str(tmp_path / "small"))
    case.schedule("after", *case.tick())
    assert case.run("--until-idle", "--concurrency", "1") == 0
    assert {one["state"] for one in case.listed().values()} == {"PUBLISHED"}
    loud = case.call("logs", "loud").document()
    assert loud["stdout_bytes"] == loud["stderr_bytes"] == 3_000_000
    assert base64.b64decode(loud["stdout"]["b64"])[:1_000] == noise.read_bytes()[:1_000]
    kept = case.call("logs", "small").document()["stdout"]
    assert base64.b64decode(kept["b64"]) == small
    status, out, _ = raw(case, "logs", "small")
    assert (status, out) == (0, small)
