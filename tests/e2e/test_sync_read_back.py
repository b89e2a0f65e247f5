"""Real histories through two subscriptions into every destination, read by tools not of ours."""

from __future__ import annotations

import csv
import io
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import geopandas
import pandas as pd
import psycopg
import pyogrio
import pytest
from tests.building import HISTORIES, history
from tests.e2e.serving import served
from tests.e2e.test_sync_histories import push

from ploti.client.connection import Client
from ploti.errors import ExitStatus
from ploti.sync.calls import sync, verify

pytestmark = pytest.mark.skipif(
    not HISTORIES.exists(), reason="the histories lie in ../shared/data, which is absent"
)
Airports = dict[str, tuple[str | None, float, float]]
"""Name, longitude and latitude by the airport's code."""


def source(state: Path) -> Airports:
    with state.open(newline="", encoding="utf-8") as file:
        return {
            row["icao"]: (row["name"] or None, float(row["lon"]), float(row["lat"]))
            for row in csv.DictReader(file)
        }


def listed(rows: list[tuple[str, str | None, float, float]]) -> Airports:
    found = {icao: (name, lon, lat) for icao, name, lon, lat in rows}
    assert len(found) == len(rows)
    return found


def by_duckdb(place: str) -> Airports:
    with duckdb.connect(place.removeprefix("duckdb:"), read_only=True) as plain:
        return listed(plain.execute("SELECT icao, name, lon, lat FROM airports").fetchall())


def by_sqlite(place: str) -> Airports:
    with closing(sqlite3.connect(place.removeprefix("sqlite:"))) as plain:
        return listed(plain.execute("SELECT icao, name, lon, lat FROM airports").fetchall())


def by_gdal(place: str) -> Airports:
    return of_frame(pyogrio.read_dataframe(place.removeprefix("gpkg:"), layer="airports"))


def by_geopandas(place: str) -> Airports:
    folder = Path(place.removeprefix("parquet:"))
    return of_frame(geopandas.read_parquet(folder / "airports.parquet"))


def of_frame(frame: geopandas.GeoDataFrame) -> Airports:
    assert frame.crs in ("EPSG:4326", "OGC:CRS84")
    names = [None if pd.isna(name) else str(name) for name in frame["name"]]
    places = frame.geometry
    return listed(list(zip(frame["icao"], names, places.x, places.y, strict=True)))


def by_postgis(place: str) -> Airports:
    query = "SELECT icao, name, ST_X(geometry), ST_Y(geometry) FROM airports"
    if shutil.which("psql") is None:
        with psycopg.connect(place) as plain:
            return listed(plain.execute(query).fetchall())
    psql = ["psql", place, "--no-psqlrc", "--csv", "--tuples-only", "--command", query]
    said = subprocess.run(psql, check=True, capture_output=True, text=True).stdout
    rows = csv.reader(io.StringIO(said))
    return listed([(icao, name or None, float(x), float(y)) for icao, name, x, y in rows])


def assert_near(found: Airports, wanted: Airports) -> None:
    """Every airport, with its name; a place is rounded to a billionth of a degree at the most."""
    assert found.keys() == wanted.keys()
    for icao, (name, lon, lat) in wanted.items():
        its_name, x, y = found[icao]
        assert its_name == name
        assert abs(x - lon) <= 1e-9
        assert abs(y - lat) <= 1e-9


def test_two_subscriptions_in_five_destinations_are_the_source(
    tmp_path: Path, postgis_url: str
) -> None:
    airports = list(history("airportsdata", tmp_path))[2:4]
    countries = list(history("world_countries_50m", tmp_path))[2:4]
    readers: dict[str, Callable[[str], Airports]] = {
        f"duckdb:{tmp_path / 'a.duckdb'}": by_duckdb,
        f"sqlite:{tmp_path / 'a.sqlite'}": by_sqlite,
        postgis_url: by_postgis,
        f"gpkg:{tmp_path / 'a.gpkg'}": by_gdal,
        f"parquet:{tmp_path / 'folder'}": by_geopandas,
    }
    with served(tmp_path) as server, Client(server.key, url=server.url) as client:
        point = {"longitude": "lon", "latitude": "lat"}
        server.declare("ds_airports", key=["icao"], geometry=point, continuation="off")
        server.declare("ds_countries", key=["id"], repeated_keys="number", continuation="off")
        one = server.subscribe("ds_airports").rpartition("/")[2]
        both = server.subscribe("ds_airports", "ds_countries").rpartition("/")[2]
        for airport, country in zip(airports, countries, strict=True):
            push(server, "ds_airports", airport)
            push(server, "ds_countries", country)
            for number, (place, read) in enumerate(readers.items()):
                subscription = both if number > 1 else one
                assert sync(client, subscription, to=place).exit_status is ExitStatus.DONE
                assert_near(read(place), source(airport))
        for number, place in enumerate(readers):
            found = verify(client, both if number > 1 else one, to=place)
            assert found.exit_status is ExitStatus.DONE, found
    layer = pyogrio.read_dataframe(tmp_path / "a.gpkg", layer="countries", bbox=(8, 47, 9, 48))
    germany, switzerland, brazil = "276", "756", "076"
    assert {germany, switzerland} <= set(layer["id"])
    assert brazil not in set(layer["id"])
    folder = geopandas.read_parquet(tmp_path / "folder" / "countries.parquet")
    with psycopg.connect(postgis_url) as plain:
        query = "SELECT count(*), count(*) FILTER (WHERE ST_NPoints(geometry) > 3) FROM countries"
        assert plain.execute(query).fetchone() == (len(folder), len(folder))
    assert len(folder) == len(geopandas.read_file(countries[-1]))
