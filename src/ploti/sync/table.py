"""A file of a version as a table in memory: for Arrow, pandas, geopandas and polars."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ploti.client.connection import Client
from ploti.client.files import Role, fetch_file
from ploti.errors import ConfigError, NotFound, SyncError


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a snapshot or changes file, in `arrow`; a geometry is WKB there.

    The other forms are those of their own libraries, which ploti does not bring: each raises
    ConfigError where its library is not installed.
    """

    arrow: pa.Table

    def pandas(self) -> Any:  # noqa: ANN401 - pandas is not needed to import this
        """A DataFrame with Arrow's types, so that whole numbers beside nulls stay whole."""
        with _needing("pandas"):
            import pandas as pd  # type: ignore[import-untyped]  # noqa: PLC0415 - as asked for

        return self.arrow.to_pandas(types_mapper=pd.ArrowDtype)

    def polars(self) -> Any:  # noqa: ANN401
        """A polars DataFrame; a geometry stays WKB."""
        with _needing("polars"):
            import polars as pl  # noqa: PLC0415

        return pl.from_arrow(self.arrow)

    def geopandas(self) -> Any:  # noqa: ANN401
        """A GeoDataFrame with the geometry as such, in its reference system.

        Raises:
            SyncError: The dataset has no geometry.
        """
        metadata = (self.arrow.schema.metadata or {}).get(b"geo")
        if metadata is None:
            raise SyncError("This file has no geometry: take pandas()")
        geo = json.loads(metadata)
        name = geo["primary_column"]
        crs = geo["columns"][name].get("crs", "OGC:CRS84")
        with _needing("geopandas"):
            import geopandas as library  # type: ignore[import-untyped]  # noqa: PLC0415

        frame = self.pandas()
        frame[name] = library.GeoSeries.from_wkb(self.arrow[name].to_pandas(), crs=_system(crs))
        return library.GeoDataFrame(frame, geometry=name)


@contextmanager
def _needing(library: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is not installed: pip install {library} brings what this needs"
        ) from error


def _system(crs: object) -> str:
    return json.dumps(crs) if isinstance(crs, dict) else str(crs)


def read_table(client: Client, dataset_id: str, version: int | None, file: Role) -> Table:
    """Download a file of a version (None: of the current one), checked, and read it whole."""
    if file == "schema":
        raise ConfigError("A schema is no table: take datasets.schema")
    number = _current(client, dataset_id) if version is None else version
    with TemporaryDirectory(prefix="ploti-table-") as folder:
        to = fetch_file(client, dataset_id, number, file, to=Path(folder, "file.parquet"))
        return Table(pq.read_table(to))


def _current(client: Client, dataset_id: str) -> int:
    current = client.feeds.datasets.show(dataset_id).current
    if current is None:
        raise NotFound(f"{dataset_id} has no released version yet")
    return current.version
