"""The engine: DuckDB for the tables, pyarrow for the files, both bound to a build's folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow.parquet as pq

from ploti.errors import SourceError
from ploti.model.admin import BuildStage
from ploti.model.schema import Schema
from ploti.model.sql import literal
from ploti.server.adapters.engine import functions, wkb
from ploti.server.adapters.engine.again import write_again
from ploti.server.adapters.engine.keeping import write_kept
from ploti.server.adapters.engine.listing import write_lines
from ploti.server.adapters.engine.rows import BATCH
from ploti.server.adapters.engine.sealing import seal
from ploti.server.adapters.engine.snapshot import write_first
from ploti.server.adapters.engine.walk import Walk
from ploti.server.build.candidate import Base, BuiltFile, FileRole
from ploti.server.build.diff import Box, NewRows
from ploti.server.build.limits import Limit
from ploti.server.build.matching.question import OverBudget, Run
from ploti.server.build.progress import Telling
from ploti.server.ports.building import Kept, NextVersion, Written

_BATCH = 100_000
_LOOK_EVERY = 0.5
"""Seconds from one look at DuckDB's progress to the next."""

_AGAIN = 0.05
"""Seconds from one interrupt to the next."""

_REFUSED = ("Invalid Input Error", "Conversion Error")
"""How texts of errors begin that, out of an Arrow stream, come as an OSError."""


