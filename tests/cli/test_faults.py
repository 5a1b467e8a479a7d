"""What may be wrong around the program: the store, the disk, the terminal, the clock on the wall, the caller."""

from __future__ import annotations

import errno
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from json import loads
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import COMMAND, ROOT, Nereus, check, environment

ONE = ("schedule", "--json", "--in", "1h", "--id", "x", "--", "true")
READS = ("show", "x"), ("list",), ("status",), ("uncertain",), ("wait", "x"), ("logs", "x"), ("events",), ("verify",)
CHANGES = ("cancel", "x"), ("reschedule", "x", "--in", "1h"), ("hold", "x"), ("run-now", "x"), ("stop", "x")
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs to give files away")
NOT_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.mark.parametrize("line", [*READS, *CHANGES, ("result", "x")], ids=lambda line: line[0])
def test_nothing_but_schedule_submit_run_and_init_creates_a_store(nereus: Nereus, line: tuple[str, ...]) -> None:
    status, error = nereus.json(*line)
    assert (status, error["error"]) == (66, "NO_STORE")
    assert not nereus.store.exists()
    nereus.store.mkdir(mode=0o700)
    assert nereus.json(*line)[0] == 66
    assert list(nereus.store.iterdir()) == []


def newer(store: Path) -> None:
    (store / "store.json").write_text('{"schema":"nereus.store/9","format":9}')


def garbled(store: Path) -> None:
    (store / "store.json").write_text("not json")


def cut(store: Path) -> None:
    """Takes away what is proven durable."""
    (segment,) = (store / "log").glob("*.seg")
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - 20)


def flipped(store: Path) -> None:
    (segment,) = (store / "log").glob("*.seg")
    content = bytearray(segment.read_bytes())
    place = content.index(b"echo")
    content[place] ^= 1
    segment.write_bytes(content)


def without_log(store: Path) -> None:
    shutil.rmtree(store / "log")


def open_to_others(store: Path) -> None:
    store.chmod(0o770)


def below_an_open_directory(store: Path) -> None:
    store.parent.chmod(0o777)


def given_away(store: Path) -> None:
    os.chown(store, 12_345, 12_345)


DAMAGES = [
    (newer, 76, "NEWER"),
    (garbled, 65, "DAMAGED"),
    (cut, 65, "DAMAGED"),
    (flipped, 65, "DAMAGED"),
    (without_log, 65, "DAMAGED"),
    (open_to_others, 78, "UNSAFE"),
    (below_an_open_directory, 78, "UNSAFE"),
    pytest.param(given_away, 77, "NOT_PERMITTED", marks=ROOT_ONLY),
]


@pytest.mark.parametrize(("harm", "status", "code"), DAMAGES)
def test_a_store_that_cannot_be_used_says_why(
    nereus: Nereus, harm: Callable[[Path], None], status: int, code: str
) -> None:
    nereus("schedule", "-q", "--in", "1h", "--id", "x", "--", "echo", "hi")
    nereus("schedule", "-q", "--in", "1h", "--id", "y", "--", "true")
    harm(nereus.store)
    before = {path: path.read_bytes() for path in nereus.store.rglob("*") if path.is_file()}
    got, error = nereus.json("list")
    assert (got, error["error"]) == (status, code), error
    if code == "DAMAGED":
        assert {"file", "position"} <= error["details"].keys()
    if harm not in (cut, flipped):
        assert nereus.json(*ONE)[0] == status
        assert {path: path.read_bytes() for path in nereus.store.rglob("*") if path.is_file()} == before
    human = nereus("list")
    assert (human.status, human.out, len(human.notes)) == (status, b"", 1)
    nereus.store.parent.chmod(0o700)


def test_verify_finds_a_flipped_bit(nereus: Nereus) -> None:
    nereus("schedule", "-q", "--in", "1h", "--id", "x", "--", "echo", "hi")
    nereus("schedule", "-q", "--in", "1h", "--id", "y", "--", "true")
    assert nereus.json("verify")[1]["sound"] is True
    assert nereus("verify").status == 0
    flipped(nereus.store)
    status, found = nereus.json("verify")
    assert (status, found["sound"]) == (65, False)
    assert [one["position"] for one in found["findings"] if one["damage"]] == [1]
    assert "DAMAGE" in nereus("verify").text


