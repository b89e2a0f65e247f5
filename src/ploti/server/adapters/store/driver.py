"""Statements that every request asks, put to the database's own driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from ploti.server.adapters.store.dialect import is_postgres


def ask(connection: Connection, statement: str, values: Sequence[object]) -> Any:  # noqa: ANN401  the driver's
    """The driver's cursor over a statement with `?` for each value: a fifth of Core's cost."""
    driver: Any = connection.connection.driver_connection
    if is_postgres(connection):
        statement = statement.replace("?", "%s")
    return driver.execute(statement, values)
