"""The order of system calls, seen from outside: bytes, then names, then the answer."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
from nereus_cli.clock import HostClock
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import TINY
from nereus_cli.log.files import FileLog
log = FileLog(sys.argv[1], disk=SystemDisk(), clock=HostClock(), limits=TINY, create=True)
for number in range(int(sys.argv[2])):
    os.write(1, b"QUEUED %d\\n" % log.append([b"x" * 4000])[0].position)
"""
CALLS = "openat,mkdirat,fsync,fdatasync,linkat,unlinkat,renameat,renameat2,rename,pwrite64,write,ftruncate"


def traced(path: Path, count: int) -> list[str]:
    """The calls on the log's files, in order, each as ``name path``."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    out = path / "trace"
    command = [strace, "-f", "-y", "-qq", "-s", "40", "-o", str(out), "-e", f"trace={CALLS}"]
    run = subprocess.run(
        [*command, sys.executable, "-c", SCRIPT, str(path / "log"), str(count)], capture_output=True, check=False
    )
    if run.returncode and b"ptrace" in run.stderr:
        pytest.skip("tracing is not allowed here")
    assert run.returncode == 0, run.stderr
    lines = [line.split(None, 1)[1] for line in out.read_text().splitlines()]
    return [line for line in lines if str(path) in line or "QUEUED" in line]


def first(calls: list[str], pattern: str, after: int = -1) -> int:
    """Where the first call behind ``after`` that matches stands."""
    for at in range(after + 1, len(calls)):
        if re.search(pattern, calls[at]):
            return at
    raise AssertionError((pattern, calls[max(after, 0) :]))


def test_the_first_append_of_a_new_log(tmp_path: Path) -> None:
    calls = traced(tmp_path, 1)
    made = first(calls, r"mkdirat\(.*\"log\"")
    parent = first(calls, rf"fsync\(\d+<{tmp_path}>\)", made)
    temporary = first(calls, r"openat\(.*\"new-1-.*O_EXCL", parent)
    filled = first(calls, r"pwrite64\(.*new-1-", temporary)
    synced = first(calls, r"fdatasync\(.*new-1-", filled)
    linked = first(calls, r"linkat\(.*new-1-.*0000000001\.seg", synced)
    named = first(calls, r"fsync\(\d+<[^>]*/log>\)", linked)
    marked = first(calls, r"pwrite64\(.*/mark/durable", named)
    written = first(calls, r"pwrite64\(.*(new-1|\.seg).*NRfr", marked)
    noted = first(calls, r"pwrite64\(.*/syncing", written)
    durable = first(calls, r"fdatasync\(.*(new-1|\.seg)", noted)
    raised = first(calls, r"pwrite64\(.*/mark/durable", durable)
    assert first(calls, "QUEUED 1") > raised


def test_a_rotation(tmp_path: Path) -> None:
    calls = traced(tmp_path, 4)
    sealed = first(calls, r"pwrite64\(.*0000000001\.seg.*NRfr\\1\\3")
    ended = first(calls, r"fdatasync\(.*0000000001\.seg", sealed)
    synced = first(calls, r"fdatasync\(.*new-2-", ended)
    linked = first(calls, r"linkat\(.*new-2-.*0000000002\.seg", synced)
    named = first(calls, r"fsync\(\d+<[^>]*/log>\)", linked)
    marked = first(calls, r"pwrite64\(.*/mark/durable", named)
    first(calls, r"pwrite64\(.*0000000002\.seg.*NRfr|pwrite64\(.*NRfr", marked)
    queued = [first(calls, f"QUEUED {number}") for number in (1, 2, 3, 4)]
    assert queued == sorted(queued)
    for number, at in enumerate(queued):
        since = calls[queued[number - 1] if number else 0 : at]
        assert any("fdatasync" in call and ".seg" in call for call in since), "no answer without a sync of its own"
    assert not [call for call in calls if call.startswith("rename")], "a segment's name is given once"