class DuckEngine:
    """Implements `Engine`: SQL that sees the folder and the files given, and nothing else."""

    def __init__(
        self,
        folder: str,
        *,
        reads: Sequence[str],
        memory_limit: int,
        threads: int = 2,
        match_seconds: float | None = None,
        telling: Telling | None = None,
    ) -> None:
        """Bind an engine to a folder of its own and to the files that it `reads` beside it.

        `memory_limit` is in bytes and DuckDB's alone: the process takes 110 to 160 MB more.
        `match_seconds` is how long one matching may take, None for no limit. `telling` gets word of
        how far the build is.
        """
        self.folder = folder
        self.telling = telling or Telling()
        self._match_seconds = match_seconds
        self._late = threading.Event()
        self._connection, self._beside = _connect(folder, reads, memory_limit, threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def head(self, path: str, size: int) -> bytes:
        """The first bytes of a file."""
        with Path(path).open("rb") as file:
            return file.read(size)

    def run(self, sql: str) -> None:
        """Run a statement that gives nothing back."""
        self._execute(sql).fetchall()

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a small result."""
        found: list[tuple[object, ...]] = self._execute(sql).fetchall()
        return found

    @contextmanager
    def matching(self) -> Iterator[Run]:
        """What runs the statements of a matching; it raises OverBudget past a limit."""
        ended = threading.Event()
        watch = threading.Thread(target=self._interrupt_late, args=(ended,), daemon=True)
        watch.start()
        try:
            yield self.match
        finally:
            ended.set()
            watch.join()
            self._late.clear()

    def match(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a statement of the matching; whatever it fails of is an OverBudget."""
        if self._late.is_set():
            raise self._too_long()
        try:
            return self._connection.execute(sql).fetchall()
        except duckdb.OutOfMemoryException as error:
            message = "the matching needs more memory than the build has"
            raise OverBudget(message, limit=Limit.MEMORY) from error
        except duckdb.Error as error:
            if self._late.is_set():
                raise self._too_long() from error
            raise OverBudget(f"the matching failed: {_first_line(error)}", limit=None) from error

    def _too_long(self) -> OverBudget:
        message = f"the matching ran longer than the {self._match_seconds:g} s that it may take"
        return OverBudget(message, limit=Limit.SECONDS)

    def _interrupt_late(self, ended: threading.Event) -> None:
        """An interrupt between two statements is lost: so again and again until the end."""
        if self._match_seconds is None or ended.wait(self._match_seconds):
            return
        self._late.set()
        while not ended.wait(_AGAIN):
            self._connection.interrupt()

    def _execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        with _refusing():
            return self._connection.execute(sql)

    def keep(self, sql: str, *, name: str) -> Kept:
        """Run a query once and keep its rows in a Parquet file."""
        path = Path(self.folder, f"{name}.parquet")
        with self._watched(), _refusing():
            rows, nulls = write_kept(self._connection.sql(sql).to_arrow_reader(BATCH), path)
        relation = f"read_parquet({literal(str(path))}, file_row_number=true)"
        return Kept(relation=relation, rows=rows, nulls=nulls)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Tell what DuckDB says of its own progress while a statement runs."""
        ended = threading.Event()
        watch = threading.Thread(target=self._tell_until, args=(ended,), daemon=True)
        watch.start()
        try:
            yield
        finally:
            ended.set()
            watch.join()

    def _tell_until(self, ended: threading.Event) -> None:
        while not ended.wait(_LOOK_EVERY):
            percent = self._connection.query_progress()
            if percent > 0:
                self.telling.reach(percent / 100)

    def box(self, sql: str) -> Box | None:
        """The box of the middles of the geometries of a query; None where there are none."""
        batches = self._connection.sql(sql).to_arrow_reader(_BATCH)
        return wkb.box_of(wkb.centres(batch.column(0)) for batch in batches)

    def write_first(self, new: NewRows, *, schema: Schema, version: int) -> Written:
        """Write the snapshot of a first version, whose records are all new."""
        self.telling.begin(BuildStage.WRITING)
        return write_first(
            self._connection,
            new,
            folder=Path(self.folder),
            schema=schema,
            version=version,
            telling=self.telling,
        )

    def write_next(self, step: NextVersion, *, schema: Schema, version: int) -> Written:
        """Write the snapshot, and the changes, of a version that follows its base."""
        self.telling.begin(BuildStage.WRITING)
        walk = Walk(
            self._connection,
            self._beside,
            step,
            folder=Path(self.folder),
            schema=schema,
            version=version,
            telling=self.telling,
        )
        return walk.write()

    def write_again(self, sql: str, *, base: Base, name: str) -> Written:
        """Write a snapshot of this name, of a version's records in the order of the ids given."""
        path = Path(self.folder, name)
        return write_again(self._connection, sql, path=path, base=base, telling=self.telling)

    def write_table(self, sql: str, *, role: FileRole, name: str) -> BuiltFile:
        """Write the rows of a query, in its order, as a Parquet file of this name."""
        path = Path(self.folder, name)
        self.run(f"COPY ({sql}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)")
        rows = pq.read_metadata(path).num_rows
        return seal(path, role=role, format_="parquet", rows=rows)

    def write_csv(self, sql: str, *, role: FileRole, rows: int) -> BuiltFile:
        """Write the rows of a query as CSV: a header, null as nothing and empty text as `""`."""
        path = Path(self.folder, f"{role}.csv")
        self.run(f"COPY ({sql}) TO {literal(str(path))} (FORMAT csv, HEADER, NULLSTR '')")
        return seal(path, role=role, format_="csv", rows=rows)

    def write_listing(self, changes: BuiltFile, *, schema: Schema) -> BuiltFile:
        """Write a changes file's rows as JSON, a line each."""
        path = Path(self.folder, "listing.jsonl")
        write_lines(Path(self.folder, changes.name), path, schema=schema)
        return seal(path, role=FileRole.LISTING, format_="jsonl", rows=changes.rows)

    def write_text(self, text: bytes, *, role: FileRole, name: str, rows: int) -> BuiltFile:
        """Write a small file."""
        path = Path(self.folder, name)
        path.write_bytes(text)
        return seal(path, role=role, format_=path.suffix[1:], rows=rows)


def _connect(
    folder: str, reads: Sequence[str], memory_limit: int, threads: int
) -> tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]:
    """A connection, and a second one to its tables, for what is read while the first is at work."""
    connection = duckdb.connect(":memory:")
    beside = connection.cursor()
    functions.register(connection)
    readable = ", ".join(map(literal, reads))
    for setting in (
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        f"memory_limit = '{memory_limit >> 10}KiB'",
        f"threads = {threads}",
        f"temp_directory = {literal(str(Path(folder, 'spill')))}",
        f"allowed_directories = [{literal(folder)}]",
        f"allowed_paths = [{readable}]",
        "preserve_insertion_order = true",
        # What was freed or read once goes back to the system: the files' part needs it.
        "enable_external_file_cache = false",
        "allocator_background_threads = true",
        # A `geo` key would make DuckDB give GEOMETRY, where bytes are to be compared.
        "enable_geoparquet_conversion = false",
        # Asked for from another thread; nothing is printed.
        "enable_progress_bar = true",
        "enable_progress_bar_print = false",
        "enable_external_access = false",
    ):
        connection.execute(f"SET {setting}")
    for each in (connection, beside):
        # Sorts and hash tables spill beyond it; what cannot spill has the rest.
        each.execute(f"SET operator_memory_limit = '{memory_limit >> 12}KiB'")
        each.execute("SET TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    return connection, beside


@contextmanager
def _refusing() -> Iterator[None]:
    """What DuckDB refuses in a source's data is the source's fault."""
    try:
        yield
    except (duckdb.InvalidInputException, duckdb.ConversionException) as error:
        raise _unreadable(error) from error
    except OSError as error:
        if str(error).startswith(_REFUSED):
            raise _unreadable(error) from error
        raise


def _unreadable(error: Exception) -> SourceError:
    return SourceError(f"the source cannot be read: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
