"""What an ArcGIS server answers, and what a layer's description says of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

import msgspec

from ploti.server.sources.pages import PageField, Pages, Shapes

_LONGEST_TEXT = 10_000
_MADE_UP_TYPES = {"esriFieldTypeOID", "esriFieldTypeGlobalID"}
_SHAPE = "esriFieldTypeGeometry"
_NO_ORDER = {_SHAPE, "esriFieldTypeBlob", "esriFieldTypeRaster", "esriFieldTypeXML"}
_MEASURE = re.compile(r"shape[._]+(?:st)?(?:area|length|len)(?:\(\))?_*", re.IGNORECASE)


Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Camel(msgspec.Struct, rename="camel"):
    """An object with names in camel case."""


class Error(msgspec.Struct):
    """What went wrong, as the server says it."""

    code: int | None = None
    message: str | None = None
    details: list[str] | None = None


class Failed(msgspec.Struct):
    """Any answer, for the error that may stand in it."""

    error: Error | None = None


class Ids(_Camel):
    """The object ids of all rows."""

    object_id_field_name: str | None = None
    object_ids: list[Int64] | None = None


class Count(msgspec.Struct):
    """How many rows there are."""

    count: int


class Feature(msgspec.Struct):
    """One row."""

    attributes: dict[str, msgspec.Raw]


class _Coded(msgspec.Struct):
    code: object = None
    name: str | None = None


class _Domain(_Camel):
    coded_values: list[_Coded] | None = None
    range: list[object] | None = None


class Field(msgspec.Struct):
    """A column."""

    name: str
    type: str = ""
    alias: str | None = None
    description: str | None = None
    domain: _Domain | None = None


class _Abilities(_Camel):
    supports_pagination: bool | None = None


class _Extent(_Camel):
    spatial_reference: dict[str, object] | None = None


class _Measures(_Camel):
    shape_area_field_name: str | None = None
    shape_length_field_name: str | None = None


class Answer(_Camel):
    """Some rows, and what they are."""

    features: list[msgspec.Raw] | None = None
    fields: list[Field] | None = None
    object_id_field_name: str | None = None
    spatial_reference: dict[str, object] | None = None


class About(_Camel):
    """A layer's description."""

    type: str | None = None
    object_id_field: str | None = None
    global_id_field: str | None = None
    fields: list[Field] | None = None
    geometry_type: str | None = None
    has_z: bool | None = None
    has_m: bool | None = None
    max_record_count: int | None = None
    supports_pagination: bool | None = None
    advanced_query_capabilities: _Abilities | None = None
    extent: _Extent | None = None
    geometry_properties: _Measures | None = None
    dates_in_unknown_timezone: bool | None = None

    @property
    def gives_by_offset(self) -> bool:
        """Whether it says that it gives the rows after a number of them."""
        abilities = self.advanced_query_capabilities
        return bool(self.supports_pagination or (abilities and abilities.supports_pagination))

    @property
    def sortable(self) -> list[str]:
        """The columns by whose values rows can be put in order."""
        return [field.name for field in self.fields or () if field.type not in _NO_ORDER]

    @property
    def forms(self) -> dict[str, str]:
        """How rows are to be written: all columns, the geometry as it is, arcs as short lines."""
        forms = {"outFields": "*", "returnGeometry": "true" if self.geometry_type else "false"}
        if self.geometry_type:
            forms["returnTrueCurves"] = "false"
        return forms | {
            name: "true" for name, has in (("returnZ", self.has_z), ("returnM", self.has_m)) if has
        }


def object_id_field(about: About, answer: Answer | None = None) -> str | None:
    """The column of the object ids, where the layer or an answer says it."""
    named = about.object_id_field or (answer and answer.object_id_field_name)
    fields = (*(about.fields or ()), *((answer and answer.fields) or ()))
    by_type = (field.name for field in fields if field.type == "esriFieldTypeOID")
    return named or next(by_type, None)


def described(about: About, answer: Answer | None, *, identity: str | None) -> Pages:
    """The columns and the geometry; of a layer that does not tell its columns, an answer's."""
    fields = about.fields or (answer and answer.fields) or []
    return Pages(
        kind="arcgis",
        fields=[
            PageField(name=field.name, type=field.type, description=_told(field))
            for field in fields
            if field.type != _SHAPE
        ],
        system=sorted({*_made_up(about, fields), *filter(None, [identity])}),
        shapes=_shapes(about, answer),
        local_times=bool(about.dates_in_unknown_timezone),
    )


def _made_up(about: About, fields: list[Field]) -> Iterator[str]:
    """Names of columns that the server itself keeps or computes."""
    measures = about.geometry_properties or _Measures()
    named = {
        about.object_id_field,
        about.global_id_field,
        measures.shape_area_field_name,
        measures.shape_length_field_name,
    }
    for field in fields:
        if field.type in _MADE_UP_TYPES or field.name in named or _MEASURE.fullmatch(field.name):
            yield field.name


def _shapes(about: About, answer: Answer | None) -> Shapes | None:
    """The geometry, in the reference system that the answer states, or else the layer's own."""
    if not about.geometry_type:
        return None
    own = about.extent.spatial_reference if about.extent else None
    return Shapes(
        type=about.geometry_type,
        reference=(answer and answer.spatial_reference) or own,
        z=bool(about.has_z),
        m=bool(about.has_m),
    )


def _told(field: Field) -> str | None:
    """What the layer says of a column in words: its alias, its description, what its codes mean."""
    alias = field.alias if field.alias and field.alias != field.name else None
    parts = [alias, field.description, *_domain(field.domain)]
    text = ". ".join(part.strip().rstrip(".") for part in parts if part and part.strip())
    return text[:_LONGEST_TEXT] or None


def _domain(domain: _Domain | None) -> Iterator[str]:
    if domain and domain.coded_values:
        yield "; ".join(f"{each.code}: {each.name}" for each in domain.coded_values)
    if domain and domain.range:
        yield " to ".join(map(str, domain.range))
