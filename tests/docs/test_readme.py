"""The README tells the truth: its transcript, its five lines, its exit statuses, its links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nereus_cli.cli.exits import MEANINGS
from tests.docs.transcripts import blocks, environment, run, same
from tests.tidy.source import ROOT

README = ROOT / "README.md"


TRANSCRIPTS = {block.name: block.text for block in blocks(README) if block.kind == "transcript"}


@pytest.mark.parametrize("name", ["quickstart", "settle"])
def test_a_transcript_is_what_its_sample_prints(tmp_path: Path, name: str) -> None:
    tmp_path.chmod(0o700)
    shown = TRANSCRIPTS[name]
    ran = run(f"sh sample_commands/{name}.sh", tmp_path / "unused", cwd=ROOT)
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


def test_from_a_failed_check_to_a_settled_one_in_three_commands() -> None:
    """What ``--check`` names is the second command, what that prints is the third: nothing has to be known besides."""
    lines = [line for line in TRANSCRIPTS["settle"].splitlines() if line.startswith("$ nereus ")]
    first = lines.index("$ nereus status --check")
    assert [line.split()[2] for line in lines[first:]] == ["status", "uncertain", "resolve", "status"]
    failed, settled = TRANSCRIPTS["settle"].split("$ nereus status --check")[1:]
    assert "nereus uncertain report\n(exit status 30)" in failed
    assert 'nereus resolve transfer-17 --attempt 1 --published --evidence "$EVIDENCE"' in failed
    assert "attention" not in settled
    assert "exit status" not in settled


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
