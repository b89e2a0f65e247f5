"""A version with all at hand that its transaction needs, and the checks before the commit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ploti.model.digest import Buckets
from ploti.model.ids import DatasetId
from ploti.model.schema import Schema
from ploti.model.version import Version
from ploti.sync.destination import TableError, Transaction
from ploti.sync.downloads import Downloads
from ploti.sync.feed import Feed, Role
from ploti.sync.verify import describe, read_wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A version, its schema and the file to bring in; `wanted` only where it is verified."""

    version: Version
    schema: Schema
    file: Path
    wanted: Buckets | None


class Supply:
    """Fetches what versions need; a schema once for all versions that have it."""

    def __init__(self, feed: Feed, downloads: Downloads, *, verify: bool) -> None:
        self._feed = feed
        self._downloads = downloads
        self._verify = verify
        self._schemas: dict[tuple[DatasetId, str], Schema] = {}

    def fetch(self, version: Version, role: Role) -> Ready:
        """Everything for one version; nothing of it is in the destination yet."""
        wanted = read_wanted(self._feed, version) if self._verify else None
        schema = self._schema(version)
        file = self._downloads.fetch(version, role)
        return Ready(version=version, schema=schema, file=file, wanted=wanted)

    def forget(self) -> None:
        """Ask anew: a restored server may have given a schema version twice."""
        self._schemas.clear()

    def _schema(self, version: Version) -> Schema:
        key = (version.dataset_id, version.schema_version)
        if key not in self._schemas:
            schema = self._feed.schema(version.dataset_id, version.version)
            _check_names(schema)
            self._schemas[key] = schema
        return self._schemas[key]


def _check_names(schema: Schema) -> None:
    """Raise TableError where DuckDB, which reads every file, would take a column for another."""
    names: dict[bytes, str] = {}
    for column in schema.columns:
        # Of bytes `lower` is about ASCII alone, and so is DuckDB.
        other = names.setdefault(column.name.encode().lower(), column.name)
        if other != column.name:
            raise TableError(
                f"the columns {other} and {column.name} are equal but for case, and sync cannot"
                " tell them apart: read the dataset with `ploti.feeds.table` or"
                " `ploti feeds datasets download`, or have its publisher rename one"
            )


def check_rows(transaction: Transaction, table: str, ready: Ready) -> None:
    """Raise TableError unless the table has as many rows as its version."""
    rows, wanted = transaction.count(table), ready.version.row_count
    if rows != wanted:
        raise TableError(f"table {table} would have {rows} rows, its version has {wanted}")


def find_difference(transaction: Transaction, table: str, ready: Ready) -> str | None:
    """How the table differs from its version by the digest; None where that is not asked for."""
    if ready.wanted is None:
        return None
    return describe(transaction.buckets(table, ready.schema), ready.wanted)
