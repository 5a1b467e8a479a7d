"""What a command takes along from the process that said it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from nereus_cli.capture import capture, trace_parent
from tests.cli.running import COMMAND, Nereus, environment

ALLOWED = {"HOME", "LANG", "LANGUAGE", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"}


def test_only_the_allowed_environment_is_captured_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in ALLOWED:
        monkeypatch.setitem(os.environb, name.encode(), b"\xff\n=" + name.encode())
    for name in ("SECRET_TOKEN", "LD_PRELOAD", "PYTHONPATH", "BASH_FUNC_x%%", "XLC_ALL"):
        monkeypatch.setenv(name, "no")
    found = capture(umask=0o022, decision=None).environment
    assert found == tuple(sorted((name.encode(), b"\xff\n=" + name.encode()) for name in ALLOWED))


def test_who_where_and_why_travel_with_the_message(nereus: Nereus, tmp_path: Path) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    place = tmp_path / "žluť\n"
    place.mkdir()
    ran = subprocess.run(
        [*COMMAND, "schedule", "-q", "--in", "1h", "--id", "x", "--reason", "because",
         "--correlation", "c-1", "--", "true"],
        cwd=place, env=environment({"NEREUS_STORE": str(nereus.store), "TRACEPARENT": trace}), check=False,
    )  # fmt: skip
    assert ran.returncode == 0
    shown = nereus.json("show", "x")[1]
    assert shown["destination"]["cwd"] == str(place)
    assert (shown["request_reason"], shown["correlation"]) == ("because", "c-1")
    captured = shown["captured"]
    assert (captured["traceparent"], captured["host"]) == (trace, os.uname().nodename)
    assert captured["decision"]["rule"] == "store-owner"
    assert captured["decision"]["uid"] == os.geteuid()
    assert captured["decision"]["store_mode"] == 0o700


@pytest.mark.parametrize(
    "text",
    ["", "x", "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7-b7ad-01", f"ff-{0:032}-{0:016}-01"],
)  # fmt: skip
def test_what_is_no_trace_context_is_left_out(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TRACEPARENT", text)
    assert trace_parent() == ""


def test_relative_paths_are_kept_from_the_root(nereus: Nereus, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    line = ("--cwd", "sub", "--env-from-file", "vars", "--secret", "A=file:token", "--secret", "B=env:B")
    ran = subprocess.run(
        [*COMMAND, "schedule", "-q", "--in", "1h", "--id", "x", *line, "--", "true"],
        cwd=tmp_path, env=environment({"NEREUS_STORE": str(nereus.store)}), check=False,
    )  # fmt: skip
    assert ran.returncode == 0
    target = nereus.json("show", "x")[1]["destination"]
    assert target["cwd"] == f"{tmp_path}/sub"
    assert target["env_from_file"] == f"{tmp_path}/vars"
    assert [one["reference"] for one in target["secrets"]] == [f"file:{tmp_path}/token", "env:B"]


def test_without_a_store_named_it_is_the_one_in_the_state_directory(tmp_path: Path) -> None:
    for variables, place in (
        ({"XDG_STATE_HOME": str(tmp_path / "state")}, tmp_path / "state" / "nereus"),
        ({"XDG_STATE_HOME": str(tmp_path / "other"), "NEREUS_STORE": ""}, tmp_path / "other" / "nereus"),
        ({"NEREUS_STORE": str(tmp_path / "mine")}, tmp_path / "mine"),
    ):
        line = [*COMMAND, "schedule", "-q", "--in", "1h", "--", "true"]
        assert subprocess.run(line, env=environment(variables), check=False, capture_output=True).returncode == 0
        assert (place / "store.json").exists()
