"""Builds in process, as the child does them, and ways to look at what came out."""

from __future__ import annotations

import csv
import tarfile
from collections.abc import Iterator
from decimal import Decimal
from operator import itemgetter
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from ploti.model.digest import Buckets, digest_sql
from ploti.model.schema import FIRST
from ploti.model.sql import literal
from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.adapters.readers import READERS
from ploti.server.build.candidate import (
    Base,
    BuildOrder,
    BuildResult,
    BuiltFile,
    Candidate,
    FileRole,
)
from ploti.server.service.build_version import build_version
from ploti.server.sources.declaration import Declaration, parse_declaration
from tests.fakes.builds import gone_of

HISTORIES = Path(__file__).parents[2] / "shared" / "data"
MIB = 1 << 20

Row = dict[str, object]


def declare(**settings: object) -> Declaration:
    """A declaration with these settings."""
    named = {"id": "ds_test", "title": "Test", "place": "us/fl", "topic": "permits"}
    return parse_declaration(named | settings)


class Dataset:
    """A dataset in a folder: states are built one after another, each on the one before."""

    def __init__(self, folder: Path, declaration: Declaration, *, threads: int = 2) -> None:
        self.folder = folder
        self.declaration = declaration
        self.threads = threads
        self.number = 0
        self.base: Base | None = None
        self.candidate: Candidate | None = None

    def build(self, source: Path, *, name: str | None = None) -> BuildResult:
        """Build a state, without making it the base."""
        folder = self.folder / f"v{self.number + 1}"
        while folder.exists():
            folder = folder.with_name(f"{folder.name}_again")
        folder.mkdir(parents=True)
        order = BuildOrder(
            dataset_id=self.declaration.id,
            declaration=self.declaration,
            version=self.number + 1,
            base=self.base,
            source=str(source),
            source_name=name or source.name,
            folder=str(folder),
        )
        self.built_in = folder
        reads = [str(source), *(self.base.files if self.base else [])]
        with DuckEngine(
            str(folder), reads=reads, memory_limit=512 * MIB, threads=self.threads
        ) as engine:
            return build_version(order, readers=READERS, engine=engine)

    def release(self, source: Path, *, name: str | None = None) -> Candidate:
        """Build a state and make it the base of the next."""
        return self.accept(self.build(source, name=name))

    def accept(self, built: BuildResult) -> Candidate:
        """Make the state that was built last the base of the next."""
        assert isinstance(built, Candidate), built
        assert built.unmatched is None, built
        self.number += 1
        before = self.base.schema_version if self.base else str(FIRST)
        self.base = Base(
            version=self.number,
            schema=built.schema,
            schema_version=built.schema_change.to if built.schema_change else before,
            row_count=built.row_count,
            snapshot=str(self.path(built, FileRole.SNAPSHOT)),
            buckets=built.buckets,
            gone=gone_of(built, self.built_in),
        )
        self.candidate = built
        return built

    def release_text(self, text: str, *, name: str = "state.csv") -> Candidate:
        """Release a state given as text."""
        return self.release(self.write(text, name=name))

    def build_text(self, text: str, *, name: str = "state.csv") -> BuildResult:
        """Build a state given as text."""
        return self.build(self.write(text, name=name))

    def write(self, text: str | bytes, *, name: str = "state.csv") -> Path:
        """A source file."""
        path = self.folder / "sources" / str(len(list(self.folder.glob("sources/*")))) / name
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def path(self, built: Candidate, role: FileRole, format_: str = "parquet") -> Path:
        """A file of the candidate built last."""
        return self.built_in / file_of(built, role, format_).name


def file_of(built: Candidate, role: FileRole, format_: str = "parquet") -> BuiltFile:
    """The entry of a candidate's file; `parquet` stands for GeoParquet too."""
    for file in built.files:
        if file.role is role and file.format.removeprefix("geo") == format_:
            return file
    raise AssertionError(f"there is no {role} as {format_}")


def rows_of(path: Path) -> list[Row]:
    """The rows of a Parquet file."""
    return pq.read_table(path).to_pylist()


def check_snapshot(path: Path, source: Path, *, key: str) -> None:
    """Require that a snapshot has exactly the cells of its source, read by plain Python."""
    with source.open(newline="", encoding="utf-8-sig") as file:
        names, *lines = csv.reader(file)
    lines.sort(key=itemgetter(names.index(key)))
    table = pq.read_table(path)
    keys = [str(value) for value in table[key].to_pylist()]
    table = table.take(sorted(range(len(keys)), key=keys.__getitem__))
    for name, texts in zip(names, zip(*lines, strict=True), strict=True):
        values = table[name].to_pylist()
        assert len(values) == len(texts)
        wrong = [pair for pair in zip(values, texts, strict=True) if not same(*pair)]
        assert wrong == [], name


def same(value: object, text: str) -> bool:
    """Whether a value is what the source's text says."""
    if value is None or text == "":
        return value is None and text == ""
    if isinstance(value, str):
        return value == text
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(text) == value if isinstance(value, float) else Decimal(text) == value
    return str(value) == text


def check_fold(before: Path, changes: Path, after: Path) -> None:
    """Require that a snapshot with the changes applied is the next snapshot, cell for cell."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_geoparquet_conversion = false")
        for name, path in (("before", before), ("changes", changes), ("after", after)):
            connection.execute(
                f"CREATE VIEW {name} AS SELECT * FROM read_parquet({literal(str(path))})"
            )
        columns = ", ".join(
            f'"{name}"' for name in connection.table("after").columns if name != "_ploti_bbox"
        )
        folded = f"""
            SELECT {columns} FROM (SELECT * FROM before WHERE _ploti_record_id NOT IN
                (SELECT _ploti_record_id FROM changes)
            UNION ALL BY NAME
            SELECT * FROM changes WHERE _ploti_op = 'upsert')
        """
        now = f"SELECT {columns} FROM after"
        for left, right in ((folded, now), (now, folded)):
            assert connection.execute(f"({left}) EXCEPT ALL ({right})").fetchall() == []


def full_digest(path: Path, built: Candidate) -> Buckets:
    """The digest of a snapshot, computed from all its rows."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_geoparquet_conversion = false")
        sql = digest_sql(built.schema, f"read_parquet({literal(str(path))})")
        return Buckets.from_sql(connection.execute(sql).fetchall())


def history(name: str, folder: Path) -> Iterator[Path]:
    """The states of a real history, in order; skips the test where there is none."""
    archive = HISTORIES / f"{name}.tar.xz"
    if not archive.exists():
        pytest.skip(f"the history {name} lies in ../shared/data, which is absent")
    with tarfile.open(archive, "r:xz") as tar:
        for member in sorted(tar.getnames()):
            tar.extract(member, folder, filter="data")
            if (folder / member).is_file():
                yield folder / member
