"""Stage: the id map of a version, from the ids in the version before to those that differ in it.

Ids are dealt anew to all records, in the order in which new ones are numbered or in that of a
column, or given back to records that a matching found to go on. Rules: an id that was given once
is never another record's, so a new id has the version's number, and an id given back belongs to
no record of the base (domain, 'Record ids').
"""

from __future__ import annotations

from collections.abc import Sequence

from ploti.model.columns import RECORD_ID
from ploti.model.schema import Schema
from ploti.model.sql import identifier, literal
from ploti.server.build.candidate import Base, Replacement
from ploti.server.build.diff import Box, snapshot_relation
from ploti.server.build.gone import REMOVED_IN

PREVIOUS = "_ploti_previous_record_id"
MAP_FILE = "id_map.parquet"
MAP = "id_map"
"""The table of the map: `previous` and `current`."""


def new_id(version: int, ordinal: str) -> str:
    """SQL of the id of a version's record, as `model.ids` makes it, of SQL of its number from 0."""
    return f"printf('rec_%08d%010d', {version}, {ordinal})"


def column_faults_sql(base: Base, column: str) -> str:
    """SQL of one row: records without a value in a column, and values that more than one have."""
    own = identifier(column)
    snapshot = snapshot_relation(base.snapshot)
    repeated = f"SELECT {own} FROM {snapshot} GROUP BY {own} HAVING count(*) > 1"
    nulls, values = f"count(*) FILTER ({own} IS NULL)", f"(SELECT count(*) FROM ({repeated}))"
    return f"SELECT {nulls}, {values} FROM {snapshot}"


def map_sql(base: Base, replacement: Replacement, *, version: int, box: Box | None) -> str:
    """The statement that makes the table `MAP` of what staff approved."""
    snapshot = snapshot_relation(base.snapshot)
    if replacement.links is not None:
        return f"CREATE OR REPLACE TABLE {MAP} AS {_given_back(base, replacement)}"
    order = _order(base.schema, replacement.column, box)
    ordinal = f"row_number() OVER (ORDER BY {', '.join(order)}) - 1"
    return (
        f"CREATE OR REPLACE TABLE {MAP} AS SELECT {RECORD_ID} AS previous,"
        f" {new_id(version, ordinal)} AS current FROM {snapshot}"
    )


def chain_sql(maps: Sequence[str]) -> str:
    """The statement that makes `MAP` of the maps of versions, one after another, oldest first."""
    step = f"SELECT {PREVIOUS} AS previous, {RECORD_ID} AS current FROM read_parquet"
    chained = f"{step}({literal(maps[0])})"
    for later in maps[1:]:
        chained = (
            f"SELECT coalesce(a.previous, b.previous) AS previous,"
            f" coalesce(b.current, a.current) AS current FROM ({chained}) AS a"
            f" FULL JOIN ({step}({literal(later)})) AS b ON a.current = b.previous"
        )
    return f"CREATE OR REPLACE TABLE {MAP} AS SELECT * FROM ({chained}) WHERE previous <> current"


def renamed_sql(base: Base) -> str:
    """SQL of a version's records under the ids that `MAP` leads to, in the order of these."""
    columns = ", ".join(f"base.{identifier(column.name)}" for column in base.schema.columns)
    return (
        f"SELECT {columns}, coalesce({MAP}.current, base.{RECORD_ID}) AS {RECORD_ID}"
        f" FROM {snapshot_relation(base.snapshot)} AS base"
        f" LEFT JOIN {MAP} ON base.{RECORD_ID} = {MAP}.previous ORDER BY {RECORD_ID}"
    )


def listed_sql() -> str:
    """SQL of the id map as its file has it."""
    return f"SELECT previous AS {PREVIOUS}, current AS {RECORD_ID} FROM {MAP} ORDER BY previous"


def geometries_sql(base: Base) -> str | None:
    """SQL of a version's geometries; None where it has none."""
    if base.schema.geometry is None:
        return None
    geometry = identifier(base.schema.geometry.column)
    return f"SELECT {geometry} FROM {snapshot_relation(base.snapshot)}"


def _given_back(base: Base, replacement: Replacement) -> str:
    """What still can be: the record is there under its new id, and the old one is nobody's.

    Nor was it anybody's since: a record that returned in between lived beside the new one.
    """
    ids = f"SELECT {RECORD_ID} FROM {snapshot_relation(base.snapshot)}"
    taken = ids
    if base.gone:
        later = f"read_parquet({literal(base.gone)}) WHERE {REMOVED_IN} > {replacement.version}"
        taken = f"{ids} UNION ALL SELECT {RECORD_ID} FROM {later}"
    return (
        f"SELECT {PREVIOUS} AS previous, {RECORD_ID} AS current"
        f" FROM read_parquet({literal(replacement.links or '')})"
        f" WHERE {PREVIOUS} IN ({ids}) AND {RECORD_ID} NOT IN ({taken})"
    )


def _order(schema: Schema, column: str | None, box: Box | None) -> list[str]:
    if column is not None:
        return [identifier(column)]
    order = [f"{identifier(name)}::VARCHAR NULLS LAST" for name in schema.key_columns]
    order += [f"{identifier(each.name)} NULLS LAST" for each in schema.columns]
    if box and schema.geometry:
        corners = ", ".join(f"{corner!r}::DOUBLE" for corner in box)
        place = f"ploti_place({identifier(schema.geometry.column)}, {corners})"
        order.insert(0, f"{place} NULLS LAST")
    return [*order, RECORD_ID]
