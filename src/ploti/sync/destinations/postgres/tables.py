"""The tables of records in a PostgreSQL database, and how Parquet files are brought into them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from ploti.model.columns import RECORD_ID
from ploti.model.digest import Buckets
from ploti.model.schema import AddedColumn, Schema
from ploti.model.sql import identifier
from ploti.sync.destination import TableError
from ploti.sync.destinations.postgres import staging, values
from ploti.sync.destinations.postgres.chain import Chain
from ploti.sync.destinations.postgres.digest import buckets_sql, in_buckets_sql
from ploti.sync.destinations.postgres.faults import said_of_the_table
from ploti.sync.destinations.postgres.merging import merge
from ploti.sync.destinations.postgres.names import Names
from ploti.sync.destinations.postgres.replacing import replaced
from ploti.sync.destinations.postgres.reported import more_rows, read_reported
from ploti.sync.destinations.postgres.staging import STAGE, Columns
from ploti.sync.destinations.postgres.wire import Wire
from ploti.sync.parquet import Rows, Written
from ploti.sync.tally import Tally

_COLUMNS = """
    SELECT attname, CASE WHEN typname = 'geometry' THEN typname
        ELSE format_type(atttypid, atttypmod) END
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
_KEYS = """
    SELECT count(*) FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
    WHERE indrelid = to_regclass(%s) AND indisunique AND indisvalid AND indpred IS NULL
        AND indnkeyatts = 1 AND attname = %s
"""
_ID = identifier(RECORD_ID)
_MEMORY, _COLUMN = 240 * 1024, 400
"""KiB in which DuckDB reads a file, and those that it takes for each of its columns besides."""


