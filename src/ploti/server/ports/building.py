"""Ports of the child that builds: readers of formats, and the engine that runs the tables' SQL."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from ploti.model.digest import Buckets
from ploti.model.schema import Schema
from ploti.server.build.candidate import Base, BuiltFile, FileRole
from ploti.server.build.diff import Box, NewRows
from ploti.server.build.matching.question import Run
from ploti.server.build.progress import Telling
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawColumn, RawGeometry, RawKind, RawTable

__all__ = [
    "Engine",
    "Kept",
    "NextVersion",
    "RawColumn",
    "RawGeometry",
    "RawKind",
    "RawTable",
    "Reader",
    "Written",
]


class Reader(Protocol):
    """Reads one format. One file a format; `adapters/readers/__init__.py` lists them."""

    format: str

    def matches(self, name: str, head: bytes) -> bool:
        """Whether a file of this name that begins with `head` is of this format."""
        ...

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the file at `path`, leaving what it needs in `folder`.

        Raises SourceError with one line that names the place (line or feature) and the reason.
        """
        ...


class Kept(NamedTuple):
    """A table kept for the build: its relation, with `file_row_number`, and each column's nulls."""

    relation: str
    rows: int
    nulls: Mapping[str, int]


class NextVersion(NamedTuple):
    """What makes a snapshot of its base.

    `recast` is SQL of each column over the base's, where the columns are not the base's own.
    `changed` is SQL of rows under the dataset's names with their rows in the base as `PLACE`;
    `returned` of rows with the ids that they have last, in the order of these: they come between
    the base's, and count as added. `touched` is SQL of the base's rows (`base_pos`) that change or
    are `removed`. With `same_keys` a changed record keeps its key, which is proved. A version to
    be loaded has no changes file.
    """

    base: Base
    recast: Mapping[str, str] | None
    touched: str
    changed: str
    returned: str
    added: NewRows
    same_keys: bool
    with_changes: bool


class Written(NamedTuple):
    """The files of a version with their digest, and the geometry types that occur in it."""

    snapshot: BuiltFile
    changes: BuiltFile | None
    buckets: Buckets
    geometry_types: list[str]


class Engine(Protocol):
    """Runs SQL over tables and files in the order's folder, and writes a version's files.

    Its SQL is DuckDB's with six functions more: `ploti_point(x, y, precision)` and
    `ploti_geometry(wkb, precision)` give canonical WKB (a precision of 0 rounds nothing),
    `ploti_moved(wkb, from, to)` gives WKB in another reference system, x, y in both,
    `ploti_place(wkb, left, low, right, high)` the place of the middle of its box along a Hilbert
    curve over the box given, `ploti_json(text)` canonical JSON, null where the text is none, and
    `ploti_repeated(list)` those of a list of hashes that come again, as often as they do.
    """

    @property
    def telling(self) -> Telling:
        """Where the build tells how far it is."""
        ...

    @property
    def folder(self) -> str:
        """Where the build leaves its files."""
        ...

    def head(self, path: str, size: int) -> bytes:
        """The first bytes of a file."""
        ...

    def run(self, sql: str) -> None:
        """Run a statement that gives nothing back."""
        ...

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a small result."""
        ...

    def matching(self) -> AbstractContextManager[Run]:
        """What runs the statements of a matching; it raises OverBudget past a limit."""
        ...

    def keep(self, sql: str, *, name: str) -> Kept:
        """Run a query once and keep its rows in a file of this name."""
        ...

    def box(self, sql: str) -> Box | None:
        """The box of the middles of the geometries of a query; None where there are none."""
        ...

    def write_first(self, new: NewRows, *, schema: Schema, version: int) -> Written:
        """Write the snapshot of a first version, whose records are all new."""
        ...

    def write_next(self, step: NextVersion, *, schema: Schema, version: int) -> Written:
        """Write the snapshot, and the changes, of a version that follows its base."""
        ...

    def write_again(self, sql: str, *, base: Base, name: str) -> Written:
        """Write a snapshot of this name, of a version's records in the order of the ids given."""
        ...

    def write_table(self, sql: str, *, role: FileRole, name: str) -> BuiltFile:
        """Write the rows of a query, in its order, as a Parquet file of this name."""
        ...

    def write_csv(self, sql: str, *, role: FileRole, rows: int) -> BuiltFile:
        """Write the rows of a query as CSV: a header, null as nothing and empty text as `""`."""
        ...

    def write_listing(self, changes: BuiltFile, *, schema: Schema) -> BuiltFile:
        """Write a changes file's rows as JSON, a line each."""
        ...

    def write_text(self, text: bytes, *, role: FileRole, name: str, rows: int) -> BuiltFile:
        """Write a small file."""
        ...
