"""What differs between the databases in a statement that both have."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def is_postgres(connection: Connection) -> bool:
    """Whether other writers may be at work beside this transaction."""
    return connection.dialect.name == "postgresql"


def list_of(connection: Connection) -> str:
    """The aggregate that makes a JSON list of rows in their order."""
    return "json_agg" if is_postgres(connection) else "json_group_array"


def put(connection: Connection, table: Table, row: dict[str, Any]) -> None:
    """Keep a row, in place of the one with its primary key."""
    keys = [column.name for column in table.primary_key]
    rest = {name: value for name, value in row.items() if name not in keys}
    insert = postgresql.insert if is_postgres(connection) else sqlite.insert
    statement = insert(table).values(row)
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=rest))
