"""Versions built in this process by the child's own parts, one state after another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.adapters.readers import READERS
from ploti.server.build.candidate import Base, BuildOrder, BuildResult, Candidate, FileRole
from ploti.server.service.build_version import build_version
from ploti.server.sources.declaration import Declaration, parse_declaration

MEMORY = 512 << 20


def declare(**settings: Any) -> Declaration:
    """A declaration with these settings beside the least that it needs."""
    return parse_declaration({"id": "ds_a", "title": "A", "place": "us", "topic": "a"} | settings)


class Builds:
    """Builds states of one dataset, each upon the last one that made a version."""

    def __init__(
        self, folder: Path, declaration: Declaration, *, schema_version: str = "1.0"
    ) -> None:
        self.folder = folder
        self.declaration = declaration
        self.base: Base | None = None
        self._first_schema = schema_version
        self._orders = 0

    def build(
        self,
        state: Path | bytes,
        *,
        name: str = "state.csv",
        always: bool = False,
        gone_since: int = 0,
        matched_to: Base | None = None,
        threads: int = 1,
    ) -> BuildResult:
        """Build one state; a candidate with files becomes the base of the next."""
        self._orders += 1
        folder = self.folder / f"order-{self._orders}"
        folder.mkdir()
        if isinstance(state, bytes):
            source = folder / name
            source.write_bytes(state)
        else:
            source = state
        order = BuildOrder(
            dataset_id=self.declaration.id,
            declaration=self.declaration,
            version=self._orders,
            base=self.base,
            source=str(source),
            source_name=source.name,
            folder=str(folder),
            always=always,
            gone_since=gone_since,
            matched_to=matched_to,
        )
        read = [base for base in (self.base, matched_to) if base]
        reads = [str(source), *(path for base in read for path in base.files)]
        with DuckEngine(str(folder), reads=reads, memory_limit=MEMORY, threads=threads) as engine:
            result = build_version(order, readers=READERS, engine=engine)
        if isinstance(result, Candidate) and result.files:
            self.base = self._as_base(result, folder, version=self._orders)
        return result

    def file(self, result: BuildResult, role: FileRole) -> str:
        """The path of a candidate's Parquet file."""
        assert isinstance(result, Candidate)
        (file,) = [
            each for each in result.files if each.role == role and each.format.endswith("parquet")
        ]
        return str(self.folder / f"order-{self._orders}" / file.name)

    def rows(self, result: BuildResult, role: FileRole = FileRole.SNAPSHOT) -> list[dict[str, Any]]:
        """The rows of a candidate's file."""
        found = duckdb.read_parquet(self.file(result, role))
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    def changed_keys(self, result: BuildResult) -> dict[str, list[Any]]:
        """The keys in a candidate's changes file, by the kind of change."""
        (key,) = self.declaration.key
        changes = self.rows(result, FileRole.CHANGES)
        return {
            kind: sorted(row[key] for row in changes if row["_ploti_change"] == kind)
            for kind in ("added", "changed")
        }

    def _as_base(self, result: Candidate, folder: Path, *, version: int) -> Base:
        if result.schema_change:
            schema_version = result.schema_change.to
        else:
            schema_version = self.base.schema_version if self.base else self._first_schema
        return Base(
            version=version,
            schema=result.schema,
            schema_version=schema_version,
            row_count=result.row_count,
            snapshot=self.file(result, FileRole.SNAPSHOT),
            buckets=result.buckets,
            gone=gone_of(result, folder),
        )


def gone_of(result: Candidate, folder: Path) -> str | None:
    """The path of a candidate's list of removed records, if it has one."""
    names = [file.name for file in result.files if file.role is FileRole.GONE]
    return str(folder / names[0]) if names else None
