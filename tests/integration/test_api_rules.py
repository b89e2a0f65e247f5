"""What holds of every route: keys, parameters, bodies, methods, and the form of every error."""

import json

import pytest
from tests.integration.running import Running, problem

from ploti.errors import MEANINGS, Code
from ploti.server.api.auth import LONGEST_BODY
from ploti.server.api.params import query_of

SUBSCRIPTIONS = "/v1/feeds/subscriptions"
DATASETS = "/v1/feeds/datasets"


def routes(api: Running) -> list[tuple[str, str, bool]]:
    """Method, an address that names nothing, and whether a key is needed, of every operation."""
    paths = api.get("/openapi.json").json()["paths"]
    return [
        (
            method.upper(),
            path.replace("{version}", "1").replace("{", "").replace("}", "")
            + ("?name=a.csv" if path.endswith("/push") else ""),
            bool(operation["security"]),
        )
        for path, operations in paths.items()
        for method, operation in operations.items()
    ]


def test_every_route_but_health_files_and_the_document_needs_a_key(api: Running) -> None:
    """R-167."""
    open_to_all = {path for _, path, needs_key in routes(api) if not needs_key}
    assert open_to_all == {"/healthz", "/readyz", "/openapi.json", "/files/blob"}
    for method, path, needs_key in routes(api):
        if needs_key:
            response = api.send(method, path, key=None)
            problem(response, 401, "unauthenticated")
            assert response.headers["www-authenticate"] == "Bearer"
            problem(api.send(method, path, key="ploti_wrong"), 401, "unauthenticated")


def test_the_staffs_routes_need_the_permission_admin_and_say_so(api: Running) -> None:
    staffs = [(method, path) for method, path, _ in routes(api) if path.startswith("/v1/admin")]
    assert len(staffs) >= 9
    for method, path in staffs:
        assert "'admin'" in problem(api.send(method, path), 403, "forbidden")["detail"]
    assert api.staff("GET", "/v1/admin/datasets").status_code == 200


@pytest.mark.parametrize("header", ["", "Basic abc", "Bearer", "Bearer a b", "ploti_x"])
def test_a_header_that_is_no_bearer_token_is_told_how_to_send_one(
    api: Running, header: str
) -> None:
    response = api.get(DATASETS, key=None, headers={"authorization": header})
    assert "Authorization: Bearer" in problem(response, 401, "unauthenticated")["detail"]


def test_the_scheme_bearer_may_be_written_in_any_case(api: Running) -> None:
    headers = {"authorization": f"bearer {api.keys.subscriber}"}
    assert api.get(DATASETS, key=None, headers=headers).status_code == 200


def test_a_body_is_not_read_before_its_key_is_admitted(api: Running) -> None:
    big = b"x" * (LONGEST_BODY + 1)
    problem(api.send("POST", SUBSCRIPTIONS, key="wrong", content=big), 401, "unauthenticated")
    push = "/v1/admin/datasets/ds_a/push?name=a"
    problem(api.send("POST", push, content=big), 403, "forbidden")


def test_an_address_that_is_none_is_a_problem(api: Running) -> None:
    assert "/nothing/here" in problem(api.get("/nothing/here"), 404, "not_found")["detail"]


def test_a_method_that_is_not_taken_is_a_problem_that_names_those_that_are(api: Running) -> None:
    for method in ("DELETE", "OPTIONS", "TRACE", "NONE"):
        response = api.send(method, DATASETS)
        assert method in problem(response, 405, "method_not_allowed")["detail"]
        assert response.headers["allow"] == "GET, HEAD"
    response = api.send("PUT", f"{SUBSCRIPTIONS}/sub_a")
    assert response.headers["allow"] == "DELETE, GET, HEAD, PATCH"
    response = api.send("HEAD", "/v1/admin/datasets/ds_a/check")
    assert response.status_code == 405


