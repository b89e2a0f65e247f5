"""The names of coordinate reference systems that only PROJ knows or can tell.

A name is EPSG's number, `EPSG:n`, or the system in full where none gives the same coordinates. All
raise SourceError for a system that is no place on the earth, and give None for what is not known.
"""

from __future__ import annotations

import pyproj
from pyproj.exceptions import CRSError

from ploti.errors import SourceError

_SURE = 90
"""Percent: what PROJ gives to a system whose name and parameters are EPSG's."""


def by_code(authority: str, code: str) -> str | None:
    """The name of an authority's system."""
    try:
        return _named(pyproj.CRS.from_authority(authority, code))
    except CRSError:
        return None


def by_projjson(crs: dict[str, object]) -> str | None:
    """The name of a system given as a PROJJSON object."""
    try:
        return _named(pyproj.CRS.from_json_dict(crs))
    except CRSError:
        return None


def by_wkt(text: str) -> str | None:
    """The name of a system given as WKT of any dialect."""
    try:
        return _named(pyproj.CRS.from_wkt(text))
    except CRSError:
        return None


def _named(crs: pyproj.CRS) -> str:
    """The horizontal part of a system: by EPSG's number, or as WKT."""
    flat = crs.sub_crs_list[0] if crs.is_compound else crs.to_2d()
    if not (flat.is_geographic or flat.is_projected or flat.is_bound):
        raise SourceError(f"the source's reference system ({crs.name}) is no place on the earth")
    for confidence in (100, 70, 25):
        code = flat.to_epsg(min_confidence=confidence)
        if code and (confidence > _SURE or _agree(flat, pyproj.CRS.from_epsg(code))):
            return f"EPSG:{code}"
    return flat.to_wkt()


def _agree(one: pyproj.CRS, other: pyproj.CRS) -> bool:
    """Whether points where the other is used have the same coordinates in both.

    Esri writes parameters with other digits than EPSG, so that they never are equal as texts.
    """
    area = other.area_of_use
    if area is None:
        return False
    degrees = other.geodetic_crs
    there = pyproj.Transformer.from_crs(degrees, other, always_xy=True)
    across = pyproj.Transformer.from_crs(one, other, always_xy=True)
    step = 1e-9 if other.is_geographic else 1e-3
    for share in (0.25, 0.5, 0.75):
        longitude = area.west + share * (area.east - area.west)
        point = there.transform(longitude, area.south + share * (area.north - area.south))
        moved = across.transform(*point)
        if not all(abs(a - b) <= step for a, b in zip(point, moved, strict=True)):
            return False
    return True
