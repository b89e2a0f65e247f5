"""Destinations of every kind, kept in step with a real server by the command, and proved."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import geoparquet_validator
import pytest
from tests.e2e.serving import Server, environment, served
from tests.fakes import forked, synced

KINDS = ["duckdb", "sqlite", "gpkg", "parquet", "postgis_url"]
FIRST = """id,name,fee,units,active,issued,updated,lon,lat
1,"Müller, A",0.50,3,true,2026-01-31,2026-01-31T06:13:02Z,-81.5,28.25
2,,12.25,,false,0001-01-01,,,
3,plain,7.00,-9,,,2026-02-01T00:00:00.000001Z,-81.25,28.5
"""
SECOND = """id,name,fee,units,active,issued,updated,lon,lat
1,"Müller, B",0.50,3,true,2026-01-31,2026-01-31T06:13:02Z,-81.5,28.75
3,plain,7.00,-9,,,2026-02-01T00:00:00.000001Z,-81.25,28.5
4,new,1.10,1,true,2026-03-01,,-81,28
"""


def ploti(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = environment(PLOTI_API_URL=server.url, PLOTI_API_KEY=server.key)
    return forked.run("feeds", *arguments, env=env)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_loaded_changed_proved_and_found_out(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    is_file = kind != "postgis_url"
    place = tmp_path / f"copy.{kind}" if is_file else str(request.getfixturevalue(kind))
    to = ("--to", synced.address(place))
    with served(tmp_path) as server:
        geometry = {"longitude": "lon", "latitude": "lat"}
        server.declare("ds_permits", key=["id"], geometry=geometry, holds="off")
        subscription = server.subscribe("ds_permits").rpartition("/")[2]
        for number, state in enumerate([FIRST, SECOND], start=1):
            assert server.push("ds_permits", state.encode())["outcome"] == "released"
            done = ploti(server, "sync", subscription, *to, "--verify", "--json")
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["loads" if number == 1 else "applies"] == 1
            assert synced.held(place) == {"ds_permits": (number, "held")}
            assert synced.query(place, "SELECT count(*) FROM permits") == [(3,)]
            equal = ploti(server, "verify", subscription, *to)
            assert equal.returncode == 0, equal.stdout + equal.stderr
        assert ploti(server, "status", subscription, *to).returncode == 0
        if isinstance(place, Path) and place.is_dir():
            report = geoparquet_validator.check(str(place / "permits.parquet"))
            for each in ("core", "covering"):
                assert geoparquet_validator.failed(report, each) == []
        synced.execute(place, "UPDATE permits SET name = 'x' WHERE name = 'plain'")
        differs = ploti(server, "verify", subscription, *to)
        assert (differs.returncode, "differs" in differs.stdout) == (5, True)
