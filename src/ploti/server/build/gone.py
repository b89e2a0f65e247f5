"""Stage: the records removed lately, whose key gives them their id again when it comes back.

Each version carries a list of them with their keys as text, the base's list with what it removes
itself, so that one small file tells all. Of a key that more records had, the list has what else
they had, since only that tells which of them comes back. Rules: for 90 days, by equal keys alone;
without a key, or under another one, none comes back (domain, 'Record ids').
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ploti.model.columns import RECORD_ID
from ploti.model.sql import identifier, listed, literal
from ploti.server.build import texts
from ploti.server.build.candidate import Base
from ploti.server.build.diff import DIFF, RETURNED, snapshot_relation
from ploti.server.build.shape import Shape

REMOVED_IN = "_ploti_removed_in"
ROW = "_ploti_row"
GONE_FILE = "gone.parquet"
SHARED_ROWS = "shared_rows"
"""The table of removed records, by their place, whose key does not tell which may come back."""

_ROW_TYPE = "MAP(VARCHAR, VARCHAR)"
_PLACE = "file_row_number"


class Gone(NamedTuple):
    """Records removed lately, as relations of their ids, versions and keys.

    `_ploti_row` has the texts of the other columns, null where the key tells the record.
    """

    relations: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def texts(self) -> str:
        """All of them, their keys as text."""
        columns = listed([RECORD_ID, REMOVED_IN, *self.key, ROW])
        return " UNION ALL ".join(f"SELECT {columns} FROM {each}" for each in self.relations)

    def typed(self, types: Mapping[str, str]) -> str:
        """A relation of them in these types, those whose keys fit."""
        keys = {
            name: f"TRY_CAST({identifier(name)} AS {texts.sql_type(types[name])})"
            for name in self.key
        }
        others = {
            name: _value(type_, f"{ROW}[{literal(name)}]")
            for name, type_ in types.items()
            if name not in keys
        }
        fields = [RECORD_ID, *(f"{sql} AS {name}" for name, sql in _named(keys | others))]
        fit = " AND ".join(f"{sql} IS NOT NULL" for sql in keys.values())
        return f"(SELECT {', '.join(fields)} FROM ({self.texts}) WHERE {fit})"


def gone_before(base: Base, *, since: int, key: Sequence[str]) -> Gone | None:
    """The base's list, of what was removed in the version `since` or later; None for no list."""
    if base.gone is None or not key or list(key) != base.schema.key_columns:
        return None
    kept = f"(FROM read_parquet({literal(base.gone)}) WHERE {REMOVED_IN} >= {since})"
    return Gone(relations=(kept,), key=tuple(key))


def and_also(gone: Gone | None, removed: str | None, *, key: Sequence[str]) -> Gone | None:
    """A list with another relation of removed records in it."""
    relations = (*(gone.relations if gone else ()), *([removed] if removed else []))
    return Gone(relations=relations, key=tuple(key)) if relations else None


def removed_sql(
    base: Base, rows: str, *, key: Sequence[str], version: int, table: str
) -> str | None:
    """The statement that makes a table of rows of a base as removed in `version`, by their keys.

    It keeps their places in the base. None where they cannot be told by key. A row with a null in
    its key never comes back.
    """
    types = {column.name: column.type for column in base.schema.columns}
    if not key or not types.keys() >= set(key):
        return None
    fields = [
        RECORD_ID,
        _PLACE,
        f"{version}::BIGINT AS {REMOVED_IN}",
        f"NULL::{_ROW_TYPE} AS {ROW}",
    ]
    fields += [f"{sql} AS {name}" for name, sql in _named({k: _text(types[k], k) for k in key})]
    there = " AND ".join(f"{identifier(name)} IS NOT NULL" for name in key)
    return (
        f"CREATE OR REPLACE TABLE {table} AS SELECT {', '.join(fields)} FROM {rows} WHERE {there}"
    )


def shared_rows_sql(
    base: Base, *, key: Sequence[str], table: str, whole_keys: bool, sharing: str | None
) -> str:
    """The statement that makes a table of the rows in such a table whose key does not tell which.

    With `whole_keys` no other record of the base has the keys of the removed ones. `sharing` is a
    table of the removed rows of all keys that several rows of the base have.
    """
    names = listed(list(key))
    shared = []
    if sharing is None:
        shared.append(f"SELECT {names} FROM {table} GROUP BY ALL HAVING count(*) > 1")
    if sharing is None and not whole_keys:
        types = {column.name: column.type for column in base.schema.columns}
        as_text = _named({k: _text(types[k], k) for k in key})
        named = ", ".join(f"{sql} AS {name}" for name, sql in as_text)
        shared.append(
            f"SELECT {names} FROM (SELECT {named} FROM {snapshot_relation(base.snapshot)})"
            f" SEMI JOIN {table} USING ({names}) GROUP BY ALL HAVING count(*) > 1"
        )
    if base.gone is not None and list(key) == base.schema.key_columns:
        shared.append(f"SELECT {names} FROM read_parquet({literal(base.gone)})")
    rows = [f"SELECT {_PLACE} FROM {sharing}"] if sharing else []
    if shared:
        keys = " UNION ALL ".join(shared)
        rows.append(f"SELECT {_PLACE} FROM {table} SEMI JOIN ({keys}) USING ({names})")
    return f"CREATE OR REPLACE TABLE {SHARED_ROWS} AS {' UNION '.join(rows)}"


