"""Cases A13 to A20, A66 and A69: rows that Socrata and CKAN give in pages, all of them once."""

import json
from pathlib import Path
from typing import Any

import pytest
import shapely
from aiohttp import web
from tests.cases.cases import FOLDER, case
from tests.fakes.builds import Builds, declare
from tests.fakes.fetched import fetched
from tests.fakes.paged_server import Datastore, Soda

from ploti.errors import SourceError
from ploti.model.version import Counts
from ploti.server.build.candidate import Candidate

SODA = {"kind": "socrata", "url": "https://data.example/resource/abcd-1234.json"}
CKAN = {"kind": "ckan", "url": "https://data.example/api/3/action/datastore_search?resource_id=1"}
PATHS = {"socrata": "/resource/abcd-1234.json", "ckan": "/api/3/action/datastore_search"}


def rows_of(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / name).read_text())
    return found


def read(folder: Path, server: Soda | Datastore | web.Response, kind: str) -> bytes:
    """What is fetched of a fake server."""

    async def answer(request: web.Request) -> web.Response:
        if isinstance(server, web.Response):
            return web.Response(body=server.body, content_type="application/json")
        return await server.answer(request)

    return fetched(folder, answer, kind=kind, path=PATHS[kind] + "?resource_id=1").bytes


def soda(number: str, rows: str | None = None) -> Soda:
    """The server of a case; `rows` is the file of its rows where there are several."""
    given = case(number)
    serve = given.get("serve", {"default_limit": 1000, "max_limit": 50000})
    server = Soda(rows_of(rows or serve["rows_file"]), serve)
    server.page_size = given["given"].get("page_size")
    server.headers = given["given"].get("answer_headers") or serve.get("answer_headers") or {}
    return server


def build(builds: Builds, state: bytes) -> Candidate:
    result = builds.build(state, name="socrata.rows")
    assert isinstance(result, Candidate), result
    return result


def places(builds: Builds, built: Candidate) -> dict[str, Any]:
    """The geometry of each key."""
    return {
        row["id"]: shapely.from_wkb(bytes(row["geometry"])) if row["geometry"] else None
        for row in builds.rows(built)
    }


@pytest.mark.parametrize("number", ["A13", "A14", "A16"])
def test_all_rows_of_a_socrata_source_come_once(number: str, tmp_path: Path) -> None:
    """A13 more rows than a page has, A14 no order of its own, A16 a field that comes last."""
    given, expected = case(number), case(number)["expect"]
    state = read(tmp_path, soda(number), "socrata")
    builds = Builds(tmp_path, declare(key=given["given"]["key"], source=SODA))
    built = build(builds, state)
    assert built.row_count == expected["row_count"]
    names = [column.name for column in built.schema.columns]
    assert not [name for name in names if name.startswith(":")]
    if "columns" in expected:
        assert names == expected["columns"]
        closed = [row["closed_on"] for row in builds.rows(built)]
        assert closed.count(None) == expected["nulls"]["closed_on"]


def test_a15_what_the_source_numbers_anew_is_no_change(tmp_path: Path) -> None:
    given = case("A15")
    builds = Builds(tmp_path, declare(key=given["given"]["key"], source=SODA))
    for name in ("previous", "next"):
        server = soda("A15", given["given"][name])
        built = build(builds, read(tmp_path / name, server, "socrata"))
    assert built.counts == Counts(**given["expect"]["counts"])
    assert builds.changed_keys(built)["changed"] == given["expect"]["changed_keys"]


def test_a17_a_local_date_time_gets_no_zone_and_moves_no_hour(tmp_path: Path) -> None:
    given = case("A17")
    server = soda("A17")
    server.headers = {
        "X-SODA2-Fields": '["permit_no", "received"]',
        "X-SODA2-Types": json.dumps(["text", given["given"]["types"]["received"]]),
    }
    builds = Builds(tmp_path, declare(key=given["given"]["key"], source=SODA))
    built = build(builds, read(tmp_path, server, "socrata"))
    assert built.schema.column("received").type == "datetime"
    rows = sorted(builds.rows(built), key=lambda row: str(row["permit_no"]))
    assert [row["received"].isoformat() for row in rows] == given["expect"]["column"]["received"]


