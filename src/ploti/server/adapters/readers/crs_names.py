"""The coordinate reference systems of sources, out of the ways in which formats state them.

Names that are known go by themselves; for others PROJ is asked, and loaded only then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ploti.errors import SourceError

CRS84 = "OGC:CRS84"

_WEB_MERCATOR = {"102100", "102113", "900913", "3785"}
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
    from ploti.server.adapters.readers import crs_of_proj  # noqa: PLC0415 - as is said above

    found = crs_of_proj.by_code(name, number)
    if found is None:
        raise SourceError(
            f"the source's reference system {authority}:{code} is not known: where that is a"
            " mistake, mend it in the source"
        )
    return found


def from_projjson(crs: object) -> str:
    """The name of a PROJJSON object, or the system in full; raises SourceError where it is none."""
    match crs:
        case {"id": {"authority": str(authority), "code": str() | int() as code}}:
            return from_code(authority, code)
        case str(text) if ":" in text:
            authority, _, code = text.rpartition(":")
            return from_code(authority, code)
        case Mapping():
            from ploti.server.adapters.readers import crs_of_proj  # noqa: PLC0415

            found = crs_of_proj.by_projjson(dict(crs))
            if found is None:
                name = crs.get("name", "without a name")
                raise SourceError(f"the source's reference system ({name}) is unknown")
            return found
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
    from ploti.server.adapters.readers import crs_of_proj  # noqa: PLC0415

    system = crs_of_proj.by_wkt(text)
    if system is None:
        raise SourceError(f"the reference system cannot be read: {text[:60]}")
    return system
