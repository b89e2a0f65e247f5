"""How names and texts are quoted in DuckDB's SQL: the one place where either becomes SQL."""

from __future__ import annotations

from collections.abc import Iterable


def identifier(name: str) -> str:
    """A column's or table's name as SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def listed(names: Iterable[str]) -> str:
    """Names as SQL, to stand in a SELECT list, GROUP BY or ORDER BY."""
    return ", ".join(identifier(name) for name in names)


def literal(text: str) -> str:
    """A text as SQL; raises ValueError for one with a zero byte, which SQL text cannot hold."""
    if "\0" in text:
        raise ValueError("a zero byte cannot stand in SQL text")
    return "'" + text.replace("'", "''") + "'"
