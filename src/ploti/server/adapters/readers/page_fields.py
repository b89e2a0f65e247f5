"""What the types of paged sources say of a column's values, by the source's own words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ploti.server.sources.pages import PageField, Pages
from ploti.server.sources.raw import RawKind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_FINITE = {"nan": "nan", "infinity": "inf", "-infinity": "-inf"}

Convert = Callable[[object], object]


class Stated(NamedTuple):
    """A column's kind and type, and how its values become the texts of that type."""

    kind: RawKind
    type: str | None = None
    convert: Convert | None = None


def _number(value: object) -> object:
    """Texts that stand for numbers that JSON has not, as DuckDB writes those."""
    return _NOT_FINITE.get(value.lower(), value) if isinstance(value, str) else value


def _instant(value: object) -> object:
    """Milliseconds since 1970 as an instant; what no calendar holds stays as it is."""
    moment = _moment(value)
    return value if moment is None else f"{moment}Z"


def _local(value: object) -> object:
    """Milliseconds since 1970 as a date-time of no zone."""
    moment = _moment(value)
    return value if moment is None else moment


def _moment(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        milliseconds = int(value) if isinstance(value, int) else int(float(value))
        at = _EPOCH + timedelta(milliseconds=milliseconds)
    except (ValueError, OverflowError):
        return None
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds")


_TEXT = Stated(RawKind.STRING, "string")
_WORDS = Stated(RawKind.STRING)
_WHOLE = Stated(RawKind.INTEGER, "int64")
_DOUBLE = Stated(RawKind.NUMBER, "float64", _number)
_SWITCH = Stated(RawKind.BOOLEAN, "boolean")
_DATE = Stated(RawKind.STRING, "date")
_LOCAL_TIME = Stated(RawKind.STRING, "datetime")
_TIME = Stated(RawKind.STRING, "timestamp")
_NESTED = Stated(RawKind.JSON, "json")

_ESRI = {
    "esriFieldTypeSmallInteger": _WHOLE,
    "esriFieldTypeInteger": _WHOLE,
    "esriFieldTypeBigInteger": _WHOLE,
    "esriFieldTypeOID": _WHOLE,
    "esriFieldTypeSingle": _DOUBLE,
    "esriFieldTypeDouble": _DOUBLE,
    "esriFieldTypeString": _TEXT,
    "esriFieldTypeDate": Stated(RawKind.STRING, "timestamp", _instant),
    "esriFieldTypeDateOnly": _DATE,
    "esriFieldTypeTimeOnly": _TEXT,
    "esriFieldTypeTimestampOffset": _TIME,
    "esriFieldTypeGUID": _TEXT,
    "esriFieldTypeGlobalID": _TEXT,
    "esriFieldTypeXML": _TEXT,
    "esriFieldTypeBlob": _TEXT,
    "esriFieldTypeRaster": _TEXT,
}
_SODA = {
    "text": _WORDS,
    **dict.fromkeys(("number", "double", "money", "percent"), _DOUBLE),
    "checkbox": _SWITCH,
    "calendar_date": _LOCAL_TIME,
    "floating_timestamp": _LOCAL_TIME,
    "fixed_timestamp": _TIME,
    "date": _TIME,
}
_CKAN = {
    "text": _WORDS,
    **dict.fromkeys(("int", "int2", "int4", "int8"), _WHOLE),
    **dict.fromkeys(("float4", "float8", "float", "numeric"), _DOUBLE),
    "bool": _SWITCH,
    "date": _DATE,
    "timestamp": _LOCAL_TIME,
    "timestamptz": _TIME,
    "json": _NESTED,
    "jsonb": _NESTED,
}
_BY_KIND = {"arcgis": _ESRI, "socrata": _SODA, "ckan": _CKAN}


def stated(field: PageField, pages: Pages) -> Stated | None:
    """What the type of a column says; None where it says nothing that is known."""
    if pages.kind == "arcgis" and field.type == "esriFieldTypeDate" and pages.local_times:
        return Stated(RawKind.STRING, "datetime", _local)
    return _BY_KIND.get(pages.kind, {}).get(field.type)


def is_unknown(field: PageField, pages: Pages) -> bool:
    """Whether an ArcGIS server says a type of which nothing is known: its values stay texts."""
    return pages.kind == "arcgis" and field.type not in _ESRI
