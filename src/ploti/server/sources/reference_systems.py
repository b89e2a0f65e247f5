"""Coordinate reference systems by the names that EPSG gives them, as a dataset may have them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

DEGREES = "EPSG:4326"
_LONGITUDE_FIRST = {"OGC:CRS84": DEGREES, "CRS84": DEGREES}
"""Names of degrees that tell the order of the axes, which in files always is x, y."""

IN_DEGREES = 1e-9
IN_METRES = 1e-4
"""The precision of coordinates, where the declaration has none."""


class _System(NamedTuple):
    """What is asked of a system; `half_turn` is 180 degrees in its unit, if it has one."""

    title: str
    on_map: bool
    half_turn: float | None


_DEGREES = _System("WGS 84", on_map=True, half_turn=180.0)
"""The system that most datasets are in: no build of theirs waits until PROJ is loaded."""


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
    system = _known(name)
    if system is None:
        raise ValueError(f"{name} is not a known reference system")
    if not system.on_map:
        raise ValueError(f"{name} ({system.title}) is not a system of two coordinates on a map")
    return name


def usual_precision(name: str) -> float:
    """To what coordinates in a dataset's system are rounded, unless the declaration says it."""
    system = _known(name)
    return IN_DEGREES if system is None or system.half_turn else IN_METRES


def turns(name: str) -> tuple[float, float] | None:
    """The greatest longitude and latitude of a geographic system, in its unit: 180 and 90 degrees.

    None for a projected one, and one that is not known.
    """
    system = _known(name)
    if system is None or system.half_turn is None:
        return None
    return system.half_turn, system.half_turn / 2


@lru_cache(maxsize=64)
def _known(name: str) -> _System | None:
    return _DEGREES if name == DEGREES else _of_proj(name)


def _of_proj(name: str) -> _System | None:
    import pyproj  # noqa: PLC0415 - as is said above

    try:
        crs = pyproj.CRS.from_user_input(name)
    except pyproj.exceptions.CRSError:
        return None
    half_turn = None
    if crs.is_geographic:
        half_turn = round(math.pi / crs.axis_info[0].unit_conversion_factor, 6)
    on_map = (crs.is_geographic or crs.is_projected) and len(crs.axis_info) == 2
    return _System(crs.name, on_map=on_map, half_turn=half_turn)
