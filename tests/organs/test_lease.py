"""Leases: one holder, named to whoever comes second, gone with its process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nereus_cli.daemon import run_owner
from nereus_cli.lease import FileLease
from nereus_cli.ports import BusyError
from nereus_cli.store import open_store

HOLD = """
import sys
from nereus_cli.lease import FileLease
lease = FileLease(sys.argv[1], "it")
lease.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_the_second_is_told_who_holds_it_and_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        lease = FileLease(path, "this store")
        with pytest.raises(BusyError, match=f"this store is held by process {holder.pid}") as refused:
            lease.acquire()
        assert refused.value.holder == holder.pid
        holder.send_signal(signal.SIGSTOP)
        with pytest.raises(BusyError):
            lease.acquire(seconds=0.05)
        holder.kill()
        holder.wait()
    lease.acquire(seconds=5)
    assert Path(f"{path}.pid").read_text(encoding="ascii") == f"{os.getpid()}\n"
    lease.release()
    lease.release()


def test_a_pid_in_the_file_proves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    (tmp_path / "lock.pid").write_text(f"{os.getppid()}\n", encoding="ascii")
    lease = FileLease(str(path), "this store")
    lease.acquire()
    lease.release()


def test_an_unreadable_pid_is_left_out_of_the_message(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    first, second = FileLease(path, "it"), FileLease(path, "it")
    first.acquire()
    (tmp_path / "lock.pid").write_text("?", encoding="ascii")
    with pytest.raises(BusyError, match="it is held by another process"):
        second.acquire()
    first.release()


def test_an_owner_does_nothing_while_somebody_else_writes_the_projection(tmp_path: Path) -> None:
    early: list[str] = []
    held, noticed, given_back = threading.Event(), threading.Event(), threading.Event()
    with open_store(str(tmp_path / "store"), create=True) as store:

        def catch_up() -> None:
            lease = store.projection_lease()
            lease.acquire()
            held.set()
            noticed.wait(0.5)
            given_back.set()
            lease.release()

        def report(event: str, _: dict[str, object]) -> None:
            if not given_back.is_set():
                early.append(event)
                noticed.set()

        other = threading.Thread(target=catch_up)
        other.start()
        assert held.wait(60)
        # On a machine that stands still for seconds it is refused, which is as good.
        with contextlib.suppress(BusyError):
            status = run_owner(store, concurrency=1, grace_ns=0, until_idle=False, once=True, report=report)
            assert status == 0
        other.join()
    assert early == []
