"""Adapter: the store over SQL, by SQLAlchemy Core: SQLite in the folder, or PostgreSQL."""

from ploti.server.adapters.store.postgres import PostgresStore
from ploti.server.adapters.store.sqlite import SqliteStore
from ploti.server.adapters.store.store import SqlStore

__all__ = ["PostgresStore", "SqlStore", "SqliteStore"]
