"""Who may import what, where import-linter cannot say it: the standard library, other packages, single calls.

The layers themselves are a contract of import-linter in `pyproject.toml`.
"""

import ast
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tidy.source import MODULES, dotted, imports, short, tree, within

PURE = ("nereus_cli.domain", "nereus_cli.codec", "nereus_cli.ports", "nereus_cli.log.frame")
IMPURE = frozenset(
    {"asyncio", "datetime", "io", "logging", "os", "pathlib", "random", "secrets", "socket", "sqlite3"}
    | {"subprocess", "threading", "time", "uuid"}
)

# The only part that knows this package.
KEPT_BY = {
    "click": "nereus_cli.cli",
    "rich": "nereus_cli.render",
    "typer": "nereus_cli.cli",
    "sqlite3": "nereus_cli.projection",
}

# The only importers of this module, beside the module itself.
IMPORTED_BY = {"nereus_cli.keeper": (), "nereus_cli.testing": ("nereus_cli.pytest_plugin",)}

# What becomes durable does so in one module. The keeper imports nothing of ours, so it makes its own calls.
DURABLE_CALLS = frozenset({"fdatasync", "fsync", "link", "rename", "renames", "replace"})
DURABLE_MODULES = ("nereus_cli.disk", "nereus_cli.keeper")


def test_the_core_reaches_nothing_outside_itself() -> None:
    def is_foreign(name: str) -> bool:
        return name.partition(".")[0] in IMPURE or (within(name, "nereus_cli") and not is_pure(name))

    def is_pure(name: str) -> bool:
        return name == "nereus_cli" or any(within(name, pure) for pure in PURE)

    core = [path for path in MODULES if is_pure(dotted(path)) and dotted(path) != "nereus_cli"]
    assert _imports_of(core, is_foreign) == []


@pytest.mark.parametrize(("package", "part"), KEPT_BY.items())
def test_each_heavy_package_is_known_to_one_part_only(package: str, part: str) -> None:
    others = [path for path in MODULES if not within(dotted(path), part)]
    assert _imports_of(others, lambda name: within(name, package)) == []


@pytest.mark.parametrize(("module", "importers"), IMPORTED_BY.items())
def test_some_modules_are_not_for_everyone(module: str, importers: tuple[str, ...]) -> None:
    others = [path for path in MODULES if not any(within(dotted(path), name) for name in (module, *importers))]
    assert _imports_of(others, lambda name: within(name, module)) == []


def test_the_keeper_stands_on_the_standard_library_and_itself() -> None:
    def is_foreign(name: str) -> bool:
        return name.partition(".")[0] not in sys.stdlib_module_names and not within(name, "nereus_cli.keeper")

    keeper = [path for path in MODULES if within(dotted(path), "nereus_cli.keeper")]
    assert _imports_of(keeper, is_foreign) == []


def test_only_the_disk_module_makes_things_durable() -> None:
    others = [path for path in MODULES if not any(within(dotted(path), name) for name in DURABLE_MODULES)]
    uses = [
        f"{short(path)}:{line}: os.{name}" for path in others for name, line in _os_uses(path) if name in DURABLE_CALLS
    ]
    assert uses == []


def _imports_of(paths: list[Path], unwanted: Callable[[str], bool]) -> list[str]:
    return [f"{short(path)} imports {name}" for path in paths for name in sorted(imports(path)) if unwanted(name)]


def _os_uses(path: Path) -> list[tuple[str, int]]:
    """List what a module takes from `os`, with the line: as an attribute or by `from os import`."""
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            found.append((node.attr, node.lineno))
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            found.extend((name.name, node.lineno) for name in node.names)
    return found
