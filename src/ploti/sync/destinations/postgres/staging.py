"""How rows get into a table that is in use: by a stage beside it, which is gone at the commit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ploti.model.columns import RECORD_ID
from ploti.model.sql import identifier
from ploti.sync.destinations.postgres.values import PostGIS, compared, qualified

STAGE = "pg_temp._ploti_stage"
KEPT = "_ploti_kept"
"""Tells, of a changes file's rows in the stage, those to keep from those to delete."""

_ID = identifier(RECORD_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The dataset's columns of a table: the name of each there, and its type as `declared` has it.

    `postgis` is where the type `geometry` is, if it is anywhere.
    """

    names: list[str]
    types: list[str]
    postgis: PostGIS | None

    @property
    def listed(self) -> str:
        """Record id and columns, as a list in SQL."""
        return ", ".join([_ID, *map(identifier, self.names)])

    def only(self, names: Collection[str]) -> Columns:
        """Those of them that have these names."""
        pairs = zip(self.names, self.types, strict=True)
        kept = [(name, kind) for name, kind in pairs if name in names]
        return replace(self, names=[name for name, _ in kept], types=[kind for _, kind in kept])

    def make_sql(self, place: str, *, first: str = "") -> str:
        """What stands after CREATE [TEMP] TABLE."""
        pairs = zip(self.names, self.types, strict=True)
        own = [f"{identifier(name)} {qualified(kind, self.postgis)}" for name, kind in pairs]
        return f"{place} ({', '.join([f'{first}{_ID} text NOT NULL', *own])})"


def stage_sql(columns: Columns, *, is_changes: bool) -> str:
    """Makes the stage."""
    first = f"{KEPT} boolean NOT NULL, " if is_changes else ""
    return f"CREATE TEMP TABLE {columns.make_sql(STAGE, first=first)} ON COMMIT DROP"


def delete_sql(place: str, *, is_changes: bool) -> str:
    """Deletes what staged changes say to delete, or what a staged snapshot has not."""
    same = f"s.{_ID} = t.{_ID}"
    if is_changes:
        return f"DELETE FROM {place} AS t USING {STAGE} AS s WHERE {same} AND NOT s.{KEPT}"
    return f"DELETE FROM {place} AS t WHERE NOT EXISTS (SELECT FROM {STAGE} AS s WHERE {same})"


def let_go_sql(place: str, columns: Columns, *, is_changes: bool) -> str:
    """Makes these columns null in the records that are to have another value there."""
    nulls = ", ".join(f"{identifier(name)} = NULL" for name in columns.names)
    kept = f" AND s.{KEPT}" if is_changes else ""
    return (
        f"UPDATE {place} AS t SET {nulls} FROM {STAGE} AS s"
        f" WHERE s.{_ID} = t.{_ID} AND ({_differs(columns)}){kept}"
    )


def merge_sql(place: str, columns: Columns, *, is_changes: bool) -> str:
    """Writes the staged records that are to be kept; of a snapshot those that the table has not.

    A record that is there is updated, not deleted: what refers to it goes on referring to it.
    """
    names = list(map(identifier, columns.names))
    staged = ", ".join(f"s.{name}" for name in (_ID, *names))
    taken = ", ".join(f"{name} = excluded.{name}" for name in names)
    which = f"WHERE s.{KEPT}" if is_changes else _unlike(place, columns)
    return (
        f"INSERT INTO {place} ({columns.listed}) SELECT {staged} FROM {STAGE} AS s {which}"
        f" ON CONFLICT ({_ID}) DO {f'UPDATE SET {taken}' if taken else 'NOTHING'}"
    )


def _unlike(place: str, columns: Columns) -> str:
    """Of the staged records, those that the table has not, or has otherwise."""
    return (
        f"LEFT JOIN {place} AS t ON t.{_ID} = s.{_ID} WHERE t.{_ID} IS NULL OR {_differs(columns)}"
    )


def _differs(columns: Columns) -> str:
    pairs = zip(columns.names, columns.types, strict=True)
    differs = (f"{_cell('t', *each)} IS DISTINCT FROM {_cell('s', *each)}" for each in pairs)
    return " OR ".join(differs) or "false"


def _cell(side: str, name: str, kind: str) -> str:
    return compared(kind, f"{side}.{identifier(name)}")
