"""The SQL functions that DuckDB lacks, over whole vectors: points, canonical forms, places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from duckdb.sqltypes import BIGINT, BLOB, DOUBLE, UBIGINT, VARCHAR, DuckDBPyType

from ploti.server.adapters.engine import hilbert, wkb
from ploti.server.adapters.engine.arrow import Column, Doubles, all_finite, whole
from ploti.server.adapters.engine.canonical_json import canonical_json


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the functions of the `Engine` port known to a connection and its cursors."""
    hashes = connection.list_type(UBIGINT)  # of the module it would open a database of its own
    functions: list[tuple[str, Callable[..., Any], list[Any], DuckDBPyType]] = [
        ("ploti_point", _point, [DOUBLE, DOUBLE, DOUBLE], BLOB),
        ("ploti_geometry", _geometry, [BLOB, DOUBLE], BLOB),
        ("ploti_moved", _moved, [BLOB, VARCHAR, VARCHAR], BLOB),
        ("ploti_place", _place, [BLOB, DOUBLE, DOUBLE, DOUBLE, DOUBLE], BIGINT),
        ("ploti_json", _json, [VARCHAR], VARCHAR),
        ("ploti_repeated", _repeated, [hashes], hashes),
    ]
    for name, function, parameters, result in functions:
        connection.create_function(
            name,
            function,
            parameters,
            result,
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )


def _doubles(column: Column) -> Doubles:
    """Values as doubles, null as NaN."""
    values: Doubles = whole(column).to_numpy(zero_copy_only=False)
    return values


def _point(x: Column, y: Column, precision: Column) -> Column:
    coordinates = np.column_stack([_doubles(x), _doubles(y)])
    valid = all_finite(coordinates)
    known = coordinates if valid.all() else coordinates[valid]
    rounded = wkb.round_coordinates(known, precision[0].as_py())
    return wkb.make_points(rounded, valid)


def _geometry(column: Column, precision: Column) -> Column:
    return wkb.canonical_wkb(whole(column), precision[0].as_py())


def _moved(column: Column, source: Column, target: Column) -> Column:
    from ploti.server.adapters.engine import moving  # noqa: PLC0415 - loads PROJ

    return moving.moved(whole(column), source=source[0].as_py(), target=target[0].as_py())


def _place(column: Column, left: Column, low: Column, right: Column, high: Column) -> Column:
    box = (left[0].as_py(), low[0].as_py(), right[0].as_py(), high[0].as_py())
    places = hilbert.places(whole(column), box)
    return pa.array(places, mask=places == hilbert.LAST)


def _json(column: Column) -> Column:
    texts = whole(column).to_pylist()
    return pa.array([None if text is None else canonical_json(text) for text in texts], pa.string())


def _repeated(column: Column) -> Column:
    again = [
        _after_itself(hashes.values.to_numpy()) if hashes.is_valid else None
        for hashes in whole(column)
    ]
    return pa.array(again, pa.list_(pa.uint64()))


def _after_itself(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each hash as often as it comes again."""
    ordered = np.sort(hashes)
    again: npt.NDArray[np.uint64] = ordered[1:][ordered[1:] == ordered[:-1]]
    return again
