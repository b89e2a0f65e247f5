"""Parquet files are read in parts, which are freed as the reading goes on."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import MODULES, name, parse


def held_whole(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pq.ParquetFile":
            said = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if said.get("pre_buffer") != "False":
                yield f"{name(path)}:{node.lineno}"


def test_no_file_is_held_in_memory_as_far_as_it_is_read() -> None:
    """Pyarrow's own default is to keep all that it read of a file until the file is closed."""
    assert [found for path in MODULES for found in held_whole(path)] == []
