"""How records are laid out in a SQLite file: column types, and what other programs go by."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ploti.errors import SyncError
from ploti.model.schema import Schema
from ploti.sync.destinations.sqlite import values
from ploti.sync.parquet import Row

GEOPACKAGE = 0x47504B47  # "GPKG"
"""The `application_id` of a GeoPackage."""


class Layout:
    """Plain SQLite; a GeoPackage differs in what it overrides."""

    kind = "sqlite"
    """What addresses begin with."""

    own_names: tuple[str, ...] = ("sqlite_", "_ploti_")
    """What the names of no table of records may begin with."""

    identity: tuple[str, ...] = ('"_ploti_record_id" TEXT NOT NULL PRIMARY KEY',)
    """The columns by which rows are known."""

    own_columns: tuple[str, ...] = ()
    """Those of them that are no record's."""

    def declared(self, type_: str) -> str:
        """The type that a column is declared with."""
        return values.declared(type_)

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Make a connection fit for the file; raises SyncError where that is of another kind."""
        if connection.execute("PRAGMA application_id").fetchone() == (GEOPACKAGE,):
            raise SyncError("The file is a GeoPackage: sync to gpkg:FILE, or to another file")

    def set_up(self, connection: sqlite3.Connection) -> None:
        """Make a new file what it is to be."""

    def pack(self, schema: Schema, rows: Iterable[Row]) -> Iterable[Row]:
        """Rows with WKB as rows to store."""
        del schema
        return rows

    def unpack(self, schema: Schema, rows: list[Row]) -> list[Row]:
        """Stored rows as rows with WKB; one that cannot be read is left out."""
        del schema
        return rows

    def loading(self, connection: sqlite3.Connection, table: str, schema: Schema) -> None:
        """Make ready for all of a table's rows to go."""

    def loaded(self, connection: sqlite3.Connection, table: str, schema: Schema) -> None:
        """Tell other programs of a table's new content."""

    @contextmanager
    def changing(
        self, connection: sqlite3.Connection, table: str, schema: Schema, ids: Iterable[Row]
    ) -> Iterator[None]:
        """Some records go and some come; tell other programs of it in the end."""
        del connection, table, schema, ids
        yield

    def dropping(self, connection: sqlite3.Connection, table: str) -> None:
        """Take back what other programs were told of a table."""
