"""The coordinate reference systems of sources, out of the ways in which formats state them."""

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

_NAMED = re.compile(r"(?P<authority>\w+):(?P<code>\w+)")
_LEGACY = re.compile(
    r"(?:urn:ogc:def:crs:|https?://www\.opengis\.net/def/crs/)"
    r"(?P<authority>\w+)[:/](?:[\w.]*)[:/](?P<code>\w+)",
    re.IGNORECASE,
)


def from_code(authority: str, code: object) -> str:
    """`EPSG:n`, `OGC:CRS84`, or another authority's system in full.

    The numbers that Esri gave to EPSG:3857 before it had that one are known. Raises SourceError
    for what is not.
    """
    name, number = authority.strip().upper(), str(code).strip().upper()
    if name in {"ESRI", "EPSG"} and number in _WEB_MERCATOR:
        return "EPSG:3857"
    if name == "OGC" and number == "CRS84":
        return CRS84
    try:
        crs = pyproj.CRS.from_authority(name, number)
    except CRSError:
        raise SourceError(
            f"the source's reference system {authority}:{code} is not known: where that is a"
            " mistake, mend it in the source"
        ) from None
    return _named(crs)


def from_projjson(crs: object) -> str:
    """The name of a PROJJSON object, or the system in full; raises SourceError where it is none."""
    match crs:
        case {"id": {"authority": str(authority), "code": str() | int() as code}}:
            return from_code(authority, code)
        case str(text) if ":" in text:
            authority, _, code = text.rpartition(":")
            return from_code(authority, code)
        case Mapping():
            try:
                return _named(pyproj.CRS.from_json_dict(dict(crs)))
            except CRSError:
                name = crs.get("name", "without a name")
                raise SourceError(f"the source's reference system ({name}) is unknown") from None
        case _:
            raise SourceError("the source's reference system is not stated as PROJJSON")


def from_geojson(member: object) -> str | None:
    """The system that a legacy `crs` member of GeoJSON names; None where it is null or absent.

    Positions are x, y whatever system it names. Raises SourceError where it names none.
    """
    match member:
        case None:
            return None
        case {"properties": {"name": str(name)}}:
            text = "OGC:CRS84" if name.strip().upper() == "CRS84" else name.strip()
            found = _LEGACY.fullmatch(text) or _NAMED.fullmatch(text)
            if found:
                return from_code(found["authority"], found["code"])
        case {"properties": {"code": str() | int() as code}}:
            return from_code("EPSG", code)
        case _:
            pass
    raise SourceError(f"the member 'crs' names no reference system: {str(member)[:200]}")


def from_wkt(text: str | None) -> str | None:
    """The name of a system given as WKT of any dialect, or of `EPSG:4326` as it stands.

    None where it is not stated; in full where none of EPSG's gives the same coordinates. Raises
    SourceError for what cannot be read.
    """
    if not text:
        return None
    if found := _NAMED.fullmatch(text.strip()):
        return from_code(found["authority"], found["code"])
    try:
        return _named(pyproj.CRS.from_wkt(text))
    except CRSError:
        raise SourceError(f"the reference system cannot be read: {text[:60]}") from None


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
