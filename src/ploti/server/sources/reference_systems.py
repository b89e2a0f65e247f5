"""Coordinate reference systems by the names that EPSG gives them, as a dataset may have them."""

from __future__ import annotations

import math
from functools import lru_cache

import pyproj
from pyproj.exceptions import CRSError

DEGREES = "EPSG:4326"
_LONGITUDE_FIRST = {"OGC:CRS84": DEGREES, "CRS84": DEGREES}
"""Names of degrees that tell the order of the axes, which in files always is x, y."""

IN_DEGREES = 1e-9
IN_METRES = 1e-4
"""The precision of coordinates, where the declaration has none."""


def one_name(name: str) -> str:
    """The name itself, or the one by which the same system is known here."""
    return _LONGITUDE_FIRST.get(name, name)


def dataset_system(text: str) -> str:
    """The name of a system that a dataset's geometry may be in: `EPSG:2236`.

    Raises ValueError with the reason, for one that is not known and for one that is not in two
    dimensions.
    """
    name = one_name(text.strip().upper())
    authority, _, code = name.partition(":")
    if authority != "EPSG" or not code.isdecimal():
        raise ValueError(f"'{text}' is not the name of a reference system, such as {DEGREES}")
    crs = _known(name)
    if crs is None:
        raise ValueError(f"{name} is not a known reference system")
    if not (crs.is_geographic or crs.is_projected) or len(crs.axis_info) != 2:
        raise ValueError(f"{name} ({crs.name}) is not a system of two coordinates on a map")
    return name


def usual_precision(name: str) -> float:
    """To what coordinates in a dataset's system are rounded, unless the declaration says it."""
    crs = _known(name)
    return IN_DEGREES if crs is None or crs.is_geographic else IN_METRES


def turns(name: str) -> tuple[float, float] | None:
    """The greatest longitude and latitude of a geographic system, in its unit: 180 and 90 degrees.

    None for a projected one, and one that is not known.
    """
    crs = _known(name)
    if crs is None or not crs.is_geographic:
        return None
    half = round(math.pi / crs.axis_info[0].unit_conversion_factor, 6)
    return half, half / 2


@lru_cache(maxsize=64)
def _known(name: str) -> pyproj.CRS | None:
    try:
        return pyproj.CRS.from_user_input(name)
    except CRSError:
        return None
