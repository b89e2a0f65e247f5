"""PostgreSQL databases as destinations: connection, session, tables and the digest within."""

from ploti.sync.destinations.postgres.database import Postgres as Postgres
