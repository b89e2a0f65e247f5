"""Reading one file and looking at what came out, as DuckDB sees it."""

from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import msgspec

from ploti.server.ports.building import Reader
from ploti.server.sources.declaration import Declaration, parse_declaration
from ploti.server.sources.raw import RawTable
from ploti.server.sources.source import Source

CASES = Path(__file__).parents[2] / "data" / "cases"


class Read(NamedTuple):
    """What a reader gave: its table, and the rows by the source's names (geometry: `geometry`)."""

    table: RawTable
    rows: list[dict[str, Any]]

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]

    def kind(self, name: str) -> str:
        return next(str(c.kind) for c in self.table.columns if c.source_name == name)

    def type(self, name: str) -> str | None:
        return next(c.type for c in self.table.columns if c.source_name == name)

    @property
    def names(self) -> list[str]:
        return [column.source_name for column in self.table.columns]


def declare(*, source: dict[str, Any] | None = None, **settings: object) -> Declaration:
    plain = parse_declaration({"id": "ds_a", "title": "A", "place": "us", "topic": "a", **settings})
    return msgspec.structs.replace(plain, source=Source(**(source or {})))


def read(reader: Reader, path: Path | str, folder: Path, **settings: Any) -> Read:
    table = reader.read(str(path), declaration=declare(**settings), folder=str(folder))
    fields = [(column.source_name, column.field) for column in table.columns]
    if table.geometry:
        fields.append(("geometry", table.geometry.field))
    listed = ", ".join(f'"{field}"' for _, field in fields)
    found = duckdb.sql(f"SELECT {listed} FROM {table.relation}")
    assert set(map(str, found.types)) <= {"VARCHAR", "BLOB"}
    names = [name for name, _ in fields]
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    assert table.rows == len(rows)
    return Read(table, rows)
