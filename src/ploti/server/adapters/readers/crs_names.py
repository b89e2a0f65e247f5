"""The names of coordinate reference systems, out of the ways in which formats state them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyproj
from pyproj.exceptions import CRSError

from ploti.errors import SourceError

CRS84 = "OGC:CRS84"

_WEB_MERCATOR = {"102100", "102113", "900913", "3785"}
_SURE = 90
"""Percent: what PROJ gives to a system whose name and parameters are EPSG's."""


def from_code(authority: str, code: object) -> str:
    """`EPSG:n` or `OGC:CRS84`; raises SourceError where the authority is another one.

    The numbers that Esri gave to EPSG:3857 before it had that one are known.
    """
    name, number = authority.strip().upper(), str(code).strip().upper()
    if name in {"ESRI", "EPSG"} and number in _WEB_MERCATOR:
        return "EPSG:3857"
    if name == "EPSG" and number.isdecimal() and int(number) > 0:
        return f"EPSG:{int(number)}"
    if name == "OGC" and number == "CRS84":
        return CRS84
    raise SourceError(
        f"the source's reference system {authority}:{code} is not known: write it as EPSG:n"
    )


def from_projjson(crs: object) -> str:
    """The name of a PROJJSON object; raises SourceError where it says none."""
    match crs:
        case {"id": {"authority": str(authority), "code": str() | int() as code}}:
            return from_code(authority, code)
        case str(text) if ":" in text:
            authority, _, code = text.rpartition(":")
            return from_code(authority, code)
        case Mapping():
            name = crs.get("name", "without a name")
            raise SourceError(f"the source's reference system ({name}) has no EPSG number")
        case _:
            raise SourceError("the source's reference system is not stated as PROJJSON")


def from_wkt(text: str | None) -> str:
    """The name of a system given as WKT of any dialect, or of `EPSG:4326` as it stands.

    Raises SourceError where it is not stated, or none of EPSG's gives the same coordinates.
    """
    if not text:
        raise SourceError("the source does not say its reference system")
    if found := re.fullmatch(r"(\w+):(\w+)", text.strip()):
        return from_code(found[1], found[2])
    try:
        crs = pyproj.CRS.from_wkt(text)
    except CRSError:
        raise SourceError(f"the reference system cannot be read: {text[:60]}") from None
    flat = crs.sub_crs_list[0] if crs.is_compound else crs
    for confidence in (100, 70, 25):
        code = flat.to_epsg(min_confidence=confidence)
        if code and (confidence > _SURE or _agree(flat, pyproj.CRS.from_epsg(code))):
            return f"EPSG:{code}"
    raise SourceError(f"the source's reference system ({crs.name}) has no EPSG number")


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
