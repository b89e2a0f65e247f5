"""GeoParquet 1.1's own metadata: what the geometry column is and where it lies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from ploti.errors import SourceError
from ploti.model.columns import BBOX
from ploti.model.schema import Geometry
from ploti.server.adapters.engine import wkb
from ploti.server.adapters.engine.arrow import Column, Doubles, is_there

_DEFAULT_CRS = "OGC:CRS84"
_DEGREES = "EPSG:4326"
"""The system that most datasets are in: `degrees.json` has it as PROJ, which is not loaded then."""

_SIDES = ("xmin", "ymin", "xmax", "ymax")


class Extent:
    """The geometry types and the exact box of all rows that were looked at."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._boxes: list[Doubles] = []

    def add(self, geometry: Column, boxes: pa.StructArray) -> None:
        """Take in rows; only those at the edge of the single-precision box are read exactly."""
        self.kinds |= wkb.kinds(geometry)
        sides = [boxes.field(side).to_numpy(zero_copy_only=False) for side in range(4)]
        known = is_there(boxes.field(0))
        if not known.any():
            return
        edge = np.zeros(len(known), np.bool_)
        for side, values in enumerate(sides):
            extreme = np.nanmin(values[known]) if side < 2 else np.nanmax(values[known])
            edge |= known & (values == extreme)
        self._boxes.append(wkb.boxes(geometry.filter(pa.array(edge))))

    @property
    def box(self) -> list[float] | None:
        """Least x, y, greatest x, y; None where no row has a place."""
        if not self._boxes:
            return None
        found = np.vstack(self._boxes)
        return [*np.min(found[:, :2], axis=0).tolist(), *np.max(found[:, 2:], axis=0).tolist()]


def geo_metadata(geometry: Geometry, extent: Extent) -> str:
    """The value of the file's `geo` key; raises SourceError for a CRS that is not known."""
    kinds = sorted(extent.kinds)
    column: dict[str, object] = {
        "encoding": "WKB",
        # GeoParquet 1.1 has no names for measured types: an empty list says 'not stated'.
        "geometry_types": [] if any(kind.endswith("M") for kind in kinds) else kinds,
        "covering": {"bbox": {side: [BBOX, side] for side in _SIDES}},
    }
    if geometry.crs != _DEFAULT_CRS:
        column["crs"] = projjson(geometry.crs)
    if extent.box:
        column["bbox"] = extent.box
    said = {
        "version": "1.1.0",
        "primary_column": geometry.column,
        "columns": {geometry.column: column},
    }
    return json.dumps(said, allow_nan=False)


def projjson(crs: str) -> object:
    """A coordinate reference system as PROJJSON."""
    if crs == _DEGREES:
        found: object = json.loads(Path(__file__).with_name("degrees.json").read_bytes())
        return found
    import pyproj  # noqa: PLC0415 - as is said above

    try:
        return pyproj.CRS.from_user_input(crs).to_json_dict()
    except pyproj.exceptions.CRSError as error:
        raise SourceError(f"the coordinate reference system {crs} is not known") from error
