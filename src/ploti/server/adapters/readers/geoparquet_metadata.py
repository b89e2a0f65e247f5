"""What a Parquet file says of its geometry: GeoParquet's `geo` text, or Parquet's own type."""

from __future__ import annotations

import msgspec
import pyarrow.parquet as pq

from ploti.errors import SourceError
from ploti.model.wire import Value
from ploti.server.adapters.readers.crs_names import CRS84, from_projjson, from_wkt
from ploti.server.adapters.readers.geoarrow import ENCODINGS

_UNSTATED = "unstated"
_WKB = "WKB"
_ENCODINGS = {_WKB, *ENCODINGS}
_EXTENSION = b"ARROW:extension:name"
_OF_EXTENSION = b"ARROW:extension:metadata"
_GEOARROW = "geoarrow."


class _Column(msgspec.Struct):
    encoding: str = _WKB
    geometry_types: list[str] = []
    crs: object = _UNSTATED
    covering: dict[str, dict[str, list[str]]] = {}


class _Geo(msgspec.Struct):
    primary_column: str
    columns: dict[str, _Column]


class ParquetGeometry(Value, kw_only=True):
    """A file's geometry column, its CRS if it is known, the types that it states, and what belongs.

    `encoding` is WKB or one of `geoarrow`'s. `covering` names the columns that only repeat the
    geometry's box; `others` are further columns of geometry.
    """

    column: str
    encoding: str = _WKB
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
        return _native(file) or _arrow(file)
    try:
        geo = msgspec.json.decode(text, type=_Geo)
        primary = geo.columns[geo.primary_column]
    except (msgspec.DecodeError, KeyError) as error:
        raise SourceError(f"the file's GeoParquet metadata cannot be read: {error}") from None
    if geo.primary_column not in file.schema_arrow.names:
        raise SourceError(f"the file has no column '{geo.primary_column}' for its geometry")
    if primary.encoding not in _ENCODINGS:
        raise SourceError(f"the geometry is encoded as '{primary.encoding}', which is not read")
    return ParquetGeometry(
        column=geo.primary_column,
        encoding=primary.encoding,
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


def _arrow(file: pq.ParquetFile) -> ParquetGeometry | None:
    """Columns that GeoArrow's names of types mark, of which the first is the geometry."""
    found: dict[str, str] = {}
    for field in file.schema_arrow:
        name = (field.metadata or {}).get(_EXTENSION, b"").decode("utf-8", "replace")
        encoding = name.removeprefix(_GEOARROW).replace("wkb", _WKB)
        if name.startswith(_GEOARROW) and encoding in _ENCODINGS:
            found[field.name] = encoding
    if not found:
        return None
    name, *others = found
    return ParquetGeometry(
        column=name,
        encoding=found[name],
        crs=_arrow_crs((file.schema_arrow.field(name).metadata or {}).get(_OF_EXTENSION, b"{}")),
        types=[],
        covering=frozenset(),
        others=frozenset(others),
    )


def _arrow_crs(told: bytes) -> str | None:
    """PROJJSON, or a text; one that is left out or null is unknown."""
    try:
        crs = msgspec.json.decode(told or b"{}", type=dict[str, object]).get("crs")
    except msgspec.DecodeError as error:
        raise SourceError(f"the reference system cannot be read: {error}") from None
    match crs:
        case None:
            return None
        case str():
            return from_wkt(crs)
        case _:
            return from_projjson(crs)
