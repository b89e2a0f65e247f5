"""Adapter: the store over SQL, by SQLAlchemy Core: SQLite in the folder, or PostgreSQL."""

from ploti.server.adapters.store.copying import (
    blobs_of,
    copy_postgres,
    copy_sqlite,
    fill_postgres,
)
from ploti.server.adapters.store.migrate import pending
from ploti.server.adapters.store.postgres import PostgresStore, read_postgres
from ploti.server.adapters.store.sqlite import SqliteStore, read_sqlite
from ploti.server.adapters.store.store import SqlStore, look

__all__ = [
    "PostgresStore",
    "SqlStore",
    "SqliteStore",
    "blobs_of",
    "copy_postgres",
    "copy_sqlite",
    "fill_postgres",
    "look",
    "pending",
    "read_postgres",
    "read_sqlite",
]
