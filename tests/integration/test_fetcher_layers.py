"""Layers of ArcGIS servers that answer oddly: what is asked, what is proved, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.cases.cases import case
from tests.fakes.builds import Builds, declare
from tests.fakes.fetched import Answering, fetched
from tests.fakes.layer_server import Layer

from ploti.errors import SourceError
from ploti.server.adapters.fetcher import fetcher
from ploti.server.build.candidate import Candidate

SOURCE = {"kind": "arcgis", "url": "https://gis.example/arcgis/rest/services/P/MapServer/0"}


def layer(**changed: Any) -> Layer:
    return Layer(case("A01")["serve"] | changed)


def read(folder: Path, server: Layer, *, query: str = "", answer: Answering | None = None) -> bytes:
    path = server.path + query
    return fetched(folder, answer or server.answer, kind="arcgis", path=path).bytes


def ids(state: bytes) -> list[int]:
    """The object ids of a state's rows, after its description."""
    rows = [json.loads(line) for line in state.decode().splitlines()[1:] if line]
    return sorted(row["attributes"]["OBJECTID"] for row in rows)


def build(folder: Path, state: bytes, **settings: Any) -> tuple[Builds, Candidate]:
    builds = Builds(folder, declare(source=SOURCE, **settings))
    result = builds.build(state, name="arcgis.rows")
    assert isinstance(result, Candidate), result
    return builds, result


def test_a_server_that_ignores_offsets_is_read_by_its_ids(tmp_path: Path) -> None:
    honours = [name for name in case("A01")["serve"]["honours"] if name != "resultOffset"]
    assert ids(read(tmp_path, layer(honours=honours))) == [1, 2, 3, 4, 5, 6, 7]


def test_a_server_that_refuses_offsets_which_it_says_it_knows_is_read_by_its_ids(
    tmp_path: Path,
) -> None:
    server = layer()

    async def answer(request: web.Request) -> web.Response:
        if "resultOffset" in request.query:
            return web.json_response({"error": {"code": 400, "message": "Pagination: no"}})
        return await server.answer(request)

    assert ids(read(tmp_path, server, answer=answer)) == [1, 2, 3, 4, 5, 6, 7]


class Unnumbered:
    """A table whose rows have no ids, a few at a time; some of them are alike."""

    def __init__(self, count: int, *, ordered: bool = True) -> None:
        self.rows = [{"attributes": {"a": f"{n // 2:03d}", "b": None}} for n in range(count)]
        self.ordered = ordered
        self.asked: list[str | None] = []

    async def answer(self, request: web.Request) -> web.Response:
        query = request.query
        if "returnIdsOnly" in query:
            return web.json_response({"error": {"code": 400, "message": "no such field"}})
        if "returnCountOnly" in query:
            return web.json_response({"count": len(self.rows)})
        if "resultOffset" not in query:
            fields = [{"name": name, "type": "esriFieldTypeString"} for name in "ab"]
            about = {"type": "Table", "fields": fields, "maxRecordCount": 3}
            return web.json_response(about | {"supportsPagination": True})
        self.asked.append(query.get("orderByFields"))
        turn = 0 if self.ordered else 2 * len(self.asked) % len(self.rows)
        rows, start = self.rows[turn:] + self.rows[:turn], int(query["resultOffset"])
        return web.json_response({"features": rows[start : start + 3]})


def test_a_table_without_object_ids_is_read_in_the_order_of_its_columns(tmp_path: Path) -> None:
    server = Unnumbered(11)
    state = read(tmp_path, layer(), answer=server.answer)
    rows = [json.loads(line) for line in state.decode().splitlines()[1:]]
    assert rows == server.rows
    assert {*server.asked} == {"a,b"}
    _, built = build(tmp_path, state)
    assert built.row_count == 11
    empty = read(tmp_path / "empty", layer(), answer=Unnumbered(0).answer)
    assert len(empty.splitlines()) == 1


def test_a_table_without_object_ids_that_keeps_no_order_is_not_taken_for_whole(
    tmp_path: Path,
) -> None:
    with pytest.raises(SourceError, match="changed while it was read"):
        read(tmp_path, layer(), answer=Unnumbered(11, ordered=False).answer)


@pytest.mark.parametrize("odd", ["twice", "others"])
def test_rows_that_come_twice_or_unasked_fail_the_read(odd: str, tmp_path: Path) -> None:
    server = layer(honours=["where", "objectIds", "returnIdsOnly", "returnCountOnly"])

    async def answer(request: web.Request) -> web.Response:
        if "objectIds" not in request.query:
            return await server.answer(request)
        features = server.features[:3]
        return web.json_response({"features": features * 2 if odd == "twice" else features[::-1]})

    if odd == "others":
        server.about = server.about.replace('"maxRecordCount": 3', '"maxRecordCount": 2')
    with pytest.raises(SourceError, match="rows twice, or with other object ids"):
        read(tmp_path, server, answer=answer)


