"""Brings a database to the newest form, by alembic's migrations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.script.revision import RevisionError
from alembic.util import CommandError
from sqlalchemy import Connection, inspect

from ploti.errors import ConfigError
from ploti.server.adapters.store.tables import metadata

_FOLDER = Path(__file__).parent / "migrations"


def migrate(connection: Connection) -> None:
    """Run the migrations that this database has not seen, in the connection's transaction.

    Raises ConfigError for a database that a newer release wrote, or a build between releases.
    """
    config = _config()
    config.attributes["connection"] = connection
    with _refusing_newer():
        command.upgrade(config, "head")
    if _columns(connection) != _WANTED:
        raise ConfigError(
            "The database was made by another build of this release, which this one cannot read: "
            "name a new folder, or go on with the build that made it"
        )


def pending(connection: Connection) -> list[str]:
    """The migrations that `migrate` would run, in their order: each its number and what it does.

    Raises ConfigError for a database that a newer release wrote.
    """
    known = MigrationContext.configure(connection).get_current_revision()
    with _refusing_newer():
        scripts = ScriptDirectory.from_config(_config())
        steps = [*scripts.iterate_revisions("head", known or "base")]
    return [f"{step.revision}: {step.doc}" for step in reversed(steps)]


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


@contextmanager
def _refusing_newer() -> Iterator[None]:
    try:
        yield
    except (CommandError, RevisionError) as error:
        raise ConfigError(f"The database is of a newer ploti, update this one: {error}") from error


def _columns(connection: Connection) -> dict[str, set[str]]:
    found = inspect(connection).get_multi_columns()
    return {
        table: {column["name"] for column in columns}
        for (_, table), columns in found.items()
        if table in _WANTED
    }


_WANTED = {table.name: set(table.columns.keys()) for table in metadata.sorted_tables}