def test_verify_finds_a_projection_that_differs(nereus: Nereus) -> None:
    import sqlite3

    nereus("schedule", "-q", "--in", "1h", "--id", "x", "--", "true")
    assert nereus.process("run", "--once").status == 0
    assert nereus.json("verify")[1]["projection"]["equal"] is True
    with sqlite3.connect(nereus.store / "projection" / "state.db") as db:
        db.execute("DELETE FROM history")
    db.close()
    status, found = nereus.json("verify")
    assert (status, found["projection"]["equal"]) == (65, False)


def test_what_is_no_directory_or_somebody_elses_cannot_become_a_store(nereus: Nereus) -> None:
    nereus.store.write_text("a file")
    assert nereus.json(*ONE)[0] == 73
    assert nereus.json("list")[0] == 66
    nereus.store.unlink()
    nereus.store.mkdir(mode=0o700)
    (nereus.store / "thesis.txt").write_text("years of work")
    status, error = nereus.json(*ONE)
    assert (status, error["error"]) == (73, "CANNOT_CREATE")
    assert [path.name for path in nereus.store.iterdir()] == ["thesis.txt"]


def test_a_store_below_a_file_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = subprocess.run(
        [*COMMAND, *ONE[:2], "--store", str(tmp_path / "file" / "store"), *ONE[2:]],
        env=environment(), capture_output=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 73


@NOT_ROOT
def test_a_store_that_may_only_be_read_can_be_read(nereus: Nereus) -> None:
    nereus(*ONE)
    for path in (nereus.store, *nereus.store.rglob("*")):
        path.chmod(0o500 if path.is_dir() else 0o400)
    assert nereus.json("show", "x")[0] == 0
    assert nereus.json("cancel", "x")[0] == 77
    for path in (nereus.store, *nereus.store.rglob("*")):
        path.chmod(0o700)


def limited(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_b005_a_full_disk_queues_nothing_and_spoils_nothing(nereus: Nereus) -> None:
    nereus("schedule", "-q", "--in", "1h", "--id", "first", "--", "true")
    (segment,) = (nereus.store / "log").glob("*.seg")
    ran = nereus.process(*ONE, preexec_fn=limited(segment.stat().st_size + 40))
    assert (ran.status, ran.document["error"]) == (75, "TRY_LATER")
    assert nereus("show", "x").status == 13
    assert nereus(*ONE).document["outcome"] == "APPLIED"
    assert nereus.json("verify")[0] == 0


def test_b105_an_ascii_locale_changes_nothing(nereus: Nereus) -> None:
    bare = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "TERM": "dumb"}
    line = ("schedule", "--in", "1h", "--id", "x", "--tag", "who=žluť", "--", "echo", "žluť 🐎")
    ascii_first = nereus.process(*line, env=bare)
    assert (ascii_first.status, ascii_first.out.isascii()) == (0, True)
    again = nereus.process("--json", *line, env={"LC_ALL": "C.UTF-8"})
    assert (again.status, again.document["duplicate"]) == (0, True)
    refused = nereus.process("schedule", "--in", "1h", "--id", "žluť", "--", "true", env=bare)
    assert (refused.status, len(refused.notes)) == (2, 1)
    for verb in (("list",), ("show", "x")):
        ran = nereus.process(*verb, env=bare)
        assert (ran.status, ran.out.isascii(), ran.err) == (0, True, b"")
        assert b"\\u017e" in ran.out
    assert "žluť 🐎" in nereus.process("list", env={"LC_ALL": "C.UTF-8"}).text


def test_b105_a_full_standard_output_does_not_hide_what_is_on_disk(nereus: Nereus) -> None:
    with Path("/dev/full").open("wb") as full:
        for number, line in enumerate((ONE, ("schedule", "--in", "1h", "--id", "y", "--", "true"))):
            ran = nereus.process(*line, stdout=full)
            assert ran.status == 0, number
            assert "could not be printed" in ran.err.decode()
        conflict = nereus.process("schedule", "--in", "2h", "--id", "x", "--json", "--", "true", stdout=full)
        assert conflict.status == 10
        assert nereus.process("list", stdout=full).status == 74
        assert nereus.process("--help", stdout=full).status == 74
    assert [one.get("message_id") for one in nereus("list", "--json").documents] == ["x", "y", None]


def test_a_closed_standard_output_is_not_taken_for_a_file_of_ours(nereus: Nereus) -> None:
    script = 'exec "$@" >&- 2>&- <&-'
    ran = subprocess.run(
        ["sh", "-c", script, "sh", *COMMAND, "--store", str(nereus.store), *ONE],
        env=environment(), check=False,
    )  # fmt: skip
    assert ran.returncode == 0
    assert nereus.json("verify")[0] == 0
    assert nereus.json("show", "x")[0] == 0


def test_a_reader_that_went_away_is_141(nereus: Nereus) -> None:
    nereus(*ONE)
    for line in (("list",), ONE, ("show", "x")):
        reading, writing = os.pipe()
        os.close(reading)
        ran = nereus.process(*line, stdout=writing)
        os.close(writing)
        assert (ran.status, ran.err) == (141, b""), line


def test_an_interrupt_before_anything_was_written_is_130(nereus: Nereus) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [*COMMAND, "--store", str(nereus.store), *ONE[:-2], "--stdin", "-", "--", "cat"],
        stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
        preexec_fn=_hear_interrupts,  # noqa: PLW1509 -- this test has one thread
    )  # fmt: skip
    os.write(writing, b"the beginning of something")
    # Before it has read that, it may still be loading, and then it would be interrupted at another place.
    end = time.monotonic() + 60
    while select.select([reading], [], [], 0)[0] and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(reading)
    os.close(writing)
    assert process.returncode == 130
    assert b"INTERRUPTED" in out
    assert (err, nereus.store.exists()) == (b"", False)


