"""SQLite files as destinations: the file, a session with it, and its tables."""

from ploti.sync.destinations.sqlite.file import SQLite as SQLite
