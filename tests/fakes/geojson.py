"""GeoJSON texts read by the reader, and what it made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from ploti.server.adapters.readers.geojson import GeoJsonReader
from ploti.server.sources.declaration import Declaration, parse_declaration
from ploti.server.sources.raw import RawTable

LEAST: dict[str, object] = {"id": "ds_a", "title": "A", "place": "us", "topic": "roads"}


class Read(NamedTuple):
    """A table as read, with its rows by the names of the source."""

    table: RawTable
    rows: list[dict[str, str | None]]
    geometries: list[bytes | None]

    @property
    def kinds(self) -> dict[str, str]:
        return {column.source_name: str(column.kind) for column in self.table.columns}

    @property
    def findings(self) -> dict[str, int]:
        return {
            finding.kind: int(finding.message.split()[0].replace(",", ""))
            for finding in self.table.findings
        }


def feature(geometry: object = None, **members: Any) -> dict[str, Any]:
    """A feature; `properties` are the members unless they are given as such."""
    return {"type": "Feature", "properties": {}, "geometry": geometry} | members


def collection(*features: dict[str, Any], **members: Any) -> bytes:
    """A FeatureCollection's text."""
    whole = {"type": "FeatureCollection"} | members | {"features": list(features)}
    return json.dumps(whole).encode()


def read(text: bytes, folder: Path, **settings: Any) -> Read:
    """What the reader makes of a text under a declaration with these settings."""
    declaration: Declaration = parse_declaration(LEAST | settings)
    path = folder / "source.geojson"
    path.write_bytes(text)
    table = GeoJsonReader().read(str(path), declaration=declaration, folder=str(folder))
    fields = ["geometry", *(column.field for column in table.columns)]
    found = duckdb.sql(f"SELECT {', '.join(fields)} FROM {table.relation}").fetchall()
    names = [column.source_name for column in table.columns]
    rows = [dict(zip(names, row[1:], strict=True)) for row in found]
    return Read(table, rows, [row[0] for row in found])
