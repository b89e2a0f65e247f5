"""Part of a build: the list of records removed lately, whose keys may come back."""

from __future__ import annotations

from collections.abc import Sequence

from ploti.server.build.candidate import Base, BuiltFile, FileRole
from ploti.server.build.gone import (
    ANY_SHARED_SQL,
    GONE_FILE,
    Gone,
    gone_sql,
    removed_sql,
    rows_told_sql,
    shared_rows_sql,
)
from ploti.server.ports.building import Engine


def list_removed(
    engine: Engine,
    base: Base,
    rows: str,
    *,
    key: Sequence[str],
    version: int,
    whole_keys: bool = False,
    sharing: str | None = None,
    table: str = "removed_rows",
) -> str | None:
    """Keep rows of a base as removed in `version` in a table; None where no key tells them.

    What else a record had is read only where others have or had its key too. With `whole_keys` all
    records of such a key are among the rows; `sharing` is a table of the rows whose keys several of
    the base's records have, where it is known.
    """
    made = removed_sql(base, rows, key=key, version=version, table=table)
    if made is None:
        return None
    engine.run(made)
    engine.run(shared_rows_sql(base, key=key, table=table, whole_keys=whole_keys, sharing=sharing))
    ((shared,),) = engine.rows(ANY_SHARED_SQL)
    if len(base.schema.columns) > len(key) and shared:
        engine.run(rows_told_sql(base, key=key, table=table, sharing=sharing))
    return table


def write_gone(engine: Engine, gone: Gone | None, *, back: str) -> list[BuiltFile]:
    """Write a list of records removed lately, unless it is empty; those `back` are not in it."""
    if gone is None:
        return []
    file = engine.write_table(gone_sql(gone, back=back), role=FileRole.GONE, name=GONE_FILE)
    return [file] if file.rows else []