class Tables:
    """The tables of the default schema; every method raises TableError for a table's own fault.

    They are those of one connection, and know for as long how many rows they have. DuckDB reads the
    files, rows go in by COPY. A table that stays is never emptied: what differs is written over it,
    so that readers, views, grants and foreign keys notice nothing else.
    """

    def __init__(
        self, wire: Wire, engine: duckdb.DuckDBPyConnection, *, replace_views: bool
    ) -> None:
        self._engine = engine
        self._replace_views = replace_views
        self._tally = Tally()
        self._chain = Chain(wire)
        self.wire = wire
        self.names = Names(wire)

    def kind(self, table: str) -> str | None:
        """What kind of relation has this name, by PostgreSQL's letter; None where none has."""
        query = "SELECT relkind::text FROM pg_class WHERE oid = to_regclass(%s)"
        found = self.wire.value(query, self._place(table))
        return None if found is None else str(found)

    def load(self, table: str, schema: Schema, file: Path, *, exactly: bool = False) -> None:
        """Replace all rows; a table with the right columns stays, with what its owner added."""
        self._tally.forget()
        with said_of_the_table():
            names = self.names.fit(table, [column.name for column in schema.columns])
            have, place = self._columns(table), self._place(table)
            stays = self._differing(schema, names, have) is None and self._has_key(place)
            if stays and (not exactly or len(have) == len(schema.columns) + 1):
                columns = self._stored(schema, names, have)
                self._stage(schema, columns, file, is_changes=False)
                merge(self.wire, place, columns, is_changes=False)
                return
            columns = self._declared(schema, names)
            with replaced(self.wire, place, table, replace_views=self._replace_views) as new:
                self._make(new, schema, columns, file)

    def apply(self, table: str, schema: Schema, file: Path) -> None:
        """Delete and insert what a changes file says."""
        with said_of_the_table():
            names = self.names.fit(table, [column.name for column in schema.columns])
            have, place = self._columns(table), self._place(table)
            differing = self._differing(schema, names, have)
            if differing is not None:
                raise TableError(
                    f"column {differing} of table {table} is {have.get(differing, 'missing')}"
                )
            columns = self._stored(schema, names, have)
            self._stage(schema, columns, file, is_changes=True)
            before = read_reported(self.wire, place)
            deleted, written = merge(self.wire, place, columns, is_changes=True)
            more = more_rows(self.wire, place, before, deleted=deleted, written=written)
            self._tally.add(table, more)

    def add_columns(self, table: str, columns: Sequence[AddedColumn]) -> None:
        """Add columns, null in every row; one that is there already is emptied."""
        self._tally.forget()
        with said_of_the_table():
            names = self.names.fit(table, [column.name for column in columns])
            have, place = self._columns(table), self._place(table)
            for column in columns:
                stored = names.get(column.name, column.name)
                if stored in have:
                    self.wire.run(f"UPDATE {place} SET {identifier(stored)} = NULL")
                    continue
                kind = values.declared(column.type, has_postgis=self.wire.postgis is not None)
                declared = values.qualified(kind, self.wire.postgis)
                self.wire.run(f"ALTER TABLE {place} ADD COLUMN {identifier(stored)} {declared}")

    def drop(self, table: str) -> None:
        """Drop the table if it is there."""
        self._tally.forget()
        with said_of_the_table():
            self.wire.run(f"DROP TABLE IF EXISTS {self._place(table)}")
            self.names.forget(table)

    def count(self, table: str) -> int:
        """The number of its rows; they are counted unless nobody else has written since."""
        with said_of_the_table():
            return self._tally.rows(table, self._chain.stretch(), lambda: self._count(table))

    def _count(self, table: str) -> int:
        with self._by_one_process("max_parallel_workers_per_gather"):
            return int(self.wire.value(f"SELECT count(*) FROM {self._place(table)}"))

    def end(self) -> None:
        """The transaction is about to be committed."""
        self._chain.end()

    def forget(self) -> None:
        """The transaction was rolled back."""
        self._tally.forget()

    def record_ids(self, table: str, buckets: Collection[int]) -> list[str]:
        """The ids of its rows in these buckets."""
        with said_of_the_table():
            found = self.wire.rows(in_buckets_sql(self._place(table), _ID, sorted(buckets)))
            return [str(record_id) for (record_id,) in found]

    def buckets(self, table: str, schema: Schema) -> Buckets:
        """The digest of the table, computed by PostgreSQL from what it has."""
        with said_of_the_table():
            names, have = self.names.of(table), self._columns(table)
            if RECORD_ID not in have:
                raise TableError(f"table {table} has no column {RECORD_ID}")
            cells = {
                column.name: values.digested(have[stored], identifier(stored), self.wire.postgis)
                for column in schema.columns
                if (stored := names.get(column.name, column.name)) in have
            }
            sql = buckets_sql(schema, self._place(table), record_id=_ID, values=cells)
            return Buckets.from_sql(
                (bucket, rows, int(high), int(low))
                for bucket, rows, high, low in self.wire.rows(sql)
            )

    def _stage(self, schema: Schema, columns: Columns, file: Path, *, is_changes: bool) -> None:
        rows = self._rows(schema, file)
        self.wire.run(staging.stage_sql(columns, is_changes=is_changes))
        written = self._written(schema, columns)
        pieces = rows.csv_changes(schema, written) if is_changes else rows.csv(schema, written)
        self.wire.copy(f"COPY {STAGE} FROM STDIN (FORMAT csv)", pieces)
        self.wire.run(f"ANALYZE {STAGE} ({_ID})")

    def _make(self, place: str, schema: Schema, columns: Columns, file: Path) -> None:
        """Make a table with a file's rows; its index is made last, which costs less."""
        self.wire.run(f"CREATE TABLE {columns.make_sql(place)}")
        pieces = self._rows(schema, file).csv(schema, self._written(schema, columns))
        # Frozen, so that a reader whose snapshot is older finds the rows and no empty table.
        self.wire.copy(f"COPY {place} FROM STDIN (FORMAT csv, FREEZE)", pieces)
        with self._by_one_process("max_parallel_maintenance_workers"):
            self.wire.run(f"ALTER TABLE {place} ADD PRIMARY KEY ({_ID})")

    @contextmanager
    def _by_one_process(self, setting: str) -> Iterator[None]:
        """Workers beside it cost more than they save, for rows that come as the index has them.

        To count a million of them takes 0.07 CPU s, not 0.11, and to index them 0.5, not 0.7.
        """
        self.wire.run(f"SET LOCAL {setting} = 0")
        yield
        self.wire.run(f"SET LOCAL {setting} TO DEFAULT")

    def _rows(self, schema: Schema, file: Path) -> Rows:
        """A file's rows, read in little memory: each column takes a buffer of its own."""
        memory = _MEMORY + len(schema.columns) * _COLUMN
        self._engine.execute(f"SET memory_limit = '{memory} KiB'")
        return Rows(self._engine, file)

    def _written(self, schema: Schema, columns: Columns) -> Written:
        geometry = values.GEOMETRY if values.GEOMETRY in columns.types else values.WKB
        srid = values.srid_of(schema.geometry.crs) if schema.geometry else 0
        return values.written_as(geometry, srid)

    def _declared(self, schema: Schema, names: Mapping[str, str]) -> Columns:
        """The columns as a new table is to have them."""
        return Columns(
            names=[names.get(column.name, column.name) for column in schema.columns],
            types=[
                values.declared(column.type, has_postgis=self.wire.postgis is not None)
                for column in schema.columns
            ],
            postgis=self.wire.postgis,
        )

    def _stored(self, schema: Schema, names: Mapping[str, str], have: Mapping[str, str]) -> Columns:
        """The columns as the table has them."""
        stored = [names.get(column.name, column.name) for column in schema.columns]
        types = [have[name] for name in stored]
        return Columns(names=stored, types=types, postgis=self.wire.postgis)

    def _differing(
        self, schema: Schema, names: Mapping[str, str], have: Mapping[str, str]
    ) -> str | None:
        """A column that the table has not as it should be, by the name that it has there."""
        wanted = [("string", RECORD_ID)]
        wanted += [(each.type, names.get(each.name, each.name)) for each in schema.columns]
        for kind, stored in wanted:
            if not values.is_declared(kind, have.get(stored, "missing")):
                return stored
        return None

    def _has_key(self, place: str) -> bool:
        return bool(self.wire.value(_KEYS, place, RECORD_ID))

    def _columns(self, table: str) -> dict[str, str]:
        """The declared type of each column, by the name that it has in the database."""
        return dict(self.wire.rows(_COLUMNS, self._place(table)))

    def _place(self, table: str) -> str:
        return f"{self.wire.schema}.{identifier(table)}"