def test_head_answers_wherever_get_does_with_the_same_head(api: Running) -> None:
    for path in ("/healthz", "/openapi.json", DATASETS, SUBSCRIPTIONS):
        got, head = api.get(path), api.send("HEAD", path)
        assert head.status_code == got.status_code == 200
        assert head.headers == got.headers


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("foo=1", "foo", "no such parameter; there are cursor, limit, place, topic"),
        ("limit=1&limit=2", "limit", "given more than once"),
        ("limit=0", "limit", "must be 1 or more"),
        ("limit=501", "limit", "must be 500 or less"),
        ("limit=-1", "limit", "must be 1 or more"),
        ("limit=1.0", "limit", "'1.0' is no whole number"),
        ("limit=%2B5", "limit", "'+5' is no whole number"),
        ("limit=05", "limit", "'05' is no whole number"),
        ("limit=1e2", "limit", "'1e2' is no whole number"),
        ("limit=99999999999999999999", "limit", "is no whole number"),
        ("limit=", "limit", "has no value"),
        ("limit", "limit", "has no value"),
        ("place=", "place", "has no value"),
        ("Limit=5", "Limit", "no such parameter"),
    ],
)
def test_a_query_is_taken_as_it_is_meant_or_not_at_all(
    api: Running, query: str, field: str, message: str
) -> None:
    """S-41."""
    body = problem(api.get(f"{DATASETS}?{query}"), 400, "invalid_input")
    [fault] = body["errors"]
    assert fault["field"] == field
    assert message in fault["message"]
    assert message in body["detail"]


@pytest.mark.parametrize("wrong", ["yes", "1", "True", ""])
def test_a_switch_is_true_or_false(api: Running, wrong: str) -> None:
    path = f"/v1/admin/datasets/ds_a?dryRun={wrong}"
    body = problem(api.staff("PUT", path, content=b"{}"), 400, "invalid_input")
    assert body["errors"][0]["field"] == "dryRun"


def test_a_name_out_of_a_list_is_refused_with_the_list(api: Running) -> None:
    path = f"{DATASETS}/ds_a/versions/1?format=shapefile"
    detail = problem(api.get(path), 400, "invalid_input")["detail"]
    assert detail == "format: 'shapefile' is none of geoparquet, csv"


def test_all_faults_of_a_query_are_told_at_once(api: Running) -> None:
    body = problem(api.get(f"{DATASETS}?a=1&limit=x"), 400, "invalid_input")
    assert [fault["field"] for fault in body["errors"]] == ["a", "limit"]


def test_a_parameter_that_a_query_lacks_is_named(api: Running) -> None:
    for query in ("", "?dryRun=true"):
        response = api.staff("POST", f"/v1/admin/datasets/ds_a/push{query}", content=b"a")
        body = problem(response, 400, "invalid_input")
        assert body["errors"] == [{"field": "name", "message": "is missing"}]
    response = api.staff("POST", "/v1/admin/datasets/ds_a/push?name=a%2Fb", content=b"a")
    assert problem(response, 400, "invalid_input")["errors"][0]["field"] == "name"


@pytest.mark.parametrize("number", ["0x1", "01", "+1", "1_0", "-1", "abc", "99999999999999999999"])
def test_a_versions_number_has_one_form(api: Running, number: str) -> None:
    problem(api.get(f"{DATASETS}/ds_a/versions/{number}"), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"name": "\\ud800"}', "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"datasets": ["ds_a"], "nam": 1, "size": 2}', "nam: no such field; size: no such"),
        (b'{"name": 3}', "name: must be str, not int"),
        (b'{"datasets": ["ds_a", 7]}', "datasets[1]: must be str, not int"),
        (b'{"places": null}', "places: must be array, not null"),
    ],
)
def test_a_body_that_cannot_be_meant_is_told_on_one_line(
    api: Running, body: bytes, said: str
) -> None:
    found = problem(api.send("POST", SUBSCRIPTIONS, content=body), 400, "invalid_input")
    assert said in found["detail"]
    assert found["errors"][0]["message"] in found["detail"]


def test_each_unknown_field_of_a_body_is_named(api: Running) -> None:
    body = problem(api.send("POST", SUBSCRIPTIONS, json={"b": 1, "a": 2}), 400, "invalid_input")
    assert [fault["field"] for fault in body["errors"]] == ["a", "b"]


