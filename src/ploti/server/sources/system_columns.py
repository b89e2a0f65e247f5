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


def without_system(raw: RawTable, declaration: Declaration) -> RawTable:
    """The table without them, but for those that the key or `columns` names."""
    made_up = _MADE_UP.get(declaration.source.kind or "")
    if made_up is None:
        return raw
    named = {*declaration.key, *declaration.columns}
    kept = [
        column
        for column in raw.columns
        if column.source_name in named or not made_up.fullmatch(column.source_name)
    ]
    return replace(raw, columns=kept)
