"""What a Parquet file says of its geometry: GeoParquet's `geo` text, or Parquet's own type."""

from __future__ import annotations

import msgspec
import pyarrow.parquet as pq

from ploti.errors import SourceError
from ploti.model.wire import Value
from ploti.server.adapters.readers.crs_names import CRS84, from_projjson, from_wkt

_UNSTATED = "unstated"


class _Column(msgspec.Struct):
    encoding: str = "WKB"
    geometry_types: list[str] = []
    crs: object = _UNSTATED
    covering: dict[str, dict[str, list[str]]] = {}


class _Geo(msgspec.Struct):
    primary_column: str
    columns: dict[str, _Column]


class ParquetGeometry(Value, kw_only=True):
    """A file's geometry column, its CRS if it is known, the types that it states, and what belongs.

    `covering` names the columns that only repeat the geometry's box; `others` are further columns
    of WKB.
    """

    column: str
    crs: str | None
    types: list[str]
    covering: frozenset[str]
    others: frozenset[str]


def parquet_geometry(file: pq.ParquetFile) -> ParquetGeometry | None:
    """The geometry that a file states; None where it is plain Parquet.

    A `crs` that is left out means longitude and latitude, one that is null is unknown. Raises
    SourceError where the statement is broken, unknown, or names no column of the file.
    """
    text = (file.metadata.metadata or {}).get(b"geo")
    if text is None:
        return _native(file)
    try:
        geo = msgspec.json.decode(text, type=_Geo)
        primary = geo.columns[geo.primary_column]
    except (msgspec.DecodeError, KeyError) as error:
        raise SourceError(f"the file's GeoParquet metadata cannot be read: {error}") from None
    if geo.primary_column not in file.schema_arrow.names:
        raise SourceError(f"the file has no column '{geo.primary_column}' for its geometry")
    if primary.encoding != "WKB":
        raise SourceError(f"the geometry is encoded as '{primary.encoding}': only WKB is read")
    return ParquetGeometry(
        column=geo.primary_column,
        crs=_crs(primary.crs),
        types=sorted(primary.geometry_types),
        covering=frozenset(
            path[0] for column in geo.columns.values() for path in _paths(column.covering)
        ),
        others=frozenset(geo.columns) - {geo.primary_column},
    )


def _crs(stated: object) -> str | None:
    if stated == _UNSTATED:
        return CRS84
    if stated is None:
        return None
    return from_projjson(stated)


def _paths(covering: dict[str, dict[str, list[str]]]) -> list[list[str]]:
    return [path for path in covering.get("bbox", {}).values() if len(path) > 1]


def _native(file: pq.ParquetFile) -> ParquetGeometry | None:
    """Parquet's own type, of which the first column is the geometry."""
    found: dict[str, str] = {}
    for number in range(len(file.schema)):
        column = file.schema.column(number)
        stated = msgspec.json.decode(column.logical_type.to_json())
        if stated.get("Type") in {"Geometry", "Geography"} and column.path == column.name:
            found[column.name] = stated.get("crs", "")
    if not found:
        return None
    name, *others = found
    return ParquetGeometry(
        column=name,
        crs=_native_crs(found[name], file),
        types=[],
        covering=frozenset(),
        others=frozenset(others),
    )


def _native_crs(stated: str, file: pq.ParquetFile) -> str | None:
    """None means longitude and latitude; `projjson:key` refers to the file's metadata."""
    if not stated:
        return CRS84
    kind, _, rest = stated.partition(":")
    if kind == "projjson":
        stated = (file.metadata.metadata or {}).get(rest.encode(), b"").decode("utf-8", "replace")
    if stated.startswith("{"):
        try:
            return from_projjson(msgspec.json.decode(stated))
        except msgspec.DecodeError as error:
            raise SourceError(f"the reference system cannot be read: {error}") from None
    return from_wkt(stated)
