"""What a child sees: bytes as given, nothing of ours, and the kernel's own word when it cannot begin."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nereus_cli.destinations.keeper_client import StartRequest
from nereus_cli.destinations.keeper_facts import Ended, NotStarted, Started
from tests.keeper.harness import ENV, Owner, command, end_keeper, limit, linux_only, process_state, shell, with_our_path

Make = Callable[..., Owner]
PYTHON = os.fsencode(sys.executable)

ODD_BYTES = [
    b"", b" ", b"*", b"'\"`$(id)", b"a\nb", b"\xff\xfe", b"\xed\xb2\x80", b"\x1b[31m",
    "\u202e".encode(), b"-n", b"x" * 100_000,
]  # fmt: skip


def script(attempt_id: str, code: str, *arguments: bytes, **changes: object) -> StartRequest:
    return command(attempt_id, PYTHON, b"-I", b"-S", b"-c", code.encode(), *arguments, **changes)


def test_arguments_arrive_byte_for_byte(owner: Owner) -> None:
    code = "import os, sys; os.write(1, b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    assert owner.run(script("na~0", code, *ODD_BYTES)).exit_code == 0
    assert owner.output("na~0") == b"\0".join(ODD_BYTES)


def test_the_environment_is_the_one_given_and_nothing_else(owner: Owner) -> None:
    env = (
        (b"A", b"x\ny"), (b"B", b"="), (b"C", b""), (b"BASH_FUNC_f%%", b"() {  echo hi\n}"),
        (b"D", b"\xff"), (b"\xfe", b"1"),
    )  # fmt: skip
    assert owner.run(command("na~0", b"/usr/bin/env", b"-0", env=env)).exit_code == 0
    assert owner.output("na~0") == b"".join(name + b"=" + value + b"\0" for name, value in env)


@pytest.mark.parametrize("stdin", [None, b"", b"some\n\0bytes\xff", b"y" * (256 << 10)])
def test_standard_input_is_a_file_or_nothing(owner: Owner, stdin: bytes | None) -> None:
    assert owner.run(command("na~0", b"/bin/cat", stdin=stdin)).exit_code == 0
    assert owner.output("na~0") == (stdin or b"")


def test_standard_input_that_nobody_reads_holds_up_nobody(owner: Owner) -> None:
    ended = owner.run(command("na~0", b"/bin/true", stdin=b"y" * (256 << 10)))
    assert ended.exit_code == 0


def test_directory_umask_session_and_group(owner: Owner, tmp_path: Path) -> None:
    work = tmp_path / "wörk \n dir"
    work.mkdir()
    code = (
        "import os; os.close(os.open('made', os.O_CREAT, 0o666));"
        "print(os.getcwd(), os.getpid() == os.getsid(0) == os.getpgrp(), sep='|')"
    )
    assert owner.run(script("na~0", code, cwd=os.fsencode(work), umask=0o027)).exit_code == 0
    assert owner.output("na~0") == os.fsencode(work) + b"|True\n"
    assert stat.S_IMODE((work / "made").stat().st_mode) == 0o640


@pytest.mark.skipif(linux_only, reason="reads /proc")
def test_only_three_descriptors_are_open(owner: Owner) -> None:
    owner.started(command("na~other", b"/bin/sleep", b"20"))
    assert owner.run(command("na~0", b"/bin/ls", b"/proc/self/fd")).exit_code == 0
    # The fourth is what ls opened to look.
    assert owner.output("na~0").split() == [b"0", b"1", b"2", b"3"]
    owner.client.stop("na~other", kill=True)


@pytest.mark.skipif(linux_only, reason="reads /proc")
def test_signals_are_in_their_default_state_whatever_the_daemon_ignored(tmp_path: Path) -> None:
    """The daemon runs under nohup and more: HUP, PIPE, TERM, USR1 ignored, INT and CHLD blocked."""
    code = """
import os, select, signal, sys
from pathlib import Path
for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM, signal.SIGUSR1, signal.SIGRTMIN):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGCHLD})
from tests.keeper.harness import Owner, command
owner = Owner(Path(sys.argv[1]), idle_s=0.1)
owner.run(command("na~0", b"/bin/cat", b"/proc/self/status"))
sys.stdout.buffer.write(owner.output("na~0"))
"""
    arguments = [sys.executable, "-c", code, str(tmp_path / "store")]
    status = subprocess.run(arguments, capture_output=True, check=True, env=with_our_path()).stdout
    masks = dict(
        line.split(b":\t") for line in status.splitlines() if line.startswith((b"SigBlk", b"SigIgn", b"SigCgt"))
    )
    # 32 and 33 are glibc's own: its posix_spawn leaves them ignored, and its calls refuse to change that.
    found = {name: int(mask, 16) & ~(0b11 << 31) for name, mask in masks.items()}
    assert found == {b"SigBlk": 0, b"SigIgn": 0, b"SigCgt": 0}


@pytest.mark.skipif(linux_only, reason="the limit is raised where the hard one allows")
def test_the_limit_on_open_files_is_the_daemons(tmp_path: Path) -> None:
    code = """
