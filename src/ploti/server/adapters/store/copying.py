"""Databases copied at one moment: into a SQLite file, and out of one into PostgreSQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, delete, func, insert, select

from ploti.errors import ConfigError
from ploti.server.adapters.store.dialect import is_postgres
from ploti.server.adapters.store.keys import SqlKeys
from ploti.server.adapters.store.migrate import migrate, pending
from ploti.server.adapters.store.postgres import read_postgres, write_postgres
from ploti.server.adapters.store.recovery import SqlRecovery
from ploti.server.adapters.store.sqlite import open_writer, read_sqlite, readable
from ploti.server.adapters.store.tables import metadata

_ROWS = 1_000
"""Rows that are in memory at once."""


def copy_sqlite(path: Path, *, to: Path) -> None:
    """Copy a SQLite database as it is at one moment; raises ConfigError where there is none."""
    if not path.exists():
        raise ConfigError(f"There is no database {path}: name the folder of a server with --data")
    with readable(str(path)), closing(sqlite3.connect(path)) as source:
        source.execute("VACUUM INTO ?", (str(to),))


def copy_postgres(url: str, *, to: Path) -> None:
    """Copy a database of PostgreSQL as it is at one moment into a new SQLite file."""

    def work(source: Connection) -> None:
        if pending(source):
            raise ConfigError("The database is not of this release yet: run `ploti migrate` first")
        writer = open_writer(str(to))
        try:
            with writer.begin() as target:
                migrate(target)
                _copy_rows(source, target)
        finally:
            writer.dispose()

    read_postgres(url, work)


def fill_postgres(url: str, *, out_of: Path) -> bool:
    """Copy a SQLite file's rows into a database of PostgreSQL that no server was set up in yet.

    Returns whether it did: a database that is in use stays as it is. Raises ConfigError where the
    file is none, or not of this release.
    """

    def fill(source: Connection, target: Connection) -> bool:
        if SqlKeys(target).is_set_up():
            return False
        if pending(source):
            raise ConfigError(
                f"{out_of} is not of this release yet: run `ploti migrate` on its folder without "
                "PLOTI_DATABASE_URL first"
            )
        _copy_rows(source, target)
        return True

    return read_sqlite(
        str(out_of), lambda source: write_postgres(url, lambda target: fill(source, target))
    )


def blobs_of(path: Path) -> set[str]:
    """The names of all files that a copied database knows of."""
    writer = open_writer(str(path))
    try:
        with writer.begin() as connection:
            return SqlRecovery(connection).blobs()
    finally:
        writer.dispose()


def _copy_rows(source: Connection, target: Connection) -> None:
    for table in metadata.sorted_tables:
        target.execute(delete(table))
        rows = source.execution_options(yield_per=_ROWS).execute(select(table))
        for part in rows.mappings().partitions():
            target.execute(insert(table), [dict(row) for row in part])
    if is_postgres(target):
        _raise_sequences(target)
    SqlRecovery(target).raise_given(SqlRecovery(source).given())


def _raise_sequences(connection: Connection) -> None:
    """Have numbers that the database gives go on after those that were copied."""
    for table in metadata.sorted_tables:
        for column in table.primary_key:
            sequence = connection.scalar(
                select(func.pg_get_serial_sequence(table.name, column.name))
            )
            newest = connection.scalar(select(func.max(column))) if sequence else None
            if newest is not None:
                connection.execute(select(func.setval(sequence, newest)))
