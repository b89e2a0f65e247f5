"""Cases of group F: rows written as GeoParquet and as CSV, and read back."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import shapely
from tests.cases.cases import FOLDER, case
from tests.fakes.builds import Builds, declare

from ploti.server.build.candidate import Candidate, FileRole


class Writing:
    """A case's rows, built into a first version."""

    def __init__(self, number: str, folder: Path, *, file: str | None = None) -> None:
        name = file or case(number)["given"]["rows"]
        rows = json.loads((FOLDER / name).read_text(encoding="utf-8"))
        self.rows: list[dict[str, Any]] = rows
        self._builds = Builds(folder, declare())
        source = json.dumps([_feature(row) for row in rows] if _spatial(number) else rows)
        if _spatial(number):
            source = f'{{"type": "FeatureCollection", "features": {source}}}'
        result = self._builds.build(source.encode(), name="rows.json")
        assert isinstance(result, Candidate), result
        self.result = result

    def parquet(self) -> pq.ParquetFile:
        return pq.ParquetFile(self._builds.file(self.result, FileRole.SNAPSHOT))

    def geo(self) -> dict[str, Any]:
        """What the file says of its geometry."""
        told = self.parquet().metadata.metadata
        assert told is not None
        found = json.loads(told[b"geo"])["columns"]["geometry"]
        assert isinstance(found, dict)
        return found

    def geometries(self) -> list[bytes | None]:
        found: list[bytes | None] = self.parquet().read(["geometry"])["geometry"].to_pylist()
        return found

    def csv(self) -> list[dict[str, str]]:
        path = Path(self._builds.file(self.result, FileRole.SNAPSHOT)).with_name("snapshot.csv")
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def csv_lines(self) -> list[str]:
        path = Path(self._builds.file(self.result, FileRole.SNAPSHOT)).with_name("snapshot.csv")
        return path.read_text(encoding="utf-8").splitlines()


def _spatial(number: str) -> bool:
    return "crs" in case(number)["given"]


def _feature(row: dict[str, Any]) -> dict[str, Any]:
    geometry = None if row["wkt"] is None else shapely.from_wkt(row["wkt"])
    return {
        "type": "Feature",
        "properties": {"id": row["id"]},
        "geometry": None if geometry is None else json.loads(shapely.to_geojson(geometry)),
    }


def test_f02_the_types_present_are_listed_and_the_null_stays_null(tmp_path: Path) -> None:
    writing, expect = Writing("F02", tmp_path), case("F02")["expect"]
    assert set(writing.geo()["geometry_types"]) == set(expect["geo"]["geometry_types_as_set"])
    assert writing.geo()["bbox"] in (expect["geo"]["bbox"], expect["geo"]["bbox_also_accepted"])
    assert writing.geometries().count(None) == expect["null_geometries"]


def test_f02_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first, again = (Writing("F02", folder) for folder in (tmp_path, tmp_path / "again"))
    assert [file.sha256 for file in first.result.files] == [
        file.sha256 for file in again.result.files
    ]


def test_f04_a_box_over_the_180_degree_line_hides_no_row(tmp_path: Path) -> None:
    accepted = case("F04")["expect"]["geo"]["bbox_accepted"]
    assert Writing("F04", tmp_path).geo().get("bbox", accepted[0]) in accepted


def test_f05_null_and_empty_stay_different_and_have_no_box(tmp_path: Path) -> None:
    writing = Writing("F05", tmp_path, file="F05.empty.json")
    assert "bbox" not in writing.geo()
    found = [shapely.from_wkb(wkb) for wkb in writing.geometries() if wkb is not None]
    assert [geometry.is_empty for geometry in found] == [True, True]
    assert writing.geometries().count(None) == 1


@pytest.mark.parametrize("number", ["F07", "F57"])
def test_a_csv_carries_every_character(number: str, tmp_path: Path) -> None:
    """F07 and F57: what spreadsheets run as formulas stays as it is."""
    writing = Writing(number, tmp_path)
    found = [{name: row[name] for name in "abc"} for row in writing.csv()]
    assert sorted(map(str, found)) == sorted(map(str, writing.rows))


def test_f08_null_is_nothing_and_empty_text_is_quoted(tmp_path: Path) -> None:
    expected = (FOLDER / "F08.expected.csv").read_text(encoding="utf-8").splitlines()
    lines = [line.partition(",")[2] for line in Writing("F08", tmp_path).csv_lines()]
    assert sorted(lines[1:]) == sorted(expected[1:])
