"""Where the rules of zones come from, which release they belong to, and what is loaded to read them."""

import os
import subprocess
import sys
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import nereus_cli.wish
from nereus_cli.wish import zones
from nereus_cli.wish.zones import find_zone, offset_at, read_wall
from tests.wish.asking import NS, ask, refused


@pytest.fixture
def own_tree(tmp_path: Path) -> Iterator[Path]:
    """A zone database of the test's own; whatever was read before is forgotten, and again afterwards."""
    tree = tmp_path / "tree"
    (tree / "Europe").mkdir(parents=True)
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([tree])
    zones._loaded.clear()
    yield tree
    zoneinfo.reset_tzpath(before)
    zones._loaded.clear()


def build(tree: Path, *lines: str) -> None:
    source = tree.parent / "source.zi"
    source.write_text("\n".join(lines) + "\n")
    try:
        subprocess.run(["zic", "-d", tree, source], check=True, capture_output=True, env={"PATH": search_path()})
    except FileNotFoundError:
        pytest.skip("zic is not installed")


def search_path() -> str:
    return os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"


def test_the_version_is_that_of_the_tree_the_zone_came_from(own_tree: Path) -> None:
    build(own_tree, "Zone Europe/Testland 2:00 - TST")
    assert ask("2027-06-01T09:00", "Europe/Testland").zone_data_version == "unknown"
    for file, content, version in (
        ("+VERSION", "2031c\n", "2031c"),
        ("tzdata.zi", "# redistributed\n", "2031c"),
        ("tzdata.zi", "# version 2031d\n# more\n", "2031d"),
    ):
        (own_tree / file).write_text(content)
        zones._loaded.clear()
        assert ask("2027-06-01T09:00", "Europe/Testland").zone_data_version == version


def test_rules_and_version_are_read_once_and_together(own_tree: Path) -> None:
    build(own_tree, "Zone Europe/Testland 2:00 - TST")
    (own_tree / "+VERSION").write_text("A")
    first = ask("2027-06-01T09:00", "Europe/Testland")
    build(own_tree, "Zone Europe/Testland 3:00 - TST")
    (own_tree / "+VERSION").write_text("B")
    assert ask("2027-06-01T09:00", "Europe/Testland") == first
    zones._loaded.clear()
    second = ask("2027-06-01T09:00", "Europe/Testland")
    assert (second.zone_data_version, second.instant_ns) == ("B", first.instant_ns - 3600 * NS)


@pytest.mark.parametrize("content", [b"", b"TZif", b"TZif2" + b"\0" * 20, b"TZif2" + b"\xff" * 200, b"text\n" * 50])
def test_a_damaged_zone_file_is_an_unknown_zone(own_tree: Path, content: bytes) -> None:
    (own_tree / "Europe" / "Broken").write_bytes(content)
    assert refused("2027-06-01T09:00", "Europe/Broken").code == "UNKNOWN_ZONE"


def test_clock_changes_closer_than_their_size_still_give_true_answers(own_tree: Path) -> None:
    build(
        own_tree,
        "Rule Odd 2027 only - Jun 1 0:00u 3:00 S",
        "Rule Odd 2027 only - Jun 1 1:00u 0:00 -",
        "Rule Odd 2027 only - Jun 1 2:00u 1:00 S",
        "Zone Europe/Odd 0:00 Odd O%s",
    )
    zone = find_zone("Europe/Odd")
    start = ask("2027-05-31T12:00:00Z").instant_ns // NS
    for wall_s in range(start, start + 86_400, 300):
        reading = read_wall(zone, wall_s)
        shown = {second + offset_at(zone, second) for second in (reading.earlier_s, reading.later_s)}
        assert reading.earlier_s <= reading.later_s
        assert (reading.kind == "GAP") == (wall_s not in shown)


def test_without_a_tree_the_version_is_that_of_the_tzdata_package(
    own_tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not list(own_tree.glob("*/*"))
    package = ModuleType("tzdata")
    for module, version in ((package, "unknown"), (None, "unknown")):
        monkeypatch.setitem(sys.modules, "tzdata", module)
        assert zones._data_version("Europe/Berlin") == version
    package.IANA_VERSION = "2031e"  # type: ignore[attr-defined]  # as the real package has
    monkeypatch.setitem(sys.modules, "tzdata", package)
    assert zones._data_version("Europe/Berlin") == "2031e"


def test_no_zone_data_at_all_still_leaves_utc_and_offsets(own_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_tree.is_dir()
    monkeypatch.setitem(sys.modules, "tzdata", None)
    assert ask("2027-06-01T09:00", "UTC").instant_ns == ask("2027-06-01T11:00[+02:00]").instant_ns
    assert refused("2027-06-01T09:00", "Europe/Berlin").code == "UNKNOWN_ZONE"


ASK_IN_A_PROCESS = """
from nereus_cli.wish.instant import parse_instant
from nereus_cli.wish.refusal import Refusal
from nereus_cli.wish.show import local_text
try:
    found = parse_instant("2027-06-01T09:00[Europe/Testland]", zone=None, gap=None, fold=None, now_ns=0)
    print(found.instant_ns, found.zone_data_version)
except Refusal as refusal:
    print(refusal.code)
print(local_text(1811833200000000000, "Europe/Testland"))
"""


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (
            "Zone Europe/Testland 2:00 - TST",
            "1811833200000000000 2031x\nTue 2027-06-01 09:00:00 +02:00 Europe/Testland\n",
        ),
        (
            "Zone Europe/Testland 3:00 - TST",
            "1811829600000000000 2031x\nTue 2027-06-01 10:00:00 +03:00 Europe/Testland\n",
        ),
        ("", 'UNKNOWN_ZONE\nTue 2027-06-01 07:00:00 +00:00 UTC (no data for zone "Europe/Testland")\n'),
    ],
)
def test_another_zone_database_is_asked_when_the_environment_names_it(tmp_path: Path, line: str, answer: str) -> None:
    tree = tmp_path / "tree"
    build(tree, line)
    tree.mkdir(exist_ok=True)
    (tree / "+VERSION").write_text("2031x\n")
    finished = subprocess.run(
        [sys.executable, "-c", ASK_IN_A_PROCESS],
        env={"PYTHONTZPATH": str(tree), "PYTHONPATH": str(Path(nereus_cli.wish.__path__[0]).parents[1])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert finished.stdout == answer


LIGHT = """
import sys
from nereus_cli.wish.duration import format_duration, parse_duration
from nereus_cli.wish.show import rfc3339
format_duration(parse_duration("1h30m"))
rfc3339(0)
print(sorted({"datetime", "zoneinfo", "difflib", "nereus_cli.wish.mend", "nereus_cli.wish.zones"} & set(sys.modules)))
from nereus_cli.wish.instant import parse_instant
parse_instant("2027-06-01T09:00:00+02:00", zone="UTC", gap=None, fold=None, now_ns=0)
print(sorted({"datetime", "zoneinfo", "difflib"} & set(sys.modules)))
"""


def test_only_a_named_zone_loads_the_machinery_of_zones() -> None:
    environment = {"PYTHONPATH": str(Path(nereus_cli.wish.__path__[0]).parents[1])}
    command = [sys.executable, "-c", LIGHT]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert finished.stdout == "[]\n[]\n"
