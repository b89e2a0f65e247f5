"""The names of coordinate reference systems, out of the ways in which formats state them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ploti.errors import SourceError

CRS84 = "OGC:CRS84"

_WEB_MERCATOR = {"102100", "102113", "900913", "3785"}
_AUTHORITY = re.compile(r'(?:AUTHORITY|ID)\["([^"]+)",\s*"?([^"\],]+)"?[^\[\]]*\]\s*\]\s*$')


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
    """The name at the end of a WKT text, or of `EPSG:4326`; raises SourceError for none."""
    if not text:
        raise SourceError("the source does not say its reference system")
    if found := re.fullmatch(r"(\w+):(\w+)", text.strip()):
        return from_code(found[1], found[2])
    if found := _AUTHORITY.search(text):
        return from_code(found[1], found[2])
    quoted = re.search(r'"([^"]*)"', text)
    name = quoted[1] if quoted else text[:40]
    raise SourceError(f"the source's reference system ({name}) has no EPSG number")