@pytest.mark.parametrize("number", ["A19", "A69"])
@pytest.mark.parametrize("told", [True, False])
def test_a_place_column_of_socrata_is_the_geometry(number: str, told: bool, tmp_path: Path) -> None:
    """A19 two forms of a place, A69 half a place, 0,0 and a flag; with and without types told."""
    given = case(number)
    server = soda(number)
    if told:
        server.headers = {
            "X-SODA2-Fields": '["id", "location"]',
            "X-SODA2-Types": '["text", "location"]',
        }
    builds = Builds(tmp_path, declare(key=given["given"]["key"], source=SODA))
    built = build(builds, read(tmp_path, server, "socrata"))
    found = places(builds, built)
    assert len(found) == given["expect"]["row_count"]
    for expected in given["expect"]["geometry"]:
        place = found[expected["key"]]
        if expected["type"] is None:
            assert place is None
        else:
            assert place.geom_type == expected["type"]
            assert [place.x, place.y] == expected["lonlat"]
    addresses = [row["location"] for row in builds.rows(built) if row["location"]]
    assert any("SAMPLE ST" in text for text in addresses)


def test_a_column_that_is_geometry_and_nothing_else_is_not_there_twice(tmp_path: Path) -> None:
    shape = {"type": "Polygon", "coordinates": [[[0, 0], [0, 1], [1, 1], [0, 0]]]}
    server = Soda([{"id": "1", "the_geom": shape}, {"id": "2"}], case("A13")["serve"])
    server.headers = {
        "X-SODA2-Fields": '["id", "the_geom", "area"]',
        "X-SODA2-Types": '["text", "polygon", "number"]',
    }
    builds = Builds(tmp_path, declare(key=["id"], source=SODA))
    built = build(builds, read(tmp_path, server, "socrata"))
    assert [(c.name, c.type) for c in built.schema.columns] == [
        ("id", "string"),
        ("area", "float64"),
        ("geometry", "geometry"),
    ]
    assert places(builds, built)["1"].geom_type == "Polygon"


def test_a_place_column_with_a_declared_type_stays_a_column(tmp_path: Path) -> None:
    declaration = declare(key=["id"], source=SODA, columns={"location": "json"})
    builds = Builds(tmp_path, declaration)
    built = build(builds, read(tmp_path, soda("A19"), "socrata"))
    assert built.schema.geometry is None
    assert built.schema.column("location").type == "json"


def test_a66_a_column_that_is_null_throughout_is_still_a_column(tmp_path: Path) -> None:
    given = case("A66")
    builds = Builds(tmp_path, declare(key=given["given"]["key"], source=SODA))
    for name in ("previous", "next"):
        server = soda("A66", given["given"][name])
        built = build(builds, read(tmp_path / name, server, "socrata"))
    assert built.counts == Counts(**given["expect"]["counts"])
    assert built.schema_change is None


def test_a20_a_limit_that_is_lowered_in_silence_loses_no_row(tmp_path: Path) -> None:
    given = case("A20")
    state = read(tmp_path, Datastore(rows_of("A20.rows.json"), given["serve"]), "ckan")
    builds = Builds(tmp_path, declare(key=given["given"]["key"], source=CKAN))
    built = build(builds, state)
    assert built.row_count == given["expect"]["row_count"]
    assert [column.name for column in built.schema.columns] == ["ref", "use"]
    named = Builds(tmp_path / "named", declare(key=["_id"], source=CKAN))
    named.folder.mkdir()
    assert [c.name for c in build(named, state).schema.columns] == ["_id", "ref", "use"]


