"""Reads GeoJSON, a FeatureCollection in any layout, in the memory of one batch of features."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from ploti.errors import SourceError
from ploti.server.adapters.readers.crs_names import from_geojson
from ploti.server.adapters.readers.geojson_geometry import is_degrees, to_wkb, type_name
from ploti.server.adapters.readers.json_beside import refuse_page
from ploti.server.adapters.readers.json_columns import GEOMETRY, Columns, Number, Parts, Row
from ploti.server.adapters.readers.json_mending import mend
from ploti.server.adapters.readers.json_repeats import find_repeated
from ploti.server.adapters.readers.json_stream import JsonStream
from ploti.server.adapters.readers.remarks import Remark, Remarks
from ploti.server.ports.building import RawColumn, RawGeometry, RawTable
from ploti.server.sources.declaration import Declaration

_BATCH_ROWS = 20_000
_BATCH_BYTES = 16 << 20
_SHOWN = 80
_DEGREES = "EPSG:4326"
_FEATURE_ID = "\x00id"  # the name of no property: those hold no NUL once they are mended
_NOTHING = msgspec.Raw(b"null")
_KNOWN = {"type", "id", "geometry", "properties", "bbox"}
_ID_TYPES = {str, int, Number}


class _Feature(msgspec.Struct):
    type: str
    id: object = None
    geometry: msgspec.Raw = _NOTHING
    properties: msgspec.Raw = _NOTHING
    bbox: msgspec.Raw = _NOTHING


class _PlainFeature(_Feature, forbid_unknown_fields=True):
    """A feature without members of its maker's own."""


_plain_feature = msgspec.json.Decoder(_PlainFeature, float_hook=Number)
_feature = msgspec.json.Decoder(_Feature, float_hook=Number)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_properties = msgspec.json.Decoder(dict[str, object] | None, float_hook=Number)


class GeoJsonReader:
    """GeoJSON in degrees, or in the system that the collection's legacy `crs` member names.

    A feature's `id` becomes the column `id`, the first, unless a property has that name: then the
    property is the column, as its maker meant it, and the member is left out with a finding where
    the two differ.
    """

    format = "geojson"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the name ends in `.geojson`, or the head is that of a FeatureCollection."""
        begins = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
        collects = b'"FeatureCollection"' in head or b'"features"' in head
        return begins and (name.lower().endswith(".geojson") or collects)

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the features, twice where a column turns out to hold strings and nested values."""
        if declaration.geometry:
            raise SourceError(
                "GeoJSON brings its own geometry: leave longitude and latitude out of the"
                " declaration's geometry"
            )
        declared = declaration.columns
        as_json = frozenset(name for name, kind in declared.items() if kind == "json")
        as_text = frozenset(declared) - as_json
        reading = _Reading(folder, as_json=as_json, as_text=as_text)
        reading.read(path, self)
        if unclear := reading.columns.unclear():
            reading = _Reading(folder, as_json=as_json | unclear, as_text=as_text)
            reading.read(path, self)
        return reading.table()

    def stream(self, file: BinaryIO) -> JsonStream:
        """The text of a file; formats of the same kind take it otherwise."""
        return JsonStream(file)

    def features(self, stream: JsonStream, *, members: dict[str, object]) -> Iterator[bytes]:
        """The text of each feature, as the stream passes it; `members` gets what stands beside."""
        return _features(stream, members)


