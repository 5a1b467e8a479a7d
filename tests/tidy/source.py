"""The text of the project, for the tests that read it instead of running it."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import nereus_cli

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(nereus_cli.__file__).resolve().parent
MODULES = sorted(PACKAGE.rglob("*.py"))


def short(path: Path) -> str:
    """Name a module as the architecture page does: `domain/apply.py`."""
    return path.relative_to(PACKAGE).as_posix()


def dotted(path: Path) -> str:
    """Name a module as Python does: `nereus_cli.domain.apply`."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    """Parse a module once."""
    return ast.parse(path.read_bytes(), str(path))


def imports(path: Path) -> set[str]:
    """Name everything a module imports, wherever in it; `from a import b` counts as `a` and as `a.b`."""
    return set(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{short(path)}:{node.lineno}: a relative import hides which layer it reaches"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def within(name: str, package: str) -> bool:
    """Whether a dotted name is the package or lies in it."""
    return name == package or name.startswith(package + ".")


def tracked() -> list[Path]:
    """List the files of the project as git has them; skips the test where there is no git to ask."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [path for name in listing.split(b"\0") if name and (path := ROOT / name.decode()).is_file()]
