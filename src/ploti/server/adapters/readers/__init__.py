"""Readers: one module a format, listed here in the order in which they are asked."""

from ploti.server.adapters.readers.csv import CsvReader
from ploti.server.adapters.readers.geojson import GeoJsonReader
from ploti.server.ports.building import Reader

READERS: tuple[Reader, ...] = (GeoJsonReader(), CsvReader())
"""Every format that can be read; `sources.formats.choose` takes the one that fits."""