def test_a_body_over_the_limit_is_refused_however_it_comes(api: Running) -> None:
    big = b'{"name": "' + b"x" * LONGEST_BODY + b'"}'
    problem(api.send("POST", SUBSCRIPTIONS, content=big), 413, "too_large")


def test_a_failure_inside_tells_nothing_of_the_inside(
    api: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("/srv/ploti/secret")

    monkeypatch.setattr("ploti.server.service.read_catalogue.list_datasets", fail)
    response = api.get(DATASETS)
    problem(response, 500, "internal")
    assert "secret" not in response.text
    assert "RuntimeError" in "".join(capsys.readouterr())


def test_every_code_of_the_table_has_one_status_in_every_problem() -> None:
    assert {MEANINGS[code].status for code in Code} == {
        *(400, 401, 403, 404, 405, 408, 409, 410, 413, 429, 500, 503),
    }


def test_answers_are_kept_by_nobody_on_the_way(api: Running) -> None:
    for response in (api.get(DATASETS), api.get("/nothing"), api.get(f"{DATASETS}?x=1")):
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-content-type-options"] == "nosniff"


def test_health_and_readiness_need_no_key(api: Running) -> None:
    for path in ("/healthz", "/readyz"):
        response = api.get(path, key=None)
        assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_a_declaration_with_a_number_too_large_is_no_failure(api: Running) -> None:
    body = json.dumps({"id": "ds_big", "title": 10**400}).encode()
    response = api.staff("PUT", "/v1/admin/datasets/ds_big", content=body)
    problem(response, 400, "invalid_input")


def test_what_a_route_takes_is_worked_out_once_and_not_kept_anew_for_each_request(
    api: Running,
) -> None:
    api.get(f"{DATASETS}?limit=1")
    before = query_of.cache_info().misses
    for _ in range(3):
        api.get(f"{DATASETS}?limit=1")
    assert query_of.cache_info().misses == before


def test_a_full_disk_is_told_and_nothing_is_kept(api: Running) -> None:
    async def limit(pages: int) -> None:
        with api.store._writer.begin() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    before = api.get(SUBSCRIPTIONS).json()
    body = {"datasets": [f"ds_a{number}" for number in range(1_000)]}
    api.call(limit(1))
    try:
        said = problem(api.send("POST", SUBSCRIPTIONS, json=body), 503, "unavailable")
    finally:
        api.call(limit(1 << 30))
    assert said["detail"] == "The server's disk is full: make room on it, then try again"
    assert api.get(SUBSCRIPTIONS).json() == before


@pytest.mark.parametrize(
    "selection",
    [
        {"places": ["a" * 100_000]},
        {"places": ["A " * 50_000]},
        {"datasets": ["x" * 90_000] * 9},
        {"datasets": [f"ds_{number}" for number in range(1_001)]},
        {"topics": [f"not a topic {number}" for number in range(1_000)]},
        {"x" * 90_000: 1},
        {"datasets": ["ds_a"], "name": "x" * 90_000},
    ],
)
def test_a_selection_has_bounds_and_an_error_repeats_little_of_it(
    api: Running, selection: dict[str, object]
) -> None:
    response = api.send("POST", SUBSCRIPTIONS, json=selection)
    problem(response, 400, "invalid_input")
    assert len(response.content) < 5_000


def test_an_address_is_repeated_in_part_where_it_is_long(api: Running) -> None:
    assert len(problem(api.get("/" + "a" * 9_000), 404, "not_found")) < 200


def test_a_nul_is_told_and_never_reaches_the_database(api: Running) -> None:
    """PostgreSQL keeps none in a text."""
    problem(api.get(f"{SUBSCRIPTIONS}/sub%00a"), 404, "not_found")
    problem(api.get(f"{DATASETS}?place=us%00"), 400, "invalid_input")
    body = {"places": ["us"], "name": "a\0b"}
    problem(api.send("POST", SUBSCRIPTIONS, json=body), 400, "invalid_input")
    innocent = {"places": ["us"], "name": "a\\u0000b"}
    assert api.send("POST", SUBSCRIPTIONS, json=innocent).status_code == 201
