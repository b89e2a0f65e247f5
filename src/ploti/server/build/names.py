"""Stage: names of columns, the source's own but where they clash (domain, 'Schema versions')."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ploti.model.columns import PREFIX

GEOMETRY = "geometry"
"""The column that holds a record's geometry, always the last."""

_UNNAMED = "unnamed"
_ROW_NUMBER = "file_row_number"
"""DuckDB's own column of the files that it reads, of which a file must have no other."""


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
    stripped = [name.strip() for name in source_names]
    return [
        names[name] if name in names and names[name] not in stripped else name for name in stripped
    ]


def _plain(source_name: str) -> str:
    name = source_name.strip() or _UNNAMED
    if name.casefold() == _ROW_NUMBER:
        return f"source_{name}"
    return f"source{name}" if name.casefold().startswith(PREFIX) else name


def _numbered(name: str, avoid: set[str]) -> str:
    number = 2
    while f"{name}_{number}".casefold() in avoid:
        number += 1
    return f"{name}_{number}"
