"""Section J: command line and terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.cases.world import PACKAGE_ROOT, Case, on_terminal

ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
PREFIX = "a-prefix-of-forty-characters-and-no-less"
IDS = [f"{PREFIX}-{n}" for n in range(3)]
ELLIPSES = ("…", "...")


def plain(case: Case, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), **environment}
    command = [sys.executable, "-m", "nereus_cli", "--store", str(case.store), *words]
    return subprocess.run(command, env=env, capture_output=True, check=False, timeout=60, cwd="/")


@pytest.mark.parametrize("stdout", ["pipe", "full", "closed"])
def test_b105_the_status_says_what_is_on_disk_whatever_can_be_printed(case: Case, stdout: str) -> None:
    redirect = {"pipe": "", "full": " > /dev/full", "closed": " >&-"}[stdout]
    line = f'exec "$0" -m nereus_cli --store "$1" schedule --id x --in 1h --reason žluť -- echo 🐟 žluť{redirect}'
    command = ["sh", "-c", line, sys.executable, str(case.store)]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), **ASCII}
    first = subprocess.run(command, env=environment, capture_output=True, check=False, cwd="/")
    assert b"Traceback" not in first.stderr
    if stdout == "pipe":
        assert first.returncode == 0
    # That it could not be said does not undo it: the same line again finds it, and is not a second one.
    assert case.state("x") == "SCHEDULED"
    again = subprocess.run(command, env=environment, capture_output=True, check=False, cwd="/")
    assert again.returncode == first.returncode
    assert b"Traceback" not in again.stderr
    if stdout == "pipe":
        assert b"already" in again.stdout
        assert again.stdout.isascii()
    assert list(case.listed()) == ["x"]
    argv = case.show("x")["destination"]["argv"]
    assert argv == ["echo", "🐟", "žluť"]


@pytest.mark.parametrize("verb", [("list",), ("show", "x"), ("status",), ("events",)])
def test_b105_nothing_that_was_given_breaks_the_telling(case: Case, verb: tuple[str, ...]) -> None:
    assert case.schedule("x", "--tag", "ř=č", "--", "echo", "🐟" * 30, "\udcff", after="1h").status == 0
    shown = plain(case, *verb, **ASCII)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert shown.stdout.isascii()
    for columns, environment in ((20, ASCII), (20, {"TERM": "dumb"}), (1, {}), (200, {"TERM": "xterm-256color"})):
        status, out = on_terminal(case.store, *verb, columns=columns, env=environment)
        assert status == 0, out
        assert b"Traceback" not in out
        if environment.get("TERM") == "dumb":
            assert b"\x1b[" not in out


def ids_in(text: str) -> list[str]:
    """Those that stand there whole, though a narrow terminal may have broken the lines within them."""
    return re.findall(rf"{PREFIX}-\d", text.replace("\r", "").replace("\n", ""))


@pytest.mark.parametrize("extra", [{}, {"COLUMNS": "1"}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"COLUMNS": "40"}])
def test_b107_a_pipe_gets_every_id_whole_and_nothing_else(case: Case, extra: dict[str, str]) -> None:
    case.batch({"id": name, "in": "1h", "argv": ["echo", "x" * 200]} for name in IDS)
    shown = plain(case, "list", **extra)
    assert shown.returncode == 0
    text = shown.stdout.decode("utf-8")
    assert b"\x1b" not in shown.stdout
    assert not [mark for mark in ELLIPSES if mark in text]
    lines = text.splitlines()
    assert [line.split()[0] for line in lines] == IDS
    assert case.call("show", lines[1].split()[0]).status == 0


@pytest.mark.parametrize("extra", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}])
@pytest.mark.parametrize("columns", [1, 20, 40, 120])
def test_b107_a_terminal_of_any_width_shows_ids_that_can_be_pasted(
    case: Case, extra: dict[str, str], columns: int
) -> None:
    case.batch({"id": name, "in": "1h", "argv": ["echo", "x" * 200]} for name in IDS)
    status, out = on_terminal(case.store, "list", columns=columns, env={"TERM": "xterm", **extra})
    assert status == 0, out
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", out.decode("utf-8"))
    found = ids_in(text)
    assert found == IDS, text
    assert case.call("show", found[2]).status == 0
    if "NO_COLOR" in extra or extra.get("TERM") == "dumb":
        assert not re.search(rb"\x1b\[[0-9;]*3[0-9]", out)