def _hear_interrupts() -> None:
    """Whoever was started in the background ignores interrupts, and so would everything it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


_INTERRUPTED_WHILE_IT_LOADS = """
import os, signal, sys
from nereus_cli.__main__ import run
module = sys.argv.pop(1)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.exit(run())
"""


@pytest.mark.parametrize("module", ["nereus_cli.cli.main", "msgspec", "typer", "nereus_cli.cli.write"])
@pytest.mark.parametrize("machine", [True, False])
def test_an_interrupt_while_the_program_loads_is_one_too(nereus: Nereus, module: str, *, machine: bool) -> None:
    line = [sys.executable, "-c", _INTERRUPTED_WHILE_IT_LOADS, module, *ONE]
    if not machine:
        line.remove("--json")
    ran = subprocess.run(line, capture_output=True, check=False, env=environment({"NEREUS_STORE": str(nereus.store)}))
    assert ran.returncode == 130, ran
    if machine:
        check(loads(ran.stdout))
        assert (loads(ran.stdout)["error"], ran.stderr) == ("INTERRUPTED", b"")
    else:
        assert (ran.stdout, ran.stderr) == (b"", b"nereus: interrupted before anything was written\n")
    assert not nereus.store.exists()


_INTERRUPTED_WHEN_ALL_IS_SAID = """
import atexit, os, signal, sys
from nereus_cli.__main__ import run
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.exit(run())
"""


@pytest.mark.parametrize("line", [ONE, ("init",), ("show", "none")], ids=lambda line: line[0])
def test_an_interrupt_when_all_is_said_changes_no_status(nereus: Nereus, line: tuple[str, ...]) -> None:
    nereus("init")
    ran = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_WHEN_ALL_IS_SAID, *line],
        capture_output=True, check=False, env=environment({"NEREUS_STORE": str(nereus.store)}),
    )  # fmt: skip
    assert ran.returncode == (13 if line[0] == "show" else 0), ran
    assert b"Traceback" not in ran.stderr


def test_the_command_begins_where_the_module_does() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"] == {"nereus": "nereus_cli.__main__:run"}


def test_an_unsafe_umask_makes_no_unsafe_file_and_is_kept_for_the_command(nereus: Nereus) -> None:
    deep = nereus.store.parent / "a" / "b" / "store"
    command = ["sh", "-c", 'umask 0; exec "$@"', "sh", *COMMAND, *ONE[:2], "--store", str(deep), *ONE[2:]]
    assert subprocess.run(command, env=environment(), check=False, capture_output=True).returncode == 0
    for path in (deep.parent.parent, deep.parent, deep, *deep.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    shown = Nereus(deep, nereus._capture).json("show", "x")[1]
    assert shown["captured"]["umask"] == "0000"


def test_b107_ids_are_whole_on_a_narrow_terminal_and_in_a_pipe(nereus: Nereus) -> None:
    names = ["a-long-prefix-that-all-of-these-ids-share-" + end for end in ("one", "two", "three")]
    for name in names:
        nereus("schedule", "-q", "--in", "1h", "--id", name, "--", "true")
    for settings in ({"COLUMNS": "1"}, {"FORCE_COLOR": "1"}, {"NO_COLOR": "1"}):
        piped = nereus.process("list", env=settings)
        assert b"\x1b" not in piped.out
        assert "…" not in piped.text
        assert [line.split("\t")[0] for line in piped.text.splitlines()] == names
    for settings in ({"TERM": "xterm"}, {"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}):
        shown = _on_a_terminal(nereus, "list", settings)
        assert all(name in shown for name in names)
        assert "…" not in shown


def _on_a_terminal(nereus: Nereus, verb: str, settings: dict[str, str]) -> str:
    import fcntl
    import struct
    import termios

    own, others = pty.openpty()
    fcntl.ioctl(others, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 40, 0, 0))
    ran = nereus.process(verb, env=settings, stdout=others)
    os.close(others)
    assert ran.status == 0
    parts = []
    with os.fdopen(own, "rb", buffering=0) as terminal:
        while True:
            try:
                part = terminal.read(1 << 16)
            except OSError:
                break
            if not part:
                break
            parts.append(part)
    return b"".join(parts).decode()


def test_an_error_of_our_own_is_one_line_and_70(nereus: Nereus, monkeypatch: pytest.MonkeyPatch) -> None:
    from nereus_cli.cli import read

    def broken(_: object) -> int:
        raise LookupError("unheard\nof")

    monkeypatch.setattr(read, "list_messages", broken)
    ran = nereus("list")
    assert (ran.status, len(ran.notes)) == (70, 1)
    assert ran.notes[0].startswith("nereus: a bug in Nereus: LookupError: unheard of")
    assert nereus.json("list")[1]["error"] == "BUG"
    monkeypatch.setenv("NEREUS_DEBUG", "1")
    assert any("Traceback" in line for line in nereus("list").notes)


@pytest.mark.parametrize("place", ["", "/store.json", "/log"])
@pytest.mark.parametrize(("number", "status"), [(errno.EIO, 74), (errno.ENOMEM, 75), (errno.EACCES, 77)])
def test_what_cannot_be_looked_at_is_not_taken_to_be_missing(
    nereus: Nereus, monkeypatch: pytest.MonkeyPatch, place: str, number: int, status: int
) -> None:
    """Neither "no store here", nor damage, nor a store begun anew over one whose files only could not be seen."""
    nereus(*ONE)
    look = os.stat

    def refused(path: Any, *rest: Any, **more: Any) -> os.stat_result:  # noqa: ANN401 -- those of os.stat
        if path == f"{nereus.store}{place}":
            raise OSError(number, os.strerror(number), path)
        return look(path, *rest, **more)

    for line in (("schedule", "--in", "1h", "--id", "y", "--", "true"), ("cancel", "x"), ("show", "x"), ("init",)):
        with monkeypatch.context() as patched:
            patched.setattr(os, "stat", refused)
            found = nereus.json(*line)
        assert found[0] == status, (line, found)
    assert nereus.json("verify")[0] == 0
    assert nereus.json("show", "x")[1]["state"] == "SCHEDULED"
