"""The log over REST: cursors, filters, and requests that wait for what comes next."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.fakes.releases import release
from tests.integration.running import Running, problem, running

from ploti.model.ids import DatasetId

START = "evt_000000000000"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, most_waits=3) as server:
        yield server


def subscribe(api: Running, *datasets: str) -> str:
    response = api.send("POST", "/v1/feeds/subscriptions", json={"datasets": list(datasets)})
    assert response.status_code == 201, response.text
    identity: str = response.json()["id"]
    return f"/v1/feeds/subscriptions/{identity}"


def ids(response: httpx2.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [event["id"] for event in response.json()["events"]]


def wait_until_waiting(api: Running, count: int) -> None:
    for _ in range(500):
        if len(api.backend.waiters._waits) == count:
            return
        time.sleep(0.01)
    raise AssertionError(f"{len(api.backend.waiters._waits)} wait, not {count}")


def test_pages_follow_each_other_by_their_cursors_r128_r129(api: Running) -> None:
    for name in "abcde":
        api.declare(f"ds_{name}")
    log = subscribe(api, *(f"ds_{name}" for name in "abcde")) + "/events"
    first = api.get(f"{log}?limit=2").json()
    second = api.get(f"{log}?limit=2&cursor={first['nextCursor']}").json()
    rest = api.get(f"{log}?cursor={second['nextCursor']}").json()
    numbers = [event["id"] for page in (first, second, rest) for event in page["events"]]
    assert numbers == [f"evt_{n:012d}" for n in range(1, 6)]
    end = api.get(f"{log}?cursor={rest['nextCursor']}").json()
    assert end == {"events": [], "nextCursor": rest["nextCursor"]}


def test_a_page_has_a_hundred_events_unless_told_and_five_hundred_at_most_r130(
    api: Running,
) -> None:
    api.declare("ds_many")
    log = subscribe(api, "ds_many") + "/events"
    for _ in range(100):
        api.write(lambda tx: release(tx, DatasetId("ds_many")))
    assert ids(api.get(log)) == [f"evt_{n:012d}" for n in range(1, 101)]
    assert len(ids(api.get(f"{log}?limit=500"))) == 101
    problem(api.get(f"{log}?limit=501"), 400, "invalid_input")


def test_a_filter_that_keeps_nothing_moves_the_cursor_all_the_same(api: Running) -> None:
    """R-131, R-132."""
    api.declare("ds_a")
    log = subscribe(api, "ds_a") + "/events"
    page = api.get(f"{log}?types=feed.dataset.stale,feed.dataset.removed").json()
    assert page == {"events": [], "nextCursor": "evt_000000000001"}
    assert ids(api.get(f"{log}?types=feed.dataset.added")) == ["evt_000000000001"]


@pytest.mark.parametrize("types", ["feed.dataset.gone", "added", ",", "feed.dataset.added,"])
def test_a_type_that_is_none_is_refused_with_those_there_are_s41(api: Running, types: str) -> None:
    body = problem(api.get(f"{subscribe(api, 'ds_a')}/events?types={types}"), 400, "invalid_input")
    assert "feed.dataset.schema_changed" in body["detail"]


@pytest.mark.parametrize("cursor", ["1", "evt_1", "evt_000000000002", "evt_00000000000x"])
def test_a_cursor_that_this_log_never_gave_is_refused(api: Running, cursor: str) -> None:
    """R-136."""
    api.declare("ds_a")
    path = f"{subscribe(api, 'ds_a')}/events?cursor={cursor}"
    for wait in ("", "&wait=20"):
        assert problem(api.get(path + wait), 400, "invalid_input")["errors"][0]["field"] == "cursor"


@pytest.mark.parametrize("wait", ["31", "-1", "0.5", "x"])
def test_a_wait_is_whole_seconds_up_to_thirty(api: Running, wait: str) -> None:
    problem(api.get(f"{subscribe(api, 'ds_a')}/events?wait={wait}"), 400, "invalid_input")


def test_a_log_of_nobody_is_not_found_and_not_waited_for(api: Running) -> None:
    problem(api.get("/v1/feeds/subscriptions/sub_none/events?wait=20"), 404, "not_found")


def test_a_wait_with_something_there_answers_at_once(api: Running) -> None:
    api.declare("ds_a")
    log = subscribe(api, "ds_a")
    assert ids(api.get(f"{log}/events?wait=30")) == ["evt_000000000001"]
    empty = api.get(f"{log}/events?wait=30&types=feed.dataset.removed").json()
    assert empty == {"events": [], "nextCursor": "evt_000000000001"}


def test_a_wait_with_nothing_new_ends_when_its_time_is_up(api: Running) -> None:
    log = subscribe(api, "ds_a")
    began = time.monotonic()
    assert api.get(f"{log}/events?wait=1").json() == {"events": [], "nextCursor": START}
    assert time.monotonic() - began >= 1


def test_an_event_ends_the_waits_on_its_log_and_no_others(api: Running) -> None:
    first, other = subscribe(api, "ds_a"), subscribe(api, "ds_b")
    waiting = api.start("GET", f"{first}/events?wait=30")
    still = api.start("GET", f"{other}/events?wait=30")
    wait_until_waiting(api, 2)
    api.declare("ds_a")
    assert ids(waiting.result(timeout=60)) == ["evt_000000000001"]
    assert not still.done()
    api.declare("ds_b")
    assert ids(still.result(timeout=60)) == ["evt_000000000001"]


def test_an_event_that_the_filter_drops_ends_the_wait_with_a_moved_cursor(api: Running) -> None:
    log = subscribe(api, "ds_a")
    waiting = api.start("GET", f"{log}/events?wait=30&types=feed.dataset.stale")
    wait_until_waiting(api, 1)
    api.declare("ds_a")
    page = waiting.result(timeout=60).json()
    assert page == {"events": [], "nextCursor": "evt_000000000001"}


def test_a_key_over_its_waits_is_told_when_to_come_again(api: Running) -> None:
    log = subscribe(api, "ds_a")
    waits = [api.start("GET", f"{log}/events?wait=30") for _ in range(3)]
    wait_until_waiting(api, 3)
    response = api.get(f"{log}/events?wait=1")
    problem(response, 429, "rate_limited")
    assert response.headers["retry-after"] == "1"
    assert api.get(f"{log}/events").status_code == 200
    others = api.staff("GET", f"{log}/events?wait=1")
    assert others.status_code == 200
    api.declare("ds_a")
    assert [ids(wait.result(timeout=60)) for wait in waits] == [["evt_000000000001"]] * 3
    assert ids(api.get(f"{log}/events?wait=1")) == ["evt_000000000001"]


def test_closing_answers_what_waits_with_the_page_as_it_is(api: Running) -> None:
    waiting = api.start("GET", f"{subscribe(api, 'ds_a')}/events?wait=30")
    wait_until_waiting(api, 1)
    api.loop.call_soon_threadsafe(api.backend.waiters.close)
    assert waiting.result(timeout=60).json() == {"events": [], "nextCursor": START}


def test_a_wait_on_a_log_that_is_deleted_ends_at_once(api: Running) -> None:
    """S-42: the log of a deleted subscription answers 404."""
    log = subscribe(api, "ds_a")
    waiting = api.start("GET", f"{log}/events?wait=30")
    wait_until_waiting(api, 1)
    assert api.send("DELETE", log).status_code == 204
    problem(waiting.result(timeout=60), 404, "not_found")
