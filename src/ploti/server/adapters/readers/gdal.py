"""GDAL, for the formats that are its alone to read: nothing else in it is asked."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

import pyarrow as pa

from ploti.errors import SourceError

# Drivers that fetch, load libraries or follow a file's word to another place are not even made.
_NEVER = (
    "ADBC,AmigoCloud,Carto,CSW,EEDA,Elasticsearch,GDALG,GPSBabel,GTFS,HTTP,NGW,OAPIF,OGCAPI,"
    "OGR_VRT,PLSCENES,VRT,WFS,WMS,WMTS,WCS,DAAS,STACIT,STACTA,PDF,MVT,PMTiles,MBTiles"
)


class Layer(NamedTuple):
    """What GDAL says of a layer: its names, the types of its fields, its CRS as it finds it.

    `fid` is the column of their numbers, empty where there is none; `features` is how many the
    layer says that it has.
    """

    fields: list[str]
    types: dict[str, str]
    crs: str | None
    fid: str
    spatial: bool
    features: int


def layers(path: str) -> list[str]:
    """The names of the layers."""
    with _gdal() as gdal:
        return [str(name) for name, _ in gdal.list_layers(path)]


def describe(path: str, *, driver: str, layer: str | None = None) -> Layer:
    """What GDAL says of a layer; raises SourceError where another driver would read it."""
    with _gdal() as gdal:
        info: dict[str, Any] = gdal.read_info(path, layer=layer, force_feature_count=True)
    if info["driver"] != driver:
        raise SourceError(f"the source is not what its name says: it is {info['driver']}")
    names = [str(name) for name in info["fields"]]
    return Layer(
        fields=names,
        types=dict(zip(names, info["ogr_types"], strict=True)),
        crs=info["crs"],
        fid=info["fid_column"],
        spatial=info["geometry_type"] is not None,
        features=info["features"],
    )


def batches(
    path: str, *, layer: str | None = None, columns: list[str] | None = None, spatial: bool = True
) -> Iterator[pa.RecordBatch]:
    """A layer's features in order, date-times as texts; the first column is their number."""
    with (
        _gdal() as gdal,
        gdal.open_arrow(
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
def _gdal() -> Iterator[ModuleType]:
    """The library, its errors as ours; what it only warns of is no matter of ours.

    It is imported where it is needed: it imports pandas where that is installed, and no build of
    another format should wait for either.
    """
    os.environ.setdefault("GDAL_SKIP", _NEVER)
    import pyogrio  # type: ignore[import-untyped]  # noqa: PLC0415 - said above
    from pyogrio import errors  # noqa: PLC0415

    broken = (
        *(errors.DataLayerError, errors.DataSourceError, errors.FieldError),
        *(pa.ArrowException, RuntimeError, OSError),
        *(ValueError, NameError),  # what pyogrio itself stumbles over in names that are no text
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield pyogrio
    except MemoryError:
        raise
    except errors.GeometryError:
        # pyogrio asks each layer for its type, and knows none of triangles
        raise SourceError(
            "the source has a layer of triangulated surfaces, and cannot be opened with it: leave"
            " that layer out, or have its shapes as polygons"
        ) from None
    except broken as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise SourceError(f"the source cannot be read: {first}") from None
