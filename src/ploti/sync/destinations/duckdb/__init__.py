"""DuckDB files as destinations: the file, a session with it, and its tables."""

from ploti.sync.destinations.duckdb.file import DuckDB as DuckDB
