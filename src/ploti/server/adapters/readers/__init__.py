"""Readers: one class a format, listed here in the order in which they are asked."""

from ploti.server.adapters.readers.delimited import DelimitedReader, TsvReader
from ploti.server.adapters.readers.filegdb import FileGdbReader
from ploti.server.adapters.readers.flatgeobuf import FlatGeobufReader
from ploti.server.adapters.readers.geojson import GeoJsonReader
from ploti.server.adapters.readers.geojsonseq import GeoJsonSeqReader
from ploti.server.adapters.readers.geopackage import GeoPackageReader
from ploti.server.adapters.readers.json_rows import JsonReader, NdjsonReader
from ploti.server.adapters.readers.kml import KmlReader
from ploti.server.adapters.readers.packed import PackedReader
from ploti.server.adapters.readers.pages import PagesReader
from ploti.server.adapters.readers.parquet import GeoParquetReader, ParquetReader
from ploti.server.adapters.readers.shapefile import ShapefileReader
from ploti.server.adapters.readers.xlsx import XlsxReader
from ploti.server.ports.building import Reader

_FORMATS: tuple[Reader, ...] = (
    ParquetReader(),
    GeoParquetReader(),
    GeoPackageReader(),
    FlatGeobufReader(),
    ShapefileReader(),
    FileGdbReader(),
    XlsxReader(),
    KmlReader(),
    GeoJsonReader(),
    GeoJsonSeqReader(),
    NdjsonReader(),
    JsonReader(),
    TsvReader(),
    DelimitedReader(),
)
READERS: tuple[Reader, ...] = (PagesReader(), *_FORMATS, PackedReader(_FORMATS))
"""Every format that can be read; `sources.formats.choose` takes the one that fits."""
