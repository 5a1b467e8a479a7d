"""How long things may be. The maxima only ever go down."""

import ast
from itertools import chain
from statistics import median

from tests.tidy.source import MODULES, short, tree

FILE_LINES_MAX = 400
FILE_LINES_MEDIAN_MAX = 150
FUNCTION_LINES_MAX = 60


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {short(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX} == {}
    assert median(lines for lines in lengths.values() if lines > 0) <= FILE_LINES_MEDIAN_MAX


def test_no_function_is_longer_than_a_page() -> None:
    functions = chain.from_iterable(((path, node) for node in ast.walk(tree(path))) for path in MODULES)
    lengths = {
        f"{short(path)}:{node.lineno} {node.name}": _code_lines(node)
        for path, node in functions
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES_MAX} == {}


def _code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count from `def` to the end, the docstring not included: a contract may be as long as it must."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines
