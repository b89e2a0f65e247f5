"""Statements that every request and every delivery makes, put to the database's own driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from msgspec.structs import astuple
from sqlalchemy import Connection, Table, TypeDecorator

from ploti.model.wire import Value
from ploti.server.adapters.store.dialect import is_postgres


def ask(connection: Connection, statement: str, values: Sequence[object]) -> Any:  # noqa: ANN401  the driver's
    """The driver's cursor over a statement with `?` for each value: a fifth of Core's cost."""
    return _driver(connection).execute(_marked(connection, statement), values)


def insert_all(connection: Connection, table: Table, rows: Sequence[Value]) -> None:
    """Keep rows of a table whose columns hold texts, numbers, times and words: as `ask`.

    Many go in one statement: after each one, SQLite's thread has to wait for the interpreter.
    """
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        names = type(some[0]).__struct_fields__
        marks = f"({', '.join('?' * len(names))})"
        listed = ", ".join([marks] * len(some))
        statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {listed}"  # noqa: S608  names of ours
        ask(connection, statement, as_taken(chain.from_iterable(map(astuple, some))))


def as_taken(values: Iterable[object]) -> list[object]:
    """Values as the driver takes them: times and words as texts."""
    return [value if type(value) in _TAKEN else _text(value) for value in values]


class Columns:
    """Columns of a table as the driver gives them, to be read as SQLAlchemy would."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self.listed = ", ".join(names)
        kinds = [(name, table.c[name].type) for name in names]
        self._names = names
        self._read = [(name, kind) for name, kind in kinds if isinstance(kind, TypeDecorator)]

    def read(self, connection: Connection, row: Sequence[object]) -> dict[str, Any]:
        """The values of a row by the names of their columns."""
        found: dict[str, Any] = dict(zip(self._names, row, strict=True))
        for name, kind in self._read:
            found[name] = kind.process_result_value(found[name], connection.dialect)
        return found


_ROWS = 100
"""In one statement: PostgreSQL takes 65,535 values, SQLite half as many."""

_TAKEN = frozenset({str, int, bool, type(None)})
"""Types that the drivers take as they are."""

_text = lru_cache(4096, typed=True)(str)
"""A time is written in several rows, and its text costs as much as a whole row."""


def _driver(connection: Connection) -> Any:  # noqa: ANN401  the driver's
    return connection.connection.driver_connection


def _marked(connection: Connection, statement: str) -> str:
    return statement.replace("?", "%s") if is_postgres(connection) else statement
