"""The changes of a version as finished JSON, a line for each record."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ploti.model.columns import CHANGE, OP, RECORD_ID
from ploti.model.schema import Schema

_Write = Callable[[Any], str]


def write_lines(changes: Path, path: Path, *, schema: Schema) -> None:
    """Write each row of a changes file as `{"op", "change", "recordId", "record"}`."""
    writers = {column.name: _writer(column.type) for column in schema.columns}
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for batch in pq.ParquetFile(changes, pre_buffer=False).iter_batches(1_000):
            for row in batch.to_pylist():
                file.write(_line(row, writers) + "\n")


def _writer(type_: str) -> _Write:
    return _WRITERS.get(type_.partition("(")[0], _plain)


def _line(row: dict[str, object], writers: dict[str, _Write]) -> str:
    envelope = f'"op":{_plain(row[OP])},"change":{_plain(row[CHANGE])}'
    record = "null" if row[OP] == "delete" else _record(row, writers)
    return f'{{{envelope},"recordId":{_plain(row[RECORD_ID])},"record":{record}}}'


def _record(row: dict[str, object], writers: dict[str, _Write]) -> str:
    members = (
        f"{_plain(name)}:{'null' if row[name] is None else write(row[name])}"
        for name, write in writers.items()
    )
    return "{" + ",".join(members) + "}"


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _float(value: object) -> str:
    text = repr(value)
    return {"inf": '"Infinity"', "-inf": '"-Infinity"'}.get(text, text)


def _moment(value: datetime) -> str:
    digits = "microseconds" if value.microsecond % 1000 else "milliseconds"
    local = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return f'"{local.isoformat(timespec=digits)}{"Z" if value.tzinfo else ""}"'


def _geometry(value: bytes) -> str:
    import shapely  # noqa: PLC0415 - no build without a geometry waits for it

    return str(shapely.to_geojson(shapely.from_wkb(value)))


_WRITERS: dict[str, _Write] = {
    "json": str,
    "decimal": lambda value: f"{value:f}",
    "float64": _float,
    "timestamp": _moment,
    "datetime": _moment,
    "date": lambda value: f'"{value}"',
    "geometry": _geometry,
}
