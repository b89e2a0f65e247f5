"""The two hard limits on size, with no list of exceptions."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import MODULES, name, parse

FUNCTION_LINES = 60
MODULE_LINES = 500
INIT_LINES = 60


def count_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count a function's lines from its `def` to its end, its docstring apart."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def long_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = count_lines(node)
            if lines > FUNCTION_LINES:
                yield f"{name(path)}:{node.lineno} {node.name}: {lines} lines"


def long_modules(limit: int, paths: list[Path]) -> list[str]:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    return [f"{name(path)}: {lines} lines" for path, lines in lengths.items() if lines > limit]


def test_no_function_is_over_sixty_lines_its_docstring_apart() -> None:
    assert [found for path in MODULES for found in long_functions(path)] == []


def test_no_module_is_over_five_hundred_lines() -> None:
    assert long_modules(MODULE_LINES, MODULES) == []


def test_no_init_is_over_sixty_lines() -> None:
    inits = [path for path in MODULES if path.name == "__init__.py"]
    assert long_modules(INIT_LINES, inits) == []


def test_a_function_is_measured_from_its_def_without_its_docstring() -> None:
    source = 'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n'
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert count_lines(function) == 2
