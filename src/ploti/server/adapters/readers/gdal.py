"""GDAL, for the formats that are its alone to read: nothing else in it is asked."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from ploti.errors import SourceError

# Drivers that fetch, load libraries or follow a file's word to another place are not even made.
os.environ.setdefault(
    "GDAL_SKIP",
    "ADBC,AmigoCloud,Carto,CSW,EEDA,Elasticsearch,GDALG,GPSBabel,GTFS,HTTP,NGW,OAPIF,OGCAPI,"
    "OGR_VRT,PLSCENES,VRT,WFS,WMS,WMTS,WCS,DAAS,STACIT,STACTA,TileDB,PDF,MVT,PMTiles,MBTiles",
)

import pyogrio  # type: ignore[import-untyped]
from pyogrio.errors import (  # type: ignore[import-untyped]
    DataLayerError,
    DataSourceError,
    FieldError,
    GeometryError,
)

_ERRORS = (
    *(DataLayerError, DataSourceError, FieldError, GeometryError),
    *(pa.ArrowException, RuntimeError, OSError),
)


class Layer(NamedTuple):
    """What GDAL says of a layer: its names, the types of its fields, its CRS as it finds it."""

    fields: list[str]
    types: dict[str, str]
    crs: str | None
    fid: str
    spatial: bool


def layers(path: str) -> list[str]:
    """The names of the layers."""
    with _reason():
        return [str(name) for name, _ in pyogrio.list_layers(path)]


def describe(path: str, *, driver: str, layer: str | None = None) -> Layer:
    """What GDAL says of a layer; raises SourceError where another driver would read it."""
    with _reason():
        info: dict[str, Any] = pyogrio.read_info(path, layer=layer)
    if info["driver"] != driver:
        raise SourceError(f"the source is not what its name says: it is {info['driver']}")
    names = [str(name) for name in info["fields"]]
    return Layer(
        fields=names,
        types=dict(zip(names, info["ogr_types"], strict=True)),
        crs=info["crs"],
        fid=info["fid_column"] or "OGC_FID",
        spatial=info["geometry_type"] is not None,
    )


def batches(
    path: str, *, layer: str | None = None, columns: list[str] | None = None, spatial: bool = True
) -> Iterator[pa.RecordBatch]:
    """A layer's features in order, date-times as texts; the first column is their number."""
    with (
        _reason(),
        pyogrio.open_arrow(
            path,
            layer=layer,
            columns=columns,
            read_geometry=spatial,
            return_fids=True,
            batch_size=20_000,
            use_pyarrow=True,
            datetime_as_string=True,
        ) as (_, reader),
    ):
        yield from reader


@contextmanager
def _reason() -> Iterator[None]:
    """What GDAL only warns of (that it has no name for measures, say) is no matter of ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except MemoryError:
        raise
    except _ERRORS as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise SourceError(f"the source cannot be read: {first}") from None
