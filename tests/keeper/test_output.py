"""Output as bytes, bounded, with totals; a verdict that waits for nobody who holds a stream open."""

import hashlib
import os
import resource
from pathlib import Path

import pytest

from nereus_cli.destinations.keeper_facts import Ended
from nereus_cli.destinations.keeper_store import output_names
from tests.keeper.harness import Owner, command, limit, linux_only, process_state, shell, until

MIB = 1 << 20


def test_five_megabytes_of_noise_on_both_streams(owner: Owner) -> None:
    both = "head -c 5242880 /dev/urandom | tee copy; head -c 5242880 /dev/urandom >&2"
    ended = owner.run(shell("na~0", both, cwd=os.fsencode(owner.store)))
    assert ended.exit_code == 0
    assert (ended.stdout_bytes, ended.stderr_bytes) == (5 * MIB, 5 * MIB)
    assert (ended.stdout_kept, ended.stderr_kept) == (MIB, MIB)
    copy = (owner.store / "copy").read_bytes()
    assert hashlib.sha256(owner.output("na~0")).digest() == hashlib.sha256(copy[:MIB]).digest()
    assert len(owner.output("na~0", ".err")) == MIB


@pytest.mark.parametrize(("written", "bound"), [(0, 10), (9, 10), (10, 10), (11, 10), (200_000, 100_000), (5, 0)])
def test_the_bound_is_exact_and_the_total_is_told(owner: Owner, written: int, bound: int) -> None:
    ended = owner.run(shell("na~0", f"head -c {written} /dev/zero", output_bytes_max=bound))
    assert (ended.stdout_bytes, ended.stdout_kept) == (written, min(written, bound))
    assert owner.output("na~0") == bytes(min(written, bound))


def test_streams_are_kept_apart_and_the_second_only_when_used(owner: Owner) -> None:
    owner.run(shell("na~0", "echo out; echo err >&2"))
    owner.run(shell("na~1", "echo out"))
    out, err = output_names(1, "na~0")
    assert (owner.store / out).read_bytes() == b"out\n"
    assert (owner.store / err).read_bytes() == b"err\n"
    assert not (owner.store / output_names(1, "na~1")[1]).exists()


def test_a_grandchild_that_holds_the_output_delays_nothing_and_is_read_on(owner: Owner) -> None:
    waits = "while [ ! -e go ]; do sleep 0.02; done; head -c 300000 /dev/zero; echo late >&2"
    ended = owner.run(shell("na~0", f"echo early; ({waits}) & exit 0", cwd=os.fsencode(owner.store)))
    (owner.store / "go").touch()
    assert (ended.exit_code, ended.stdout_bytes) == (0, 6)
    assert until((owner.store / output_names(1, "na~0")[1]).exists)
    assert len(owner.output("na~0")) == 300_006
    assert owner.output("na~0", ".err") == b"late\n"


def test_a_grandchild_that_never_stops_writing_delays_nothing(owner: Owner) -> None:
    ended = owner.run(shell("na~0", "yes & echo $! >&2; exit 4"))
    assert ended.exit_code == 4
    assert owner.run(command("na~1", b"/bin/true")).exit_code == 0
    os.kill(int(owner.output("na~0", ".err")), 9)


@pytest.mark.skipif(linux_only, reason="reads /proc")
def test_the_keeper_stays_for_a_holder_of_its_pipes(owner: Owner) -> None:
    owner.run(shell("na~0", "(sleep 1.7; echo late) & exit 0"))
    owner.close()
    assert until(lambda: owner.output("na~0") == b"late\n", 10), "the holder was cut off"
    assert until(lambda: process_state(owner.pid) is None)


@pytest.mark.skipif(linux_only, reason="limits of another process")
def test_output_that_finds_no_space_is_counted_and_the_verdict_stands(owner: Owner) -> None:
    owner.run(command("na~warm", b"/bin/true"))
    limit(owner.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    ended = owner.run(shell("na~0", "ulimit -S -f unlimited; head -c 500000 /dev/zero; exit 3"))
    assert (ended.exit_code, ended.stdout_bytes, ended.stdout_kept) == (3, 500_000, 100_000)


def test_output_of_a_stopped_attempt_is_kept(owner: Owner) -> None:
    owner.started(shell("na~0", "echo begun; exec sleep 60"))
    assert owner.heard(lambda: owner.output("na~0") == b"begun\n")
    owner.client.stop("na~0")
    assert owner.wait(Ended, "na~0").stdout_kept == 6


def test_nothing_of_an_attempt_can_be_written_through_a_symlink(owner: Owner, tmp_path: Path) -> None:
    """Who can write the store may run commands anyway; yet a name made beforehand must not be followed."""
    place = owner.store / "attempts" / "00000001"
    place.mkdir(parents=True)
    (place / "na~0.err").symlink_to(tmp_path / "elsewhere")
    ended = owner.run(shell("na~0", "echo err >&2"))
    assert (ended.stderr_bytes, ended.stderr_kept) == (4, 0)
    assert not (tmp_path / "elsewhere").exists()
