"""The placemarks of a KML document, taken from its elements as they pass."""

from __future__ import annotations

from typing import NamedTuple

from ploti.errors import SourceError
from ploti.server.adapters.readers.kml_geometry import Shape, coordinates
from ploti.server.adapters.readers.xml_stream import local_name

_ELEMENTS = (
    *("name", "description", "address", "phoneNumber", "Snippet", "snippet", "visibility"),
    *("when", "begin", "end"),
)
_TEXTS = {*_ELEMENTS, "value", "SimpleData", "coordinates"}
_SHAPES = {"Point", "LineString", "LinearRing", "Polygon", "MultiGeometry"}
_NOT_READ = {"gx:Track", "gx:MultiTrack", "Track", "MultiTrack", "Model"}
_TIMES = {"when", "begin", "end"}
_TEXT_FIELD = "string"


class Column(NamedTuple):
    """A value's name: KML's own elements have a place before 0, the data of the source has 0."""

    place: int
    name: str


class Placemark(NamedTuple):
    """One placemark: its texts, its geometry as WKB, and the names of the folders around it.

    An empty text is None: KML has no other way to say that there is no value.
    """

    values: dict[Column, str | None]
    geometry: bytes | None
    folders: tuple[str, ...]


class Placemarks:
    """A handler of elements that gathers the placemarks which have ended.

    `text_fields` are the names of fields that a schema declares as strings, `links` counts links
    to other documents.
    """

    def __init__(self) -> None:
        self.text_fields: set[str] = set()
        self.links = 0
        self._done: list[Placemark] = []
        self._count = 0
        self._path: list[str] = []
        self._folders: list[str] = []
        self._texts: list[str] = []
        self._values: dict[Column, str | None] | None = None
        self._data = ""
        self._shapes: list[Shape] = []
        self._shape: Shape | None = None

    def take(self) -> list[Placemark]:
        """The placemarks that ended since it was asked last."""
        done, self._done = self._done, []
        return done

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        local = local_name(name)
        self._path.append(local)
        self._texts.clear()
        if self._values is None:
            self._start_outside(local, attributes)
        elif name in _NOT_READ or local in _NOT_READ:
            raise self._broken(f"it has a {name}, which is not read")
        elif self._path[-2] in _TEXTS:
            raise self._broken(f"it has a <{name}> inside its {self._path[-2]}: wrap it in CDATA")
        elif local in _SHAPES:
            self._shapes.append(Shape(local))
        elif local in {"Data", "SimpleData"}:
            self._data = attributes.get("name", "")

    def text(self, text: str) -> None:
        """Text of the element that began last."""
        self._texts.append(text)

    def end(self, name: str) -> None:
        """An element ends."""
        local = local_name(name)
        self._path.pop()
        text = "".join(self._texts)
        self._texts.clear()
        if self._values is not None:
            self._end_inside(local, text, values=self._values)
        elif local in {"Folder", "Document"}:
            self._folders.pop()
        elif local == "name" and self._folders and self._path[-1] in {"Folder", "Document"}:
            self._folders[-1] = text.strip()

    def _start_outside(self, local: str, attributes: dict[str, str]) -> None:
        if local in {"Folder", "Document"}:
            self._folders.append("")
        elif local == "Placemark":
            self._count += 1
            self._values, self._shape = {}, None
            if "id" in attributes:
                self._values[_own("id")] = attributes["id"]
        elif local == "NetworkLink":
            self.links += 1
        elif local == "SimpleField" and attributes.get("type", "").lower() == _TEXT_FIELD:
            self.text_fields.add(attributes.get("name", ""))

    def _end_inside(self, local: str, text: str, *, values: dict[Column, str | None]) -> None:
        parent = self._path[-1] if self._path else ""
        if local == "Placemark":
            self._done.append(Placemark(values, self._wkb(), tuple(filter(None, self._folders))))
            self._values = None
        elif local in _SHAPES:
            self._end_shape()
        elif local == "coordinates" and self._shapes:
            self._shapes[-1].positions = self._positions(text)
        elif local == "SimpleData" or (local == "value" and parent == "Data"):
            self._add(Column(0, self._data), text, values)
        elif local in _ELEMENTS and (parent == "Placemark" or local in _TIMES):
            self._add(_own(local), text, values)

    def _add(self, column: Column, text: str, values: dict[Column, str | None]) -> None:
        if column in values:
            raise self._broken(f"it has two values for '{column.name}'")
        values[column] = text or None

    def _end_shape(self) -> None:
        shape = self._shapes.pop()
        if self._shapes:
            self._shapes[-1].parts.append(shape)
        elif self._shape is not None:
            raise self._broken("it has two geometries outside of a MultiGeometry")
        else:
            self._shape = shape

    def _positions(self, text: str) -> list[list[float]]:
        try:
            return coordinates(text)
        except ValueError as error:
            raise self._broken(str(error)) from None

    def _wkb(self) -> bytes | None:
        try:
            return self._shape.wkb() if self._shape else None
        except ValueError as error:
            raise self._broken(str(error)) from None

    def _broken(self, reason: str) -> SourceError:
        return SourceError(f"placemark {self._count:,} cannot be read: {reason}")


def _own(name: str) -> Column:
    order = ("id", *_ELEMENTS)
    return Column(order.index(name) - len(order), name)