def test_rows_that_are_listed_and_never_given_fail_the_read(tmp_path: Path) -> None:
    server = layer()

    async def answer(request: web.Request) -> web.Response:
        if "returnCountOnly" in request.query:
            return web.json_response({"count": 8})
        return await server.answer(request)

    with pytest.raises(SourceError, match="says that it has 8 rows, and gave 7 of them"):
        read(tmp_path, server, answer=answer)


def test_a_layer_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    server = layer()
    lists = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal lists
        if "returnIdsOnly" in request.query:
            lists += 1
            if lists == 2:
                server.text = server.text.replace('"OBJECTID": 7', '"OBJECTID": 8')
        return await server.answer(request)

    assert ids(read(tmp_path, server, answer=answer)) == [1, 2, 3, 4, 5, 6, 8]
    assert lists == 4


def test_a_condition_in_the_address_goes_along_with_every_question(tmp_path: Path) -> None:
    server = layer()
    read(tmp_path, server, query="?where=STATUS%3D'ISSUED'")
    asked = [query for query in server.asked if query.get("f") == "json" and len(query) > 1]
    assert {query["where"] for query in asked} == {"STATUS='ISSUED'"}


def test_a_page_that_is_too_large_is_asked_for_with_fewer_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher, "_LARGEST_PAGE", 1500)
    server = layer(page_cap=100)
    server.about = server.about.replace('"maxRecordCount": 3', '"maxRecordCount": 100')
    server.text = json.dumps([each | {"padding": "x" * 200} for each in json.loads(server.text)])
    assert ids(read(tmp_path, server)) == [1, 2, 3, 4, 5, 6, 7]


def test_a_group_of_layers_is_refused(tmp_path: Path) -> None:
    server = layer()
    server.about = json.dumps({"type": "Group Layer", "name": "All"})
    with pytest.raises(SourceError, match="Group Layer, which has no rows: name a layer of it"):
        read(tmp_path, server)


def test_a_token_that_is_refused_is_no_matter_of_trying_again(tmp_path: Path) -> None:
    asked = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return web.json_response({"error": {"code": 499, "message": "Token Required"}})

    with pytest.raises(SourceError, match="499 Token Required"):
        read(tmp_path, layer(), answer=answer)
    assert asked == 1


def test_a_page_about_an_error_is_no_layer(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="<html>Sign in</html>", content_type="text/html")

    with pytest.raises(SourceError, match="HTML page"):
        read(tmp_path, layer(), answer=answer)


def test_a_table_without_shapes_and_an_empty_layer_have_their_columns(tmp_path: Path) -> None:
    server = layer()
    about = json.loads(server.about)
    del about["geometryType"]
    server.about = json.dumps(about)
    server.text = "[]"
    builds, built = build(tmp_path, read(tmp_path, server))
    assert built.row_count == 0
    assert [(c.name, c.type) for c in built.schema.columns] == [
        ("PERMIT_NO", "string"),
        ("STATUS", "string"),
    ]
    assert builds.rows(built) == []


def test_what_a_server_makes_up_is_left_out_unless_it_is_the_key(tmp_path: Path) -> None:
    server = layer()
    about = json.loads(server.about)
    about["globalIdField"] = "GlobalID"
    about["fields"] += [
        {"name": "GlobalID", "type": "esriFieldTypeGlobalID"},
        {"name": "Shape", "type": "esriFieldTypeGeometry"},
        {"name": "Shape__Area", "type": "esriFieldTypeDouble"},
        {"name": "SHAPE.STLength()", "type": "esriFieldTypeDouble"},
    ]
    server.about = json.dumps(about)
    state = read(tmp_path, server)
    (tmp_path / "plain").mkdir()
    _, built = build(tmp_path / "plain", state, key=["PERMIT_NO"])
    assert [column.name for column in built.schema.columns] == ["PERMIT_NO", "STATUS", "geometry"]
    _, named = build(tmp_path, state, key=["OBJECTID"], columns={"GlobalID": "string"})
    assert [column.name for column in named.schema.columns] == [
        *("OBJECTID", "PERMIT_NO", "STATUS", "GlobalID", "geometry"),
    ]
    assert named.schema.column("OBJECTID").type == "int64"


def test_a_bare_nan_among_the_values_is_null_and_counted(tmp_path: Path) -> None:
    server = layer(page_cap=100, raw_features=True)
    about = json.loads(server.about)
    about["fields"].append({"name": "AREA", "type": "esriFieldTypeDouble"})
    server.about = json.dumps(about)
    features = json.loads(server.text)
    for place, feature in enumerate(features):
        feature["attributes"]["AREA"] = float("nan") if place == 0 else 1
    server.text = json.dumps(features)
    builds, built = build(tmp_path, read(tmp_path, server), key=["PERMIT_NO"])
    assert built.schema.column("AREA").type == "float64"
    assert [row["AREA"] for row in builds.rows(built)].count(None) == 1
    assert "not_a_number" in {finding.kind for finding in built.findings}
