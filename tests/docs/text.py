"""Markdown out of values: tables, sections, and the page with its first line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MADE = "<!-- Made from the code by `make docs`: change the code, not this page. -->"


def page(title: str, *parts: str) -> str:
    """A page made from the code; parts are separated by empty lines."""
    return "\n\n".join([f"# {title}", MADE, *(part.strip("\n") for part in parts)]) + "\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; a bar inside a cell is escaped, a line break is a blank."""
    lines = [_row(heads), "|" + "---|" * len(heads), *map(_row, rows)]
    return "\n".join(lines)


def code(value: object) -> str:
    return f"`{value}`"


def codes(values: Iterable[object]) -> str:
    return ", ".join(map(code, values))


def first_sentence(doc: str | None) -> str:
    """The first line of a docstring, which house rules make a sentence."""
    return (doc or "").partition("\n")[0]


def _row(cells: Sequence[object]) -> str:
    return (
        "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |"
    )
