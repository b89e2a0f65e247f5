"""Brings a database to the newest form, by alembic's migrations."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, inspect

from ploti.errors import ConfigError
from ploti.server.adapters.store.tables import metadata

_FOLDER = Path(__file__).parent / "migrations"


def migrate(connection: Connection) -> None:
    """Run the migrations that this database has not seen, in the connection's transaction.

    Raises ConfigError for a database that a newer release wrote, or a build between releases.
    """
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise ConfigError(f"The database is of a newer ploti, update this one: {error}") from error
    if _columns(connection) != _WANTED:
        raise ConfigError(
            "The database was made by another build of this release, which this one cannot read: "
            "name a new folder, or go on with the build that made it"
        )


def _columns(connection: Connection) -> dict[str, set[str]]:
    found = inspect(connection).get_multi_columns()
    return {
        table: {column["name"] for column in columns}
        for (_, table), columns in found.items()
        if table in _WANTED
    }


_WANTED = {table.name: set(table.columns.keys()) for table in metadata.sorted_tables}
