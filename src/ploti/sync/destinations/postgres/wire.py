"""A connection to PostgreSQL, as the other modules use it: SQL as text, settings that are ours."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import Any

import psycopg

from ploti.client.alarm import Alarm
from ploti.errors import SyncError
from ploti.sync.destinations.postgres.connecting import connect
from ploti.sync.destinations.postgres.values import PostGIS

_OLDEST = 140_000
_SETTINGS = """
    SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET standard_conforming_strings = on;
    SET client_min_messages = warning; SET statement_timeout = 0;
    SET idle_in_transaction_session_timeout = 0;
    SET default_transaction_isolation = 'read committed';
    SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3
"""
"""The last three: a server that lost its client lets go of the client's lock within a minute."""

_PATIENCE = 2.0
"""Seconds for a request to break off what goes on, which comes over a connection of its own."""

_POSTGIS = """
    SELECT quote_ident(nspname) FROM pg_extension AS e
    JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE extname = 'postgis'
"""


class Wire:
    """One connection; whoever opens it closes it. To stop the alarm breaks off its statement."""

    def __init__(self, address: str, *, lock_timeout: float, alarm: Alarm) -> None:
        self._connection = connect(address, alarm)
        self._until_closed = ExitStack()
        self._until_closed.callback(self._connection.close)
        self._until_closed.enter_context(alarm.heard_by(self._break_off, rings=False))
        try:
            self._set_up(lock_timeout)
        except BaseException:
            self.close()
            raise

    def _set_up(self, lock_timeout: float) -> None:
        if self._connection.info.server_version < _OLDEST:
            raise SyncError(
                "The server is older than PostgreSQL 14: sync needs that or a newer one"
            )
        self.run(_SETTINGS)
        self.run(f"SET lock_timeout = {max(1, round(lock_timeout * 1000))}")
        schema = self.value("SELECT quote_ident(current_schema())")
        if schema is None:
            raise SyncError("No schema of the user's search_path is there: make one, then sync")
        self.schema = str(schema)
        postgis = self.value(_POSTGIS)
        self.postgis = None if postgis is None else PostGIS(str(postgis))

    @property
    def is_open(self) -> bool:
        """Whether it can still be used, as far as is known."""
        return not self._connection.closed

    def is_in_transaction(self) -> bool:
        """Whether there is a transaction to end."""
        return (
            self.is_open
            and self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        )

    @property
    def process(self) -> int:
        """The number of the server's process at the other end."""
        return self._connection.info.backend_pid

    def close(self) -> None:
        """Let go of it; the server takes back what is not committed."""
        self._until_closed.close()

    def _break_off(self) -> None:
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=_PATIENCE)

    def run(self, statement: str, *values: object) -> int:
        """Execute, and give the rows that were written, as far as the statement writes any.

        `%s` stands for a value only where values are given.
        """
        return self._connection.execute(statement.encode(), values or None).rowcount

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self._connection.execute(query.encode(), values or None).fetchall()

    def value(self, query: str, *values: object) -> Any:  # noqa: ANN401 - as its type is there
        """The one value of a query, None where it has no row."""
        found = self._connection.execute(query.encode(), values or None).fetchone()
        return None if found is None else found[0]

    def copy(self, statement: str, pieces: Iterable[bytes]) -> None:
        """Send a COPY … FROM STDIN its data; an error on the way ends it without effect."""
        with self._connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            for piece in pieces:
                copy.write(piece)
