"""Documents as tests: blocks of commands are run, and what they print is compared, with a name in place of what
differs from run to run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^```(\w+)[ ]?([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "INSTANT"),
    (re.compile(r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d \S+?(?=[)\t\n]|$)"), "LOCAL"),
    (re.compile(r"n[acm]\\?~[0-9a-f]{32}"), "GENERATED"),
    (re.compile(r"\b\d+s ago\b"), "AGE ago"),
    (re.compile(r"(?<=\| asked for by \| )[^|\n]+(?= \|)"), "USER"),
    (re.compile(r"\bposition \d+"), "position N"),
    (re.compile(r"\bpositions \d+ to \d+, applied \d+"), "positions N to N, applied N"),
    (re.compile(r"\bpid \d+"), "pid N"),
    (re.compile(r"^created \S+", re.MULTILINE), "created STORE"),
)


class Block(NamedTuple):
    """A fenced block of a page."""

    kind: str
    name: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page that say what they are."""
    return [Block(*found) for found in BLOCK.findall(page.read_text("utf-8"))]


def same(text: str) -> str:
    """``text`` with a name in place of everything that differs from run to run."""
    for pattern, name in VARYING:
        text = pattern.sub(name, text)
    return text.strip()


def environment(store: Path) -> dict[str, str]:
    """``nereus`` on PATH, whatever it was installed as, and a store of one's own."""
    beside = os.path.dirname(sys.executable)
    return {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}", "NEREUS_STORE": str(store)}


def run(command: str, store: Path, *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A line of a document, in a shell."""
    return subprocess.run(
        ["/bin/sh", "-c", command],
        env=environment(store),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=cwd,
    )
