"""What a snapshot's own metadata tells of it: how full its columns are, and its box."""

from __future__ import annotations

from collections.abc import Sequence

from ploti.model.sql import literal
from ploti.model.wire import Value
from ploti.server.build.names import GEOMETRY

_BOX = tuple(f"_ploti_bbox, {side}" for side in ("xmin", "ymin", "xmax", "ymax"))
_PLACES = (0, 0, 1, 1)


class Measures(Value, kw_only=True):
    """Rows, how many values of each column are not null, and the box (least x and y, greatest).

    A column of which the metadata says nothing is left out; so is the box of no geometry. An empty
    geometry has no place, and counts as none.
    """

    rows: int
    filled: dict[str, int]
    box: tuple[float, float, float, float] | None


def measures_sql(path: str) -> str:
    """SQL of a row a column: its path, values, nulls, least and greatest as a number."""
    return (
        "SELECT path_in_schema, sum(num_values)::BIGINT, sum(stats_null_count)::BIGINT,"
        " min(TRY_CAST(stats_min_value AS DOUBLE)), max(TRY_CAST(stats_max_value AS DOUBLE))"
        f" FROM parquet_metadata({literal(path)}) GROUP BY path_in_schema"
    )


def read_measures(found: Sequence[tuple[object, ...]], *, rows: int) -> Measures:
    """The measures out of what `measures_sql` gave."""
    filled: dict[str, int] = {}
    sides: dict[str, tuple[object, object]] = {}
    for name, values, nulls, least, greatest in found:
        if name in _BOX:
            sides[str(name)] = (least, greatest)
        if isinstance(values, int) and isinstance(nulls, int):
            filled[str(name)] = values - nulls
    places = [filled.pop(side) for side in _BOX if side in filled]
    if places:
        filled[GEOMETRY] = min(places)
    return Measures(rows=rows, filled=filled, box=_box(sides))


def _box(
    sides: dict[str, tuple[object, object]],
) -> tuple[float, float, float, float] | None:
    found = [
        sides.get(name, (None, None))[place] for name, place in zip(_BOX, _PLACES, strict=True)
    ]
    left, low, right, high = (each if isinstance(each, float) else None for each in found)
    if left is None or low is None or right is None or high is None:
        return None
    return left, low, right, high
