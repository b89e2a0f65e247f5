"""Reads KML and KMZ: every placemark, with the texts and numbers that it has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ploti.errors import SourceError
from ploti.model.admin import Finding
from ploti.server.adapters.readers.archive import MAGIC, choose_member, open_archive
from ploti.server.adapters.readers.crs_names import CRS84
from ploti.server.adapters.readers.kml_placemarks import Column, Placemark, Placemarks
from ploti.server.adapters.readers.raw_file import RawFile, RawRows, Stated, refuse_points
from ploti.server.adapters.readers.xml_stream import stream
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawKind, RawTable

_DOCUMENT = "doc.kml"


class KmlReader:
    """KML, packed as KMZ or not; of several folders, `layer` names the one to read."""

    format = "kml"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the name ends in `.kml` or `.kmz` and the head fits, or has a `<kml>`."""
        if head.startswith(MAGIC):
            return name.lower().endswith(".kmz")
        return b"<kml" in head or (name.lower().endswith(".kml") and head.lstrip().startswith(b"<"))

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the placemarks twice: for their columns, and for their values."""
        refuse_points(declaration)
        member, layer = declaration.source.member, declaration.source.layer
        columns: dict[Column, bool] = {}
        handler = Placemarks()
        with _opened(path, member) as file:
            for placemark in _placemarks(file, layer, handler):
                typed = handler.text_fields
                columns |= dict.fromkeys(placemark.values, False)
                columns |= {column: True for column in placemark.values if column.name in typed}
        ordered = sorted(columns, key=lambda column: column.place)
        with (
            _opened(path, member) as file,
            RawFile(folder, width=len(ordered), spatial=True) as raw,
        ):
            rows = RawRows(raw, width=len(ordered), spatial=True)
            for placemark in _placemarks(file, layer, Placemarks()):
                values = [placemark.values.get(column) for column in ordered]
                rows.add(values, geometry=placemark.geometry)
            rows.flush()
        stated = [_stated(column, is_text=columns[column]) for column in ordered]
        return raw.table(stated, crs=CRS84, findings=_findings(handler))


def _stated(column: Column, *, is_text: bool) -> Stated:
    return Stated(column.name, RawKind.STRING if column.place or is_text else RawKind.TEXT)


def _findings(handler: Placemarks) -> list[Finding]:
    if not handler.links:
        return []
    message = f"{handler.links:,} links to other documents were not followed"
    return [Finding(reason=None, kind="link_left_out", message=message)]


@contextmanager
def _opened(path: str, member: str | None) -> Iterator[IO[bytes]]:
    with Path(path).open("rb") as file:
        if not file.read(4).startswith(MAGIC):
            file.seek(0)
            yield file
            return
    with open_archive(path) as archive:
        names = archive.names
        named = member or (_DOCUMENT if _DOCUMENT in names else None)
        with archive.open(choose_member(names, suffixes=(".kml",), member=named)) as packed:
            yield packed


def _placemarks(file: IO[bytes], layer: str | None, handler: Placemarks) -> Iterator[Placemark]:
    found = 0
    folders: set[str] = set()
    for _ in stream(file, handler):
        for placemark in handler.take():
            folders |= set(placemark.folders)
            if layer is None or layer in placemark.folders:
                found += 1
                yield placemark
    if layer is not None and layer not in folders:
        listed = ", ".join(sorted(folders)[:10]) or "none"
        raise SourceError(f"the source has no folder '{layer}': its folders are {listed}")
    if not found and handler.links:
        raise SourceError("the KML has no placemarks, only links to others: declare their address")
