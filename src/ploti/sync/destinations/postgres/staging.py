"""How rows get into a table that is in use: by a stage beside it, which is gone at the commit."""

from __future__ import annotations

from dataclasses import dataclass

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

    def make_sql(self, place: str, *, first: str = "") -> str:
        """What stands after CREATE [TEMP] TABLE."""
        pairs = zip(self.names, self.types, strict=True)
        own = [f"{identifier(name)} {qualified(kind, self.postgis)}" for name, kind in pairs]
        return f"{place} ({', '.join([f'{first}{_ID} text NOT NULL', *own])})"


def stage_sql(columns: Columns, *, is_changes: bool) -> str:
    """Makes the stage."""
    first = f"{KEPT} boolean NOT NULL, " if is_changes else ""
    return f"CREATE TEMP TABLE {columns.make_sql(STAGE, first=first)} ON COMMIT DROP"


def delete_missing_sql(place: str) -> str:
    """Deletes the records that a staged snapshot has not."""
    return (
        f"DELETE FROM {place} AS t WHERE NOT EXISTS"
        f" (SELECT FROM {STAGE} AS s WHERE s.{_ID} = t.{_ID})"
    )


def delete_removed_sql(place: str) -> str:
    """Deletes the records that staged changes say to delete."""
    return f"DELETE FROM {place} AS t USING {STAGE} AS s WHERE s.{_ID} = t.{_ID} AND NOT s.{KEPT}"


def merge_snapshot_sql(place: str, columns: Columns) -> str:
    """Writes those staged records that the table has not, or has otherwise."""
    differs = " OR ".join(
        f"{_cell('t', name, kind)} IS DISTINCT FROM {_cell('s', name, kind)}"
        for name, kind in zip(columns.names, columns.types, strict=True)
    )
    return _merge_sql(
        place,
        columns,
        f"LEFT JOIN {place} AS t ON t.{_ID} = s.{_ID}"
        f" WHERE t.{_ID} IS NULL OR {differs or 'false'}",
    )


def merge_changes_sql(place: str, columns: Columns) -> str:
    """Writes the records that staged changes say to keep."""
    return _merge_sql(place, columns, f"WHERE s.{KEPT}")


def _merge_sql(place: str, columns: Columns, which: str) -> str:
    """A record that is there is updated, not deleted: what refers to it goes on referring to it."""
    staged = ", ".join(f"s.{name}" for name in (_ID, *map(identifier, columns.names)))
    taken = ", ".join(f"{name} = excluded.{name}" for name in map(identifier, columns.names))
    done = f"UPDATE SET {taken}" if taken else "NOTHING"
    return (
        f"INSERT INTO {place} ({columns.listed}) SELECT {staged} FROM {STAGE} AS s {which}"
        f" ON CONFLICT ({_ID}) DO {done}"
    )


def _cell(side: str, name: str, kind: str) -> str:
    return compared(kind, f"{side}.{identifier(name)}")
