"""Reads features that follow one another: GeoJSON text sequences and newline-delimited GeoJSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from ploti.server.adapters.readers.geojson import GeoJsonReader
from ploti.server.adapters.readers.json_sequence import SEPARATOR, sequence, texts
from ploti.server.adapters.readers.json_stream import JsonStream

_NAMES = (".geojsonseq", ".geojsons", ".geojsonl", ".ndgeojson", ".geojsonl.json")


class GeoJsonSeqReader(GeoJsonReader):
    """Features one after another, by the rules of `GeoJsonReader`."""

    format = "geojsonseq"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the name is one of the format's, or the head begins with a Feature."""
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        begins = text.removeprefix(SEPARATOR).lstrip().startswith(b"{")
        feature = b'"Feature"' in text and b'"FeatureCollection"' not in text
        return begins and (name.lower().endswith(_NAMES) or (feature and b'"features"' not in text))

    def stream(self, file: BinaryIO) -> JsonStream:
        """The text of a file, without the separators."""
        return sequence(file)

    def features(self, stream: JsonStream, *, members: dict[str, object]) -> Iterator[bytes]:
        """The text of each feature; nothing stands beside them."""
        del members
        return texts(stream)
