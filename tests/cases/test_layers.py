"""Cases A01 to A12, A51, A55, A61 and C06: layers of ArcGIS servers, read whole and exactly."""

from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
import shapely
from tests.cases.cases import FOLDER, case, rows
from tests.fakes.builds import Builds, declare
from tests.fakes.fetched import fetched
from tests.fakes.layer_server import Layer

from ploti.errors import SourceError
from ploti.model.version import Counts
from ploti.server.build.candidate import Candidate, Unchanged

SOURCE = {"kind": "arcgis", "url": "https://gis.example/arcgis/rest/services/P/FeatureServer/0"}


class Reading:
    """A case's layer, and builds of what is fetched of it."""

    def __init__(self, number: str, folder: Path, **settings: Any) -> None:
        self.case = case(number)
        self.folder = folder
        key = self.case["given"]["key"]
        self.builds = Builds(folder, declare(key=key, source=SOURCE, **settings))
        self.layer = Layer(self.case.get("serve") or _serve(self.case["given"]["previous"]))

    def fetch(self) -> bytes:
        return fetched(self.folder, self.layer.answer, kind="arcgis", path=self.layer.path).bytes

    def build(self) -> Candidate:
        result = self.builds.build(self.fetch(), name="arcgis.rows")
        assert isinstance(result, Candidate), result
        return result

    def rows(self, built: Candidate) -> list[dict[str, Any]]:
        return sorted(self.builds.rows(built), key=lambda row: str(row["PERMIT_NO"]))

    def geometries(self, built: Candidate) -> dict[str, Any]:
        return {
            row["PERMIT_NO"]: shapely.from_wkb(bytes(row["geometry"])) if row["geometry"] else None
            for row in self.builds.rows(built)
        }


def _serve(given: dict[str, Any]) -> dict[str, Any]:
    """A server of the usual kind, for cases that give the files of two states alone."""
    return case("A01")["serve"] | {"page_cap": 2, "oid_field": "OBJECTID"} | given


@pytest.mark.parametrize("number", ["A01", "A02", "A03", "A05", "A51", "A55"])
def test_all_rows_of_a_layer_come_once(number: str, tmp_path: Path) -> None:
    """A01 a cap, A02 no order, A03 short and empty pages, A05 no offsets, A51 a cap that is
    stated wrong, A55 no columns in the description."""
    reading = Reading(number, tmp_path)
    built = reading.build()
    expected = reading.case["expect"]
    assert built.row_count == expected["row_count"]
    wanted = rows(expected["rows_file"])
    found = [{name: row[name] for name in wanted[0]} for row in reading.rows(built)]
    assert found == sorted(wanted, key=lambda row: str(row["PERMIT_NO"]))
    names = [column.name for column in built.schema.columns]
    assert names == [*wanted[0], "geometry"]
    assert len(reading.layer.asked) <= expected.get("max_requests", 30)


def test_a04_an_error_inside_an_answer_that_is_ok_fails_the_read(tmp_path: Path) -> None:
    reading = Reading("A04", tmp_path)
    with pytest.raises(SourceError, match=reading.case["expect"]["reason_has"]):
        reading.fetch()
    assert not list((tmp_path / "blobs").rglob("att_*"))


@pytest.mark.parametrize("number", ["A06", "A07", "A09"])
def test_the_geometries_of_a_layer_are_what_its_rings_and_arcs_say(
    number: str, tmp_path: Path
) -> None:
    """A06 rings and holes, A07 arcs without plain rings, A09 geometries that are none."""
    reading = Reading(number, tmp_path)
    built = reading.build()
    assert built.row_count == reading.case["expect"]["row_count"]
    found = reading.geometries(built)
    for expected in reading.case["expect"]["geometry"]:
        geometry = found[expected["key"]]
        if expected["type"] is None:
            assert geometry is None
            continue
        assert geometry.geom_type == expected["type"]
        assert geometry.is_valid
        if "area" in expected:
            assert abs(geometry.area - expected["area"]) <= expected.get("area_tolerance", 1e-9)
        if "parts" in expected:
            holes = [len(part.interiors) for part in geometry.geoms]
            assert holes == expected["holes_per_part"]


