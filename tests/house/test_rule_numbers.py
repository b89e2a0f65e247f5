"""That each numbered rule of the references has a test that carries its number."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
RULES = {f"r{number:03d}" for number in range(1, 212)}
READINGS = {f"s{number:02d}" for number in range(1, 61)}
EARLY_ACCESS = {f"r{number}" for number in range(181, 199)} | {f"s{n}" for n in range(54, 59)}
WATCHES = {"r166", "r200", "s59"}
NOTHING_TO_BUILD = {"r199"}
_NUMBER = re.compile(r"(?<![a-z0-9])([rs])[-_]?([0-9]{2,3})(?![0-9])", re.IGNORECASE)


def numbers_in(text: str) -> set[str]:
    """The numbers that a text names, as `r007` and `s42`."""
    return {f"{kind.lower()}{digits}" for kind, digits in _NUMBER.findall(text)}


def carried(source: str) -> set[str]:
    """The numbers in the names and docstrings of a module's tests."""
    tests = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    return {
        number
        for test in tests
        for number in numbers_in(f"{test.name} {ast.get_docstring(test) or ''}")
    }


def test_every_rule_has_a_test_that_carries_its_number() -> None:
    found = {number for file in TESTS.rglob("test_*.py") for number in carried(file.read_text())}
    assert (RULES | READINGS) - found == EARLY_ACCESS | WATCHES | NOTHING_TO_BUILD


def test_a_number_is_read_in_a_name_and_in_a_docstring_of_a_test_alone() -> None:
    source = (
        'def test_a_r001_s02():\n    """R-003, S-04. Of S3: nothing."""\n'
        'def helper_r005():\n    """R-006."""\n'
    )
    assert carried(source) == {"r001", "s02", "r003", "s04"}
