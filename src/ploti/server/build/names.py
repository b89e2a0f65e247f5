"""Stage: names of columns, the source's own but where they clash (domain, 'Schema versions')."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ploti.model.columns import PREFIX

GEOMETRY = "geometry"
"""The column that holds a record's geometry, always the last."""

_UNNAMED = "unnamed"
_ROW_NUMBER = "file_row_number"
"""DuckDB's own column of the files that it reads, of which a file must have no other."""

BLANKS = "".join(
    chr(code)
    for code in (
        *(*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C)),
        *(0x200E, 0x200F, 0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF),
    )
)
"""What is blank on paper: white space of any script, and marks that nobody sees."""


def name_columns(source_names: Sequence[str], *, taken: Sequence[str] = ()) -> list[str]:
    """The names that columns of these source names have in the dataset, in the same order.

    Outer blanks go, and names that are the system's own get `source` before them. The first of
    names that are equal but for case keeps its name, others get `_2`, `_3`, … where no column has
    that name of its own. `taken` are names given already.
    """
    wanted = [_plain(name) for name in source_names]
    own = {name.casefold() for name in wanted}
    used = {name.casefold() for name in taken}
    names: list[str] = []
    for name in wanted:
        chosen = name if name.casefold() not in used else _numbered(name, used | own)
        used.add(chosen.casefold())
        names.append(chosen)
    return names


def renamed(source_names: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """The source's names with those that the declaration gives in their place.

    A column that has the given name of its own keeps it, and the other one its own.
    """
    stripped = [trimmed(name) for name in source_names]
    return [
        names[name] if name in names and names[name] not in stripped else name for name in stripped
    ]


def trimmed(source_name: str) -> str:
    """A name without its outer blanks, seen and unseen ones."""
    return source_name.strip(BLANKS)


def bare(name: str) -> str:
    """The letters and digits of a name, in one case: what is left of it however it is written."""
    return "".join(filter(str.isalnum, name.casefold()))


def _plain(source_name: str) -> str:
    name = trimmed(source_name) or _UNNAMED
    if name.casefold() == _ROW_NUMBER:
        return f"source_{name}"
    return f"source{name}" if name.casefold().startswith(PREFIX) else name


def _numbered(name: str, avoid: set[str]) -> str:
    number = 2
    while f"{name}_{number}".casefold() in avoid:
        number += 1
    return f"{name}_{number}"
