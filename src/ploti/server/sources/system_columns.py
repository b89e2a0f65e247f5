"""Columns that a source's system makes up: they serve paging and are no content."""

from __future__ import annotations

import re

from msgspec.structs import replace

from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawTable

_MADE_UP = {
    "socrata": re.compile(r":.*"),
    "ckan": re.compile(r"_id|_full_text|_full_count|rank"),
}
_NOTHING = re.compile(r"(?!)")
"""Fits no name: what is made up, a reader may have said of the column itself."""


def without_system(raw: RawTable, declaration: Declaration) -> RawTable:
    """The table without them, but for those that the key or `columns` names."""
    named = {*declaration.key, *declaration.columns}
    made_up = _MADE_UP.get(declaration.source.kind or "", _NOTHING)
    kept = [
        column
        for column in raw.columns
        if column.source_name in named
        or not (column.made_up or made_up.fullmatch(column.source_name))
    ]
    return replace(raw, columns=kept)
