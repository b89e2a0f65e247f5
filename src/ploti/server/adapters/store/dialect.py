"""What statements of both databases need: where those differ, and how many ids one takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T", bound=str)

_CHUNK = 500
"""Ids in one statement."""


def chunks(ids: Collection[T]) -> Iterator[list[T]]:
    """The ids in their order, as many at a time as a statement takes."""
    ordered = sorted(ids)
    for start in range(0, len(ordered), _CHUNK):
        yield ordered[start : start + _CHUNK]


def is_postgres(connection: Connection) -> bool:
    """Whether other writers may be at work beside this transaction."""
    return connection.dialect.name == "postgresql"


def put(connection: Connection, table: Table, row: dict[str, Any]) -> None:
    """Keep a row, in place of the one with its primary key."""
    keys = [column.name for column in table.primary_key]
    rest = {name: value for name, value in row.items() if name not in keys}
    insert = postgresql.insert if is_postgres(connection) else sqlite.insert
    statement = insert(table).values(row)
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=rest))
