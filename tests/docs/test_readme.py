"""The README tells the truth: its transcript, its five lines, its exit statuses, its links."""

from __future__ import annotations

import re
from pathlib import Path

from nereus_cli.cli.exits import MEANINGS
from tests.docs.transcripts import blocks, environment, run, same
from tests.tidy.source import ROOT

README = ROOT / "README.md"


def test_the_quickstart_is_what_the_readme_shows(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    shown = next(block.text for block in blocks(README) if block.name == "quickstart")
    ran = run("sh sample_commands/quickstart.sh", tmp_path / "unused", cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    assert same(ran.stdout) == same(shown)
    assert not (tmp_path / "unused").exists()


def test_the_five_lines_work_in_their_order(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    lines = next(block.text for block in blocks(README) if block.kind == "console").splitlines()
    assert len(lines) == 5
    printed = [run(line.removeprefix("$ "), tmp_path / "store") for line in lines]
    assert [one.returncode for one in printed] == [0] * 5, [one.stderr for one in printed]
    assert "reminder-4711" in printed[1].stdout
    assert "PUBLISHED" in printed[4].stdout


def test_the_table_names_every_exit_status() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \| ", README.read_text("utf-8"), re.MULTILINE)
    assert sorted(int(number) for row in rows for number in row.split(",")) == sorted(MEANINGS)


def test_every_link_leads_somewhere() -> None:
    for page in (README, *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_make_knows_the_two_commands_of_the_readme(tmp_path: Path) -> None:
    for name in ("quickstart", "test"):
        dry = run(f"make -n {name}", tmp_path, cwd=ROOT)
        assert dry.returncode == 0, dry.stderr
    assert environment(tmp_path)["NEREUS_STORE"] == str(tmp_path)