ANY_SHARED_SQL = f"SELECT count(*) > 0 FROM {SHARED_ROWS}"
"""SQL of whether there are such rows."""


def rows_told_sql(base: Base, *, key: Sequence[str], table: str, sharing: str | None) -> str:
    """The statement that makes the table anew, with what else the records in `SHARED_ROWS` had.

    What is in `sharing`, as `shared_rows_sql` has it, is not read again.
    """
    others = {c.name: _text(c.type, c.name) for c in base.schema.columns if c.name not in key}
    row = f"MAP {{{', '.join(f'{literal(name)}: {sql}' for name, sql in others.items())}}}"
    unread = (
        f"(FROM {SHARED_ROWS} ANTI JOIN {sharing} USING ({_PLACE}))" if sharing else SHARED_ROWS
    )
    sources = [sharing] if sharing else []
    if not sharing or base.gone is not None:
        sources.append(f"{snapshot_relation(base.snapshot)} SEMI JOIN {unread} USING ({_PLACE})")
    rows = " UNION ALL ".join(
        f"SELECT {_PLACE}, {row}::{_ROW_TYPE} AS {ROW} FROM {source}" for source in sources
    )
    return (
        f"CREATE OR REPLACE TABLE {table} AS SELECT removed.* REPLACE (told.{ROW} AS {ROW})"
        f" FROM {table} AS removed LEFT JOIN ({rows}) AS told USING ({_PLACE})"
    )


def going_rows(snapshot: str) -> str:
    """A relation of the base's rows that `DIFF` removes."""
    relation = snapshot_relation(snapshot)
    return (
        f"(SELECT base.* FROM {relation} AS base JOIN {DIFF}"
        f" ON base.file_row_number = {DIFF}.base_pos WHERE {DIFF}.new_pos IS NULL)"
    )


def missing_rows(snapshot: str, other: str) -> str:
    """A relation of the rows of a snapshot whose records are not in another one."""
    return (
        f"(SELECT old.* FROM {snapshot_relation(snapshot)} AS old"
        f" ANTI JOIN {snapshot_relation(other)} AS new USING ({RECORD_ID}))"
    )


def ids_of(snapshot: str) -> str:
    """A relation of the ids of a snapshot's records."""
    return f"(SELECT {RECORD_ID} AS record_id FROM {snapshot_relation(snapshot)})"


def gone_sql(gone: Gone, *, back: str) -> str:
    """SQL of the list that a version carries on: without those whose id `back`, a relation, has."""
    return (
        f"SELECT * FROM ({gone.texts}) WHERE {RECORD_ID} NOT IN (SELECT record_id FROM {back})"
        f" ORDER BY {RECORD_ID}, {REMOVED_IN}"
    )


def no_returns_sql() -> str:
    """The statement that makes the table `RETURNED` for a version in which nothing came back."""
    return f"CREATE OR REPLACE TABLE {RETURNED} (position BIGINT, record_id VARCHAR)"


def returns_by_key_sql(shaped: str, shape: Shape, gone: Gone) -> str:
    """The statement that makes `RETURNED` of what `DIFF` adds; keys are there once in the state.

    A key that more than one record had is there as often: then nothing tells yet which returns.
    """
    equal = " AND ".join(f"state.{shape.field(k)} = gone.{identifier(k)}" for k in gone.key)
    return (
        f"CREATE OR REPLACE TABLE {RETURNED} AS SELECT state.file_row_number AS position,"
        f" gone.{RECORD_ID} AS record_id FROM {shaped} AS state"
        f" JOIN {DIFF} ON state.file_row_number = diff.new_pos"
        f" JOIN {gone.typed(shape.named_types)} AS gone ON {equal} WHERE diff.base_pos IS NULL"
    )


RETURNS_CLEAR_SQL = f"SELECT count(*) = count(DISTINCT position) FROM {RETURNED}"
"""SQL of whether each record in `RETURNED` has one id."""


def returns_by_links_sql() -> str:
    """The statement that makes `RETURNED` of a finished matching."""
    return (
        f"CREATE OR REPLACE TABLE {RETURNED} AS SELECT position, record_id FROM match_links"
        " WHERE stage = 'returned'"
    )


def returned_sql(shaped: str, shape: Shape) -> str:
    """SQL of the records that came back, with their ids, in the order of these."""
    fields = ", ".join(
        f"state.{field} AS {identifier(name)}" for name, field in shape.fields.items()
    )
    return (
        f"SELECT {fields}, back.record_id AS {RECORD_ID} FROM {shaped} AS state JOIN {RETURNED}"
        " AS back ON state.file_row_number = back.position ORDER BY back.record_id"
    )


def _text(type_: str, name: str) -> str:
    own = identifier(name)
    if type_ == "geometry":
        return f"hex({own})"
    return own if type_ == "string" else texts.text_of(type_, own)


def _value(type_: str, text: str) -> str:
    """SQL of the value of a text, null where it has none in this type."""
    return f"unhex({text})" if type_ == "geometry" else texts.value(type_, text)


def _named(fields: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(identifier(name), sql) for name, sql in fields.items()]