def test_the_types_that_a_datastore_states_are_kept(tmp_path: Path) -> None:
    rows = [{"_id": 1, "n": 7, "code": "007", "at": "2026-01-02T03:04:05", "share": 1}]
    server = Datastore(rows, case("A20")["serve"])
    server.fields = [
        {"id": "_id", "type": "int"},
        {"id": "n", "type": "int4"},
        {"id": "code", "type": "text", "info": {"notes": "As on the door"}},
        {"id": "at", "type": "timestamp"},
        {"id": "share", "type": "float8"},
        {"id": "none", "type": "bool"},
    ]
    builds = Builds(tmp_path, declare(key=["n"], source=CKAN))
    built = build(builds, read(tmp_path, server, "ckan"))
    assert [(c.name, c.type, c.description) for c in built.schema.columns] == [
        ("n", "int64", ""),
        ("code", "string", "As on the door"),
        ("at", "datetime", ""),
        ("share", "float64", ""),
        ("none", "boolean", ""),
    ]


def test_pages_that_repeat_rows_are_no_whole_read(tmp_path: Path) -> None:
    server = Datastore(rows_of("A20.rows.json"), case("A20")["serve"])
    server.repeats = True
    with pytest.raises(SourceError, match="changed while it was read, at row 5 of 12"):
        read(tmp_path, server, "ckan")


class Moving(Datastore):
    """Once its first page was given, its first row leaves and another comes at the end."""

    moves = 1

    async def answer(self, request: web.Request) -> web.Response:
        answer = await super().answer(request)
        if self.moves and int(request.query["limit"]) > 1:
            self.moves -= 1
            self.rows = [*self.rows[1:], {"_id": 99, "ref": "new"}]
        return answer


def test_a_row_that_moves_up_while_pages_are_read_is_in_one_of_them(tmp_path: Path) -> None:
    """The count stays as it was and all ids differ: only where the pages meet shows it."""
    rows = [{"_id": n, "ref": f"r{n}"} for n in range(12)]
    state = read(tmp_path, Moving(rows, case("A20")["serve"]), "ckan")
    found = [json.loads(line)["_id"] for line in state.splitlines()[1:]]
    assert found == [*range(1, 12), 99]
    restless = Moving(rows, case("A20")["serve"])
    restless.moves = 99
    with pytest.raises(SourceError, match="changed while it was read"):
        read(tmp_path / "again", restless, "ckan")


def test_a_source_that_gives_a_row_at_a_time_is_read_whole(tmp_path: Path) -> None:
    server = Datastore([{"_id": n, "ref": f"r{n}"} for n in range(5)], {"rows_max": 1})
    assert len(read(tmp_path, server, "ckan").splitlines()) == 1 + 5


@pytest.mark.parametrize(
    ("kind", "chosen", "asked"),
    [
        ("ckan", "fields=ref,use", ("fields", "ref,use,_id")),
        ("socrata", "$select=ref,use", ("$select", ":*,ref,use")),
    ],
)
def test_columns_that_the_address_chooses_are_asked_for_beside_the_rows_ids(
    kind: str, chosen: str, asked: tuple[str, str], tmp_path: Path
) -> None:
    seen: list[str | None] = []
    server = (
        soda("A13")
        if kind == "socrata"
        else Datastore(rows_of("A20.rows.json"), case("A20")["serve"])
    )

    async def answer(request: web.Request) -> web.Response:
        if request.query.get("$select") != "count(*)":
            seen.append(request.query.get(asked[0]))
        return await server.answer(request)

    fetched(tmp_path, answer, kind=kind, path=f"{PATHS[kind]}?{chosen}")
    assert {*seen} == {asked[1]}


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("ckan", b'{"success": false, "error": {"message": "no such resource"}}', "no such"),
        ("socrata", b'{"error": true, "message": "no such view"}', "no such view"),
        ("socrata", b"[{}", "no rows"),
    ],
)
def test_an_error_inside_an_answer_that_is_ok_is_seen(
    kind: str, body: bytes, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match=said):
        read(tmp_path, web.Response(body=body), kind)
