"""Keys and rows as SQL expressions over the columns of one relation."""

from __future__ import annotations

from collections.abc import Sequence

from ploti.model.sql import identifier


def same(left: str, right: str, columns: Sequence[str]) -> str:
    """A condition: the columns are equal, null beside null too."""
    names = [identifier(column) for column in columns]
    return " AND ".join(f"{left}.{name} IS NOT DISTINCT FROM {right}.{name}" for name in names)


def content(columns: Sequence[str]) -> str:
    """The columns as one value, equal where all are equal, null beside null too."""
    fields = ", ".join(f"c{i} := {identifier(column)}" for i, column in enumerate(columns))
    return f"struct_pack({fields})"


def key_text(columns: Sequence[str]) -> str:
    """A key as one text, its parts apart by a unit separator; without a value as an empty part."""
    parts = ", ".join(f"coalesce({identifier(c)}::VARCHAR, '')" for c in columns)
    return f"concat_ws(chr(31), {parts})"


def letters_and_digits(text: str) -> str:
    """A text without anything else, in lower case; null where nothing is left."""
    return rf"nullif(regexp_replace(lower({text}), '[^\p{{L}}\p{{N}}]+', '', 'g'), '')"


def runs(text: str) -> str:
    """A text's runs of letters and runs of digits, in lower case, leading zeros off, as a list."""
    found = rf"regexp_extract_all(lower({text}), '\p{{L}}+|\p{{Nd}}+')"
    return f"list_transform({found}, lambda x: regexp_replace(x, '^0+(.)', '\\1'))"


def sort_key(columns: Sequence[str]) -> str:
    """What orders keys as people do, `9` before `10`, to stand in ORDER BY."""
    text = key_text(columns)
    wide = f"list_transform({runs(text)}, lambda x: lpad(x, greatest(20, length(x))::INTEGER, ' '))"
    return f"{wide}, {text}"
