"""What was set right while reading, counted, so that nothing is mended without a word."""

from __future__ import annotations

from enum import StrEnum

from ploti.model.admin import Finding

_EXAMPLES = 5


class Remark(StrEnum):
    """A kind of mending, as a finding names it."""

    NUL_REMOVED = "nul_removed"
    SURROGATE_REPLACED = "surrogate_replaced"
    NOT_A_NUMBER = "not_a_number"
    RING_CLOSED = "ring_closed"
    NUMBERS_DROPPED = "numbers_dropped"
    NO_COORDINATES = "no_coordinates"
    MEMBER_LEFT_OUT = "member_left_out"
    FEATURE_ID_LEFT_OUT = "feature_id_left_out"
    MEMBER_REPEATED = "member_repeated"
    HALF_A_PLACE = "half_a_place"
    ARC_DRAWN = "arc_drawn"
    SURFACE_PARTED = "surface_parted"
    HEIGHTS_DROPPED = "heights_dropped"
    FIELD_TYPE_UNKNOWN = "field_type_unknown"


_MESSAGES = {
    Remark.NUL_REMOVED: "NUL characters were taken out of texts",
    Remark.SURROGATE_REPLACED: "halves of surrogate pairs in texts became U+FFFD",
    Remark.NOT_A_NUMBER: "numbers written NaN or Infinity, which JSON has not, became null",
    Remark.RING_CLOSED: "rings of polygons were open and were closed",
    Remark.NUMBERS_DROPPED: "geometries had positions of more than three numbers: three were kept",
    Remark.NO_COORDINATES: "geometries had null for coordinates and became null",
    Remark.MEMBER_LEFT_OUT: "features had members beside their properties, which were left out",
    Remark.FEATURE_ID_LEFT_OUT: "features had an id other than their property 'id', which was kept",
    Remark.MEMBER_REPEATED: "objects had a member more than once, of which the last was kept",
    Remark.HALF_A_PLACE: "places had no coordinates, or one alone, and got no geometry",
    Remark.ARC_DRAWN: "geometries had arcs, which were drawn as short lines",
    Remark.SURFACE_PARTED: "geometries were surfaces, and became the polygons that make them up",
    Remark.HEIGHTS_DROPPED: (
        "geometries had Z or M at some positions only, or more than the layer says: left out"
    ),
    Remark.FIELD_TYPE_UNKNOWN: "columns are of a type that is not known and were kept as text",
}


class Remarks:
    """Counts remarks, and keeps the places of a few of each."""

    def __init__(self) -> None:
        self._counts: dict[Remark, int] = {}
        self._places: dict[Remark, list[str]] = {}

    def add(self, remark: Remark, *, place: str, times: int = 1) -> None:
        """Count what was mended at a place."""
        self._counts[remark] = self._counts.get(remark, 0) + times
        places = self._places.setdefault(remark, [])
        if len(places) < _EXAMPLES and place not in places:
            places.append(place)

    def drop(self, remark: Remark) -> None:
        """Forget a kind that turned out to be none."""
        self._counts.pop(remark, None)

    def findings(self) -> list[Finding]:
        """One finding for each kind, none of which holds a version."""
        return [
            Finding(
                reason=None,
                kind=str(remark),
                message=f"{count:,} {_MESSAGES[remark]}",
                examples=self._places[remark],
            )
            for remark, count in sorted(self._counts.items())
        ]