@pytest.mark.parametrize("stated", ["in the answer", "in the layer alone"])
def test_a08_coordinates_are_read_in_the_system_that_is_stated(stated: str, tmp_path: Path) -> None:
    reading = Reading("A08", tmp_path)
    if stated == "in the answer":
        reading.layer.about = reading.layer.about.replace("102100", "4326").replace("3857", "4326")
        reading.layer.reference = {"wkid": 102100, "latestWkid": 3857}
    found = reading.geometries(reading.build())
    for expected in reading.case["expect"]["geometry"]:
        point = found[expected["key"]]
        assert point.geom_type == expected["type"]
        assert abs(point.x - expected["lonlat"][0]) <= expected["tolerance_deg"]
        assert abs(point.y - expected["lonlat"][1]) <= expected["tolerance_deg"]


def test_a10_dates_are_exact_to_the_millisecond(tmp_path: Path) -> None:
    reading = Reading("A10", tmp_path)
    built = reading.build()
    expected = reading.case["expect"]["column"]
    assert built.schema.column("ISSUED").type == "timestamp"
    assert built.schema.column("DUE").type == "date"
    found = reading.rows(built)
    moments = [row["ISSUED"] and row["ISSUED"].astimezone(UTC) for row in found]
    told = [at and f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z" for at in moments]
    assert told == expected["ISSUED"]
    assert [row["DUE"] and row["DUE"].isoformat() for row in found] == expected["DUE"]


def test_dates_of_no_known_zone_are_local(tmp_path: Path) -> None:
    reading = Reading("A10", tmp_path)
    reading.layer.about = '{"datesInUnknownTimezone": true, ' + reading.layer.about.lstrip()[1:]
    built = reading.build()
    assert built.schema.column("ISSUED").type == "datetime"
    assert reading.rows(built)[0]["ISSUED"].isoformat() == "1969-12-31T23:59:59.999000"


def test_a11_another_description_of_a_code_changes_no_record(tmp_path: Path) -> None:
    reading = Reading("A11", tmp_path)
    before = reading.build()
    assert before.schema.column("STATUS").description == "Status. 1: Issued; 2: Final"
    after = reading.case["given"]["next"]
    reading.layer = Layer(_serve(after))
    built = reading.build()
    assert built.counts == Counts(**reading.case["expect"]["counts"])
    assert built.schema_change is not None
    assert built.schema_change.level == "MINOR"
    assert built.schema_change.described == ["STATUS"]
    assert built.schema.column("STATUS").description == "Status. 1: Issued; 2: Finaled"


def test_a12_a_layer_that_was_loaded_anew_is_unchanged(tmp_path: Path) -> None:
    reading = Reading("A12", tmp_path)
    given = reading.case["given"]
    reading.build()
    reading.layer = Layer(_serve(given["next"]))
    result = reading.builds.build(reading.fetch(), name="arcgis.rows")
    assert isinstance(result, Unchanged)


def test_a61_a_code_that_no_domain_lists_is_kept(tmp_path: Path) -> None:
    reading = Reading("A61", tmp_path)
    reading.build()
    reading.layer = Layer(_serve(reading.case["given"]["next"]))
    built = reading.build()
    expected = reading.case["expect"]
    assert built.counts == Counts(**expected["counts"])
    assert reading.builds.changed_keys(built)["changed"] == expected["changed_keys"]
    codes = {row["PERMIT_NO"]: row["STATUS"] for row in reading.rows(built)}
    assert codes["BP-1002"] == "9"


def test_c06_newer_types_are_read_exactly_and_unknown_ones_as_text(tmp_path: Path) -> None:
    reading = Reading("C06", tmp_path)
    built = reading.build()
    (row,) = reading.rows(built)
    for cell in reading.case["expect"]["cells"]:
        assert str(row[cell["column"]]) == cell["text"]
    types = {column.name: column.type for column in built.schema.columns}
    assert types["BIG"] == "int64"
    assert types["DAY"] == "date"
    (finding,) = [each for each in built.findings if each.kind == "field_type_unknown"]
    assert finding.examples == ["NEWTHING (esriFieldTypeSomethingNew)"]
    assert (FOLDER / "C06.layer.json").exists()
