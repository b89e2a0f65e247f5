"""Stage: geometries that no place on the earth can have, by the boxes in a version's snapshot."""

from __future__ import annotations

from ploti.model.admin import Finding
from ploti.model.columns import BBOX
from ploti.model.schema import Geometry
from ploti.model.sql import literal
from ploti.server.build.diff import Box
from ploti.server.sources.reference_systems import turns

_EXAMPLES = 3
_DIGITS = 4
"""What the boxes' single precision is good for."""


def outside_sql(snapshot: str, geometry: Geometry, *, box: Box | None) -> str | None:
    """SQL of the geometries past the ends of longitude or latitude: how many, and some boxes.

    None where the system is no geographic one, whose coordinates have no such ends, or where the
    `box` of all of them has none of it outside.
    """
    ends = turns(geometry.crs)
    if ends is None:
        return None
    x, y = ends
    if box and -x <= box[0] and box[2] <= x and -y <= box[1] and box[3] <= y:
        return None
    low, high = _corner("xmin", "ymin"), _corner("xmax", "ymax")
    shown = f"CASE WHEN {low} = {high} THEN {low} ELSE {low} || ' to ' || {high} END"
    return (
        f"SELECT count(*), min({shown}, {_EXAMPLES}) FROM read_parquet({literal(snapshot)})"
        f" WHERE {BBOX}.xmin < -{x} OR {BBOX}.xmax > {x} OR {BBOX}.ymin < -{y} OR {BBOX}.ymax > {y}"
    )


def _corner(x: str, y: str) -> str:
    """SQL of one corner of a box as text."""
    at = [f"round({BBOX}.{side}::DOUBLE, {_DIGITS})" for side in (x, y)]
    return f"format('({{}}, {{}})', {', '.join(at)})"


def outside_findings(count: int, boxes: list[str], geometry: Geometry) -> list[Finding]:
    """What the row of `outside_sql` tells."""
    if not count:
        return []
    message = (
        f"geometries lie outside the longitudes or latitudes of {geometry.crs}: {count} of them"
    )
    return [Finding(reason=None, kind="outside", message=message, examples=boxes)]