class _Reading:
    """One pass over a file."""

    def __init__(self, folder: str, *, as_json: frozenset[str], as_text: frozenset[str]) -> None:
        self.columns = Columns(as_json=as_json, as_text=as_text)
        self._parts = Parts(folder, name="features")
        self._remarks = Remarks()
        self._members: dict[str, object] = {}
        self._types: set[bytes] = set()
        self._count = 0
        self._rows: list[Row] = []
        self._geometries: list[bytes | None] = []
        self._bytes = 0

    def read(self, path: str, reader: GeoJsonReader) -> None:
        """Read the file into parts."""
        with Path(path).open("rb") as file:
            stream = reader.stream(file)
            for text in reader.features(stream, members=self._members):
                self._count += 1
                try:
                    self._add(text)
                except (ValueError, msgspec.DecodeError, RecursionError) as error:
                    raise stream.undecodable(
                        error, text=text, what=f"feature {self._count:,}"
                    ) from None
        self._flush()
        self._parts.close()
        refuse_page(self._members, rows=self._count)

    def table(self) -> RawTable:
        """The table that was read."""
        columns = [
            RawColumn(source_name=name, kind=self.columns.kind(name), field=f"c{number}")
            for number, name in enumerate(self.columns.names)
        ]
        if "id" not in self.columns.names:
            self._remarks.drop(Remark.FEATURE_ID_LEFT_OUT)
        return RawTable(
            relation=self._parts.relation(),
            columns=_name_feature_id(columns),
            geometry=RawGeometry(
                field=GEOMETRY,
                crs=from_geojson(self._members.get("crs")) or _DEGREES,
                types=sorted({type_name(code) for code in self._types}),
            ),
            findings=self._remarks.findings(),
            rows=self._count,
        )

    def _add(self, text: bytes) -> None:
        feature, values, properties = self._decode(text)
        if feature.type != "Feature":
            raise ValueError(f"its type is '{feature.type}', and only a Feature can stand here")
        if repeated := _find_repeated(text, properties, values):
            self._remarks.add(
                Remark.MEMBER_REPEATED, place=f"feature {self._count:,}: '{repeated[:_SHOWN]}'"
            )
        if feature.id is not None:
            values[_FEATURE_ID] = self._feature_id(feature.id, values)
        wkb = to_wkb(feature.geometry, remark=self._remark)
        if wkb is not None:
            self._types.add(wkb[:5])
        self._rows.append(Row(values, properties))
        self._geometries.append(wkb)
        self._bytes += len(text)
        if len(self._rows) == _BATCH_ROWS or self._bytes >= _BATCH_BYTES:
            self._flush()

    def _decode(self, text: bytes) -> tuple[_Feature, dict[str, object], msgspec.Raw]:
        if b"\\u0000" not in text:
            try:
                plain = _plain_feature.decode(text)
                return plain, _properties.decode(plain.properties) or {}, plain.properties
            except msgspec.DecodeError:
                pass  # below, with all that may be mended
        return self._decode_mended(mend(text, remark=self._remark))

    def _decode_mended(self, text: bytes) -> tuple[_Feature, dict[str, object], msgspec.Raw]:
        members = _members.decode(text)
        if not is_degrees(msgspec.json.decode(members.get("crs", _NOTHING))):
            raise ValueError("it has a crs of its own: only the whole collection may")
        if "attributes" in members:
            raise ValueError("it has attributes: this is Esri JSON, not GeoJSON")
        if members.keys() - _KNOWN:
            self._remark(Remark.MEMBER_LEFT_OUT)
        feature = _feature.decode(text)
        return feature, _properties.decode(feature.properties) or {}, feature.properties

    def _feature_id(self, feature_id: object, values: dict[str, object]) -> object:
        if type(feature_id) not in _ID_TYPES:
            raise ValueError("its id is neither a text nor a number")
        if values.get("id") != feature_id:
            self._remark(Remark.FEATURE_ID_LEFT_OUT)
        return feature_id

    def _flush(self) -> None:
        self._parts.write(self.columns.arrays(self._rows), geometry=self._geometries)
        self._rows, self._geometries, self._bytes = [], [], 0

    def _remark(self, remark: Remark) -> None:
        self._remarks.add(remark, place=f"feature {self._count:,}")


def _find_repeated(text: bytes, properties: msgspec.Raw, values: dict[str, object]) -> str | None:
    """A member that the properties have twice, or a feature that has two of a kind itself."""
    if any(text.count(name) > 1 for name in (b'"properties"', b'"geometry"', b'"coordinates"')):
        return find_repeated(mend(text, remark=_ignore), members=0)
    return find_repeated(bytes(properties), members=len(values))


def _ignore(remark: Remark) -> None:
    """What is mended in the text has been remarked before."""
    del remark


def _features(stream: JsonStream, members: dict[str, object]) -> Iterator[bytes]:
    """Each feature's text; raises SourceError where the text is no FeatureCollection."""
    if stream.peek() != b"{":
        raise stream.broken("a FeatureCollection, which begins with '{', is expected")
    for name in stream.members():
        if name != "features":
            members[name] = _member(name, stream)
        elif stream.peek() != b"[" or name in members:
            raise stream.broken("one list of features is expected")
        else:
            members[name] = None
            _check(members, complete=False)
            yield from stream.elements()
    stream.end()
    _check(members, complete=True)


def _member(name: str, stream: JsonStream) -> object:
    text = stream.value()
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SourceError(f"the member '{name}' before line {stream.line}: {error}") from None


def _check(members: dict[str, object], *, complete: bool) -> None:
    kind = members.get("type", None if complete else "FeatureCollection")
    if kind != "FeatureCollection":
        what = "no type" if kind is None else f"the type '{kind}'"
        hint = ": declare source: {format: geojsonseq}" if kind == "Feature" else ""
        raise SourceError(f"the JSON text has {what}, and is no FeatureCollection{hint}")
    if complete and "features" not in members:
        raise SourceError("the FeatureCollection has no list of features")
    from_geojson(members.get("crs"))


def _name_feature_id(columns: list[RawColumn]) -> list[RawColumn]:
    """Features' ids as the column `id`, the first; left out where a property has that name."""
    properties = [column for column in columns if column.source_name != _FEATURE_ID]
    taken = any(column.source_name == "id" for column in properties)
    ids = [
        msgspec.structs.replace(column, source_name="id")
        for column in columns
        if column.source_name == _FEATURE_ID and not taken
    ]
    return ids + properties
