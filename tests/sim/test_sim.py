"""The simulation itself: one seed is one trace, and what is broken on purpose does not get by."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from unittest.mock import patch

import pytest

from nereus_cli.destinations import keeper_decide
from nereus_cli.log import handle, repair
from nereus_cli.log.handle import Handle
from nereus_cli.log.mark import Mark
from tests.sim.__main__ import main
from tests.sim.machine import Machine, SimDirectory, SimFile
from tests.sim.minimal import smallest
from tests.sim.run import Report, simulate
from tests.sim.trouble import SWITCHES, drawn


def first_failure(years: float = 1.0, seeds: int = 12) -> Report | None:
    runs = (simulate(seed, years) for seed in range(1, seeds + 1))
    return next((report for report in runs if report.failure), None)


def test_one_seed_is_one_trace_whatever_the_hash_seed_and_another_seed_is_another() -> None:
    code = "from tests.sim.run import simulate; print(simulate(5, 0.2).trace)"
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for number in ("0", "7")
    ]
    assert said == [simulate(5, 0.2).trace] * 2
    assert simulate(6, 0.2).trace != said[0]


def test_each_feature_is_off_in_some_runs_and_on_in_most() -> None:
    features = [drawn(random.Random(f"{seed}/features")) for seed in range(200)]
    for name in SWITCHES:
        assert 100 < sum(getattr(one, name) for one in features) < 190, name


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--off kills,typo", SWITCHES),
        ("--off switching", SWITCHES),
        ("--years 0", ("--years",)),
        ("--years -1", ("--years",)),
        ("--years nan", ("--years",)),
    ],
)
def test_a_run_that_would_not_be_what_was_asked_for_is_refused(
    line: str, said: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert [name for name in said if name not in error] == []


def unsynced(h: Handle, _first: int, last: int) -> None:
    h.write_note(last + 1, last)


def any_boot(self: Handle) -> Mark | None:
    mark = self.room.mark()
    if mark is None or self.room.inode_of(mark.ordinal) != mark.inode:
        return None
    return mark if self.room.inode_of(mark.ordinal + 1) is None else None


BROKEN: list[tuple[str, object, str, object, str]] = [
    ("the log is not synced", repair, "_sync_noted", unsynced, "I1|cannot be read"),
    ("a mark of another boot is believed", handle.Handle, "mark", any_boot, "no rest|I1|cannot be read|durable"),
    ("a missing door proves everything", keeper_decide._Decision, "_doubt", lambda *_: None, "never to have begun"),
]


@pytest.mark.parametrize(("what", "where", "name", "instead", "says"), BROKEN, ids=[row[0] for row in BROKEN])
def test_what_is_broken_on_purpose_is_noticed(
    what: str, where: object, name: str, instead: Callable[..., object], says: str
) -> None:
    with patch.object(where, name, instead):
        report = first_failure()
    assert report is not None, what
    assert re.search(says, report.failure)


def test_a_failure_is_reduced_to_few_features() -> None:
    with patch.object(repair, "_sync_noted", unsynced):
        report = first_failure()
        assert report is not None
        off = smallest(report)
        assert len(off) > len(SWITCHES) // 2
        assert simulate(report.seed, report.years, off=off).failure


def test_a_power_cut_keeps_what_was_synced_and_any_part_of_the_rest() -> None:
    left, names = set(), set()
    for seed in range(300):
        machine = Machine(random.Random(seed), ordered=bool(seed % 2))
        file = machine.make_file()
        machine.root.change("kept", file)
        machine.root.sync()
        file.change(b"synced", 0)
        file.sync()
        file.change(b"x" * 600, 6)
        machine.root.change("new", machine.make_file())
        machine.power_cut()
        found = machine.root.live["kept"]
        assert isinstance(found, SimFile)
        assert found.live[:6] == b"synced"
        assert found.live == found.durable
        left.add(bytes(found.live[6:]))
        names.add(tuple(sorted(machine.root.live)))
    assert {b"", b"x" * 600} < left
    assert any(0 < len(rest) < 600 for rest in left), "torn"
    assert any(b"\0" in rest and b"x" in rest for rest in left), "a sector that was never written"
    assert names == {("kept",), ("kept", "new")}


def test_a_failed_sync_is_never_made_good_by_a_later_one() -> None:
    lost = 0
    for seed in range(40):
        file = SimFile(1)
        file.change(b"data", 0)
        file.sync_failed(random.Random(seed), evict=False)
        assert file.live == b"data", "the page cache shows it"
        file.sync()
        lost += file.durable != b"data"
    assert lost


def test_an_ordered_directory_keeps_a_beginning_of_its_changes() -> None:
    for seed in range(50):
        directory = SimDirectory()
        for number in range(6):
            directory.change(str(number), SimFile(number))
        directory.cut(random.Random(seed), ordered=True)
        assert sorted(directory.live) == [str(number) for number in range(len(directory.live))]
