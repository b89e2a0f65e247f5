"""Statements that every request and every delivery makes, put to the database's own driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Connection, Table

from ploti.model.wire import Value, plain
from ploti.server.adapters.store.dialect import is_postgres


def ask(connection: Connection, statement: str, values: Sequence[object]) -> Any:  # noqa: ANN401  the driver's
    """The driver's cursor over a statement with `?` for each value: a fifth of Core's cost."""
    return _driver(connection).execute(_marked(connection, statement), values)


def insert_all(connection: Connection, table: Table, rows: Sequence[Value]) -> None:
    """Keep rows of a table whose columns hold texts, numbers, times and words: as `ask`."""
    if not rows:
        return
    names = rows[0].__struct_fields__
    marks = ", ".join("?" * len(names))
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608  names of ours
    values = [tuple(_fields(row).values()) for row in rows]
    _driver(connection).cursor().executemany(_marked(connection, statement), values)


def _fields(row: Value) -> dict[str, object]:
    """A row's fields in their order, times as texts."""
    return cast("dict[str, object]", plain(row))


def _driver(connection: Connection) -> Any:  # noqa: ANN401  the driver's
    return connection.connection.driver_connection


def _marked(connection: Connection, statement: str) -> str:
    return statement.replace("?", "%s") if is_postgres(connection) else statement
