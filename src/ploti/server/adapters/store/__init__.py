"""The store's adapters: SQLAlchemy Core over SQLite, migrated by alembic."""

from ploti.server.adapters.store.store import SqliteStore

__all__ = ["SqliteStore"]
