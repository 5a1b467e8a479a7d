"""The lock files: every pin with its hashes, and in agreement with what the project declares."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.tidy.source import ROOT

LOCKS = ("runtime.lock", "dev.lock")
PIN = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; [^\\]+)? \\$(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\$)?)+$",
    re.MULTILINE,
)


def _pins(lock: str) -> set[tuple[str, str]]:
    """Names and versions; a name stands more than once where Pythons or systems need different versions."""
    return {(pin["name"], pin["version"]) for pin in PIN.finditer((ROOT / ".ci" / "locks" / lock).read_text())}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_hashed_pins_and_comments_and_nothing_else(lock: str) -> None:
    rest = PIN.sub("", (ROOT / ".ci" / "locks" / lock).read_text())
    assert [line for line in rest.splitlines() if line and not line.startswith("#")] == []


def test_the_development_lock_contains_the_runtime_lock() -> None:
    assert _pins("runtime.lock") <= _pins("dev.lock")


@pytest.mark.parametrize("lock", LOCKS)
def test_what_is_locked_is_what_is_declared(lock: str) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = [*settings["project"]["dependencies"]]
    if lock == "dev.lock":
        declared += settings["dependency-groups"]["dev"]
    pins = _pins(lock)
    for requirement in map(Requirement, declared):
        versions = [version for name, version in pins if name == requirement.name]
        assert any(map(requirement.specifier.contains, versions)), f"run 'make lock': {requirement}"