import os, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))
from tests.keeper.harness import Owner, shell, command
from nereus_cli.destinations.keeper_facts import Started
owner = Owner(Path(sys.argv[1]), idle_s=0.1)
names = [f"na~{number}" for number in range(60)]
owner.start(*(command(name, b"/bin/sleep", b"20") for name in names))
for name in names:
    owner.wait(Started, name)
owner.run(shell("na~limit", "ulimit -Sn; ulimit -Hn"))
sys.stdout.buffer.write(owner.output("na~limit"))
for name in names:
    owner.client.stop(name, kill=True)
"""
    arguments = [sys.executable, "-c", code, str(tmp_path / "store")]
    assert subprocess.run(arguments, capture_output=True, check=True, env=with_our_path()).stdout.split() == [
        b"64",
        b"4096",
    ]


def test_sigpipe_ends_a_producer(owner: Owner) -> None:
    assert owner.run(shell("na~0", "yes | head -1")).exit_code == 0
    assert owner.output("na~0") == b"y\n"


def test_the_executable_is_searched_in_the_childs_path(owner: Owner, tmp_path: Path) -> None:
    for place, word in (("one", "no"), ("two", "yes")):
        (tmp_path / place).mkdir()
        tool = tmp_path / place / "only-here"
        tool.write_text(f"#!/bin/sh\necho {word}\n")
        tool.chmod(0o755 if place == "two" else 0o644)
    path = f"{tmp_path}/none:{tmp_path}/one:{tmp_path}/two".encode()
    assert owner.run(command("na~0", b"only-here", env=((b"PATH", path),))).exit_code == 0
    assert owner.output("na~0") == b"yes\n"
    assert owner.refused(command("na~1", b"only-here", env=ENV)).errno == errno.ENOENT


@pytest.fixture
def odd_files(tmp_path: Path) -> Path:
    place = tmp_path / "odd"
    place.mkdir()
    (place / "no-interpreter-line").write_text("echo hi\n")
    (place / "bad-interpreter").write_text("#!/nowhere/sh\n")
    (place / "not-executable").write_text("#!/bin/sh\n")
    for name in ("no-interpreter-line", "bad-interpreter"):
        (place / name).chmod(0o755)
    return place


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("missing", errno.ENOENT),
        ("no-interpreter-line", errno.ENOEXEC),
        ("bad-interpreter", errno.ENOENT),
        ("not-executable", errno.EACCES),
        ("", errno.EACCES),
        ("not-executable/below", errno.ENOTDIR),
    ],
)
def test_what_exec_refuses_never_started(owner: Owner, odd_files: Path, name: str, number: int) -> None:
    refused = owner.refused(command("na~0", os.fsencode(odd_files / name)))
    assert (refused.errno, refused.what, refused.for_want_of_resources) == (number, "exec", False)


@pytest.mark.parametrize(
    ("argv", "number"),
    [
        ((b"",), errno.ENOENT),
        ((b"/bin/true", b"x" * (200 << 10)), errno.E2BIG),
        ((b"/bin/true", *[b"x" * (100 << 10)] * 80), errno.E2BIG),
    ],
)
def test_arguments_that_exec_refuses(owner: Owner, argv: tuple[bytes, ...], number: int) -> None:
    refused = owner.refused(command("na~0", *argv))
    assert (refused.errno, refused.what, refused.for_want_of_resources) == (number, "exec", False)


@pytest.mark.parametrize(
    "changes",
    [
        {"argv": ()},
        {"argv": (b"/bin/echo", b"a\0b")},
        {"env": ((b"A=B", b"c"),)},
        {"env": ((b"", b"c"),)},
        {"env": ((b"A", b"\0"),)},
        {"cwd": b"relative"},
        {"umask": 0o1000},
        {"timeout_ms": -1},
        {"stdin": b"y" * ((256 << 10) + 1)},
    ],
)
def test_what_nobody_may_ask(owner: Owner, changes: dict[str, object]) -> None:
    refused = owner.refused(command("na~0", **{"argv": (b"/bin/true",), **changes}))
    assert (refused.errno, refused.what) == (errno.EINVAL, "request")


@pytest.mark.parametrize("kind", ["gone", "a file", "below a file", "not allowed"])
def test_a_working_directory_that_is_not_there(owner: Owner, tmp_path: Path, kind: str) -> None:
    work = tmp_path / "work"
    if kind == "gone":
        number = errno.ENOENT
    elif kind == "not allowed":
        if os.geteuid() == 0:
            pytest.skip("root may enter every directory")
        work.mkdir(mode=0o000)
        number = errno.EACCES
    else:
        work.write_text("")
        work = work / "below" if kind == "below a file" else work
        number = errno.ENOTDIR
    refused = owner.refused(command("na~0", b"/bin/true", cwd=os.fsencode(work)))
    assert (refused.errno, refused.what, refused.for_want_of_resources) == (number, "cwd", False)
    assert owner.run(command("na~1", b"/bin/true")).exit_code == 0


def test_a_directory_that_answered_a_moment_ago_may_be_gone(owner: Owner, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    owner.run(command("na~0", b"/bin/true", cwd=os.fsencode(work)))
    work.rmdir()
    refused = owner.refused(command("na~1", b"/bin/true", cwd=os.fsencode(work)))
    assert (refused.errno, refused.what) == (errno.ENOENT, "cwd")


def test_status_signal_and_resource_use_are_the_kernels(owner: Owner) -> None:
    busy = owner.run(shell("na~0", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; exit 75"))
    assert (busy.exit_code, busy.signal) == (75, None)
    assert busy.utime_s + busy.stime_s > 0
    assert busy.maxrss_kib > 0
    assert busy.started_at_ns < busy.ended_at_ns
    assert busy.survivors == 0
    killed = owner.run(shell("na~1", "kill -9 $$"))
    assert (killed.exit_code, killed.signal) == (None, signal.SIGKILL)
    assert not killed.timed_out
    assert not killed.stopped


@pytest.mark.skipif(linux_only, reason="limits of another process")
def test_no_descriptors_left_is_our_lack_and_passes(make_owner: Make) -> None:
    owner = make_owner()
    owner.run(command("na~warm", b"/bin/true"))
    limits = limit(owner.pid, resource.RLIMIT_NOFILE)
    count = len(os.listdir(f"/proc/{owner.pid}/fd"))
    limit(owner.pid, resource.RLIMIT_NOFILE, (count, limits[1]))
    refused = owner.refused(command("na~0", b"/bin/true"))
    assert refused.errno == errno.EMFILE
    assert refused.for_want_of_resources
    limit(owner.pid, resource.RLIMIT_NOFILE, limits)
    assert owner.run(command("na~1", b"/bin/true")).exit_code == 0


@pytest.mark.skipif(linux_only, reason="chooses the next pid")
def test_a_pid_that_was_used_again_is_never_signalled(owner: Owner) -> None:
    pid = owner.started(command("na~0", b"/bin/true"))
    owner.wait(Ended, "na~0")
    last = Path("/proc/sys/kernel/ns_last_pid")
    try:
        last.write_text(str(pid - 1))
    except OSError:
        pytest.skip("the next pid cannot be chosen here")
    for _ in range(300):
        last.write_text(str(pid - 1))
        bystander = subprocess.Popen(["/bin/sleep", "20"], start_new_session=True)
        if bystander.pid == pid:
            break
        bystander.kill()
        bystander.wait()
    else:
        pytest.skip("others took the pid each time")
    owner.client.stop("na~0", kill=True)
    owner.run(command("na~1", b"/bin/true"))
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


@pytest.mark.skipif(linux_only, reason="orphans come to a subreaper")
def test_five_hundred_orphans_leave_no_zombie(owner: Owner) -> None:
    names = [f"na~{number}" for number in range(500)]
    for begin in range(0, 500, 50):
        owner.start(*(shell(name, "(sleep 0.3 >&- 2>&- &) ; exit 0") for name in names[begin : begin + 50]))
        owner.wait(Ended, names[begin + 49])
    for name in names:
        assert owner.wait(Ended, name).exit_code == 0
    end = time.monotonic() + 5
    while any(_children(owner.pid)) and time.monotonic() < end:
        time.sleep(0.05)
    assert _children(owner.pid) == []
    owner.start(*(command(f"na~ten{number}", b"/bin/true") for number in range(10)))
    for number in range(10):
        assert owner.wait(Ended, f"na~ten{number}").exit_code == 0


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_start_too_large_to_send_is_refused_before_anything_is_sent(owner: Owner) -> None:
    with pytest.raises(ValueError, match="at most"):
        owner.start(command("na~0", b"/bin/true"), command("na~1", b"/bin/true", b"x" * (17 << 20)))
    owner.run(command("na~2", b"/bin/true"))
    assert not owner.about("na~0")


@pytest.mark.skipif(linux_only, reason="reads /proc")
def test_the_keeper_dies_and_its_child_is_not_stopped_by_us(owner: Owner) -> None:
    pid = owner.started(command("na~0", b"/bin/sleep", b"20"))
    end_keeper(owner.pid)
    time.sleep(0.1)
    assert process_state(pid) is not None
    os.kill(pid, signal.SIGKILL)


def test_facts_of_an_attempt_come_in_order(owner: Owner) -> None:
    owner.run(command("na~0", b"/bin/true"))
    assert [type(said) for said in owner.about("na~0")] == [Started, Ended]
    owner.refused(command("na~1", b"/nowhere"))
    assert [type(said) for said in owner.about("na~1")] == [NotStarted]
