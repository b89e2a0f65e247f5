"""Pages that are asked for plainly skip the routes, and are what the routes would have answered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integration.running import Running, problem, running
from tests.integration.test_api_events import START, ids, subscribe

from ploti.server.service import read_events
from ploti.server.service.authenticate import key_digest


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as server:
        for name in "abc":
            server.declare(f"ds_{name}")
        yield server


@pytest.fixture
def routed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logs that were read by the route."""
    seen: list[str] = []
    read = read_events.read_events

    def noting(*args: Any, **asked: Any) -> Any:
        seen.append(str(args[2]))
        return read(*args, **asked)

    monkeypatch.setattr(read_events, "read_events", noting)
    return seen


def known(api: Running) -> str:
    """A log, asked for once: from then on its key is known."""
    log = subscribe(api, "ds_a", "ds_b", "ds_c") + "/events"
    assert len(ids(api.get(log))) == 3
    return log


def headers(response: httpx2.Response) -> list[tuple[str, str]]:
    return sorted(response.headers.multi_items())


@pytest.mark.parametrize(
    ("plain", "otherwise"),
    [
        ("", "?limit=%31%30%30"),
        ("?limit=2", "?limit=%32"),
        (f"?cursor={START}", f"?cursor={START}&limit=%31%30%30"),
        ("?limit=1&cursor=evt_000000000001", "?limit=%31&cursor=evt_000000000001"),
        ("?cursor=evt_000000000003&limit=500", "?cursor=evt%5F000000000003&limit=500"),
        ("?wait=30", "?wait=%33%30"),
        ("?wait=0&cursor=evt_000000000003", "?cursor=evt%5F000000000003"),
    ],
)
def test_a_plain_page_is_what_the_route_answers(
    api: Running, routed: list[str], plain: str, otherwise: str
) -> None:
    log = known(api)
    routed.clear()
    short = api.get(log + plain)
    assert routed == []
    long = api.get(log + otherwise)
    assert len(routed) == 1
    assert (short.status_code, short.content) == (200, long.content)
    assert headers(short) == headers(long)


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("?limit=501", 400, "invalid_input"),
        ("?limit=1&limit=1", 400, "invalid_input"),
        ("?wait=31", 400, "invalid_input"),
        ("?wait=", 400, "invalid_input"),
        ("?after=evt_000000000001", 400, "invalid_input"),
        ("?cursor=evt_000000000004", 400, "invalid_input"),
        ("?cursor=evt_000000000004&wait=9", 400, "invalid_input"),
    ],
)
def test_what_is_refused_is_refused_by_the_route(
    api: Running, query: str, status: int, code: str
) -> None:
    problem(api.get(known(api) + query), status, code)


def test_a_head_has_the_length_of_its_page_and_other_methods_are_not_taken(api: Running) -> None:
    log = known(api)
    assert headers(api.send("HEAD", log)) == headers(api.get(log))
    problem(api.send("POST", log), 405, "method_not_allowed")
    problem(api.get(log.replace("/events", "/event")), 404, "not_found")


def test_a_key_that_ends_reads_no_page_more(api: Running) -> None:
    log = known(api)
    assert api.get(log).status_code == 200
    (listed,) = [
        each
        for each in api.staff("GET", "/v1/admin/keys").json()["keys"]
        if api.keys.subscriber.startswith(each["prefix"])
    ]
    assert api.staff("DELETE", f"/v1/admin/keys/{listed['id']}").is_success
    problem(api.get(log), 401, "unauthenticated")
    problem(api.get(log, key=None), 401, "unauthenticated")


def test_a_log_of_another_workspace_is_not_found(api: Running) -> None:
    known(api)
    problem(api.get("/v1/feeds/subscriptions/sub_of_another/events"), 404, "not_found")


@pytest.mark.parametrize("path", ["{log}", "{log}?limit=501", "{log}?wait=1&cursor={end}"])
def test_a_page_counts_once_against_its_keys_limit_whichever_way_it_goes(
    tmp_path: Path, path: str
) -> None:
    with running(tmp_path) as api:
        log = subscribe(api, "ds_nowhere") + "/events"
        api.get(log)
        counted: list[str] = []
        buckets = api.backend.limits._keys
        take = buckets.take
        buckets.take = lambda sender: counted.append(sender) or take(sender)  # type: ignore[method-assign,func-returns-value]
        api.get(path.format(log=log, end=START))
        assert counted == [key_digest(api.keys.subscriber)]
