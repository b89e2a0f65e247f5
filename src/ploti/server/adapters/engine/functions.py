"""The SQL functions that DuckDB lacks, over whole vectors: points, canonical forms, places."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.sqltypes import BIGINT, BLOB, DOUBLE, VARCHAR, DuckDBPyType

from ploti.server.adapters.engine import hilbert, wkb
from ploti.server.adapters.engine.canonical_json import canonical_json


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the functions of the `Engine` port known to a connection and its cursors."""
    functions: list[tuple[str, object, list[DuckDBPyType], DuckDBPyType]] = [
        ("ploti_point", _point, [DOUBLE, DOUBLE, DOUBLE], BLOB),
        ("ploti_geometry", _geometry, [BLOB, DOUBLE], BLOB),
        ("ploti_place", _place, [BLOB, DOUBLE, DOUBLE, DOUBLE, DOUBLE], BIGINT),
        ("ploti_json", _json, [VARCHAR], VARCHAR),
    ]
    for name, function, parameters, result in functions:
        connection.create_function(
            name, function, parameters, result, type="arrow", null_handling="special"
        )


def _doubles(column: pa.Array) -> wkb.Doubles:
    """Values as doubles, null as NaN."""
    values: wkb.Doubles = pa.compute.fill_null(_whole(column), np.nan).to_numpy()
    return values


def _whole(column: pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _point(x: pa.Array, y: pa.Array, precision: pa.Array) -> pa.Array:
    coordinates = np.column_stack([_doubles(x), _doubles(y)])
    valid = np.isfinite(coordinates).all(axis=1)
    rounded = wkb.round_coordinates(coordinates[valid], precision[0].as_py())
    return wkb.make_points(rounded, valid)


def _geometry(column: pa.Array, precision: pa.Array) -> pa.Array:
    return wkb.canonical_wkb(_whole(column), precision[0].as_py())


def _place(
    column: pa.Array, left: pa.Array, low: pa.Array, right: pa.Array, high: pa.Array
) -> pa.Array:
    box = (left[0].as_py(), low[0].as_py(), right[0].as_py(), high[0].as_py())
    middles = wkb.centres(_whole(column))
    places = np.zeros(len(column), np.int64)
    places[middles.known] = hilbert.place(middles.values, box)
    return pa.array(places, mask=~middles.known)


def _json(column: pa.Array) -> pa.Array:
    texts = _whole(column).to_pylist()
    return pa.array([text and canonical_json(text) for text in texts], pa.string())
