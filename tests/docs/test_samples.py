"""Every sample is run, and its whole transcript compared with the one kept in ``expected/``.

``REWRITE_TRANSCRIPTS=1 pytest tests/docs`` writes them anew, to be read in review.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.transcripts import run, same
from tests.tidy.source import ROOT

SAMPLES = ROOT / "sample_commands"
EXPECTED = Path(__file__).parent / "expected"
SCRIPTS = sorted(path.name for path in SAMPLES.glob("*.sh") if path.name != "store.sh")


@pytest.mark.parametrize("script", [name for name in SCRIPTS if name != "quickstart.sh"])
def test_a_sample_prints_what_it_always_printed(tmp_path: Path, script: str) -> None:
    tmp_path.chmod(0o700)
    ran = run(f"TZ=UTC TMPDIR='{tmp_path}' sh sample_commands/{script} 2>&1", tmp_path / "unused", cwd=ROOT)
    assert ran.returncode == 0, ran.stdout
    kept = EXPECTED / f"{script}.txt"
    if os.environ.get("REWRITE_TRANSCRIPTS") == "1":
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(same(ran.stdout) + "\n", encoding="utf-8")
    assert same(ran.stdout) == kept.read_text("utf-8").strip()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("tmp")] == []


def test_every_sample_is_listed_and_every_kept_transcript_has_its_script() -> None:
    page = (SAMPLES / "README.md").read_text("utf-8")
    names = [path.name for path in SAMPLES.iterdir() if path.name not in {"README.md", "store.sh"}]
    assert [name for name in names if f"({name})" not in page] == []
    assert sorted(path.name for path in EXPECTED.iterdir()) == [
        f"{name}.txt" for name in SCRIPTS if name != "quickstart.sh"
    ]
