"""What each call sends and how its answer is read, without a socket."""

import json
from io import BytesIO
from typing import Any

import pytest

from ploti.client import endpoints
from ploti.client.calls import Answer, Call, Upload
from ploti.errors import ConfigError, TransportError
from ploti.model.event import Event, UnknownEvent, Updated

STALE = {
    "id": "evt_000000000043",
    "type": "feed.dataset.updated",
    "timestamp": "2026-10-18T06:13:02.000Z",
    "subscriptionId": "sub_8f3k2m",
    "data": {
        "datasetId": "ds_a",
        "version": 43,
        "previousVersion": 42,
        "schemaVersion": "2.1",
        "counts": {"added": 212, "changed": 38, "removed": 3},
    },
}
UNKNOWN = STALE | {"id": "evt_000000000044", "type": "feed.dataset.renamed"}


def answer(body: object, **headers: str) -> Answer:
    return Answer(status=200, headers=headers, body=json.dumps(body).encode())


def test_reading_the_log_names_cursor_limit_types_and_wait_as_the_contract_does_r173_r128() -> None:
    call = endpoints.list_events(
        "sub_8f3k2m",
        cursor="evt_000000000042",
        limit=100,
        types=["feed.dataset.added", "feed.dataset.removed"],
        wait=30,
    )
    assert (call.method, call.path) == ("GET", "/v1/feeds/subscriptions/sub_8f3k2m/events")
    assert call.query == {
        "cursor": "evt_000000000042",
        "limit": "100",
        "types": "feed.dataset.added,feed.dataset.removed",
        "wait": "30",
    }
    assert call.extra == 30


def test_what_is_not_given_is_not_sent() -> None:
    assert endpoints.list_events("sub_8f3k2m").query == {}
    assert endpoints.list_datasets(place="us/fl").query == {"place": "us/fl"}


def test_an_id_cannot_leave_its_place_in_the_path() -> None:
    assert (
        endpoints.get_dataset("../admin?x=1#y").path == "/v1/feeds/datasets/..%2Fadmin%3Fx%3D1%23y"
    )


def test_events_are_typed_by_their_type_and_one_of_an_unknown_type_is_kept_as_it_is_s50() -> None:
    call = endpoints.list_events("sub_8f3k2m")
    listed = call.read(answer({"events": [STALE, UNKNOWN], "nextCursor": "evt_000000000044"}))
    known, unknown = listed.items
    assert isinstance(known, Event)
    assert isinstance(known.data, Updated)
    assert known.data.counts.changed == 38
    assert isinstance(unknown, UnknownEvent)
    assert unknown.data["previousVersion"] == 42


def test_a_page_without_items_is_not_the_end_of_a_log_but_a_cursor_that_stays_is_r132() -> None:
    call = endpoints.list_events("sub_8f3k2m", cursor="evt_000000000042", types=["feed.x"])
    following = call.after(call.read(answer({"events": [], "nextCursor": "evt_000000000900"})))
    assert following is not None
    assert following.query == {"cursor": "evt_000000000900", "types": "feed.x"}
    at_end = following.read(answer({"events": [], "nextCursor": "evt_000000000900"}))
    assert following.after(at_end) is None


def test_an_empty_log_read_without_a_cursor_ends_at_once_s40() -> None:
    call = endpoints.list_events("sub_8f3k2m")
    assert call.after(call.read(answer({"events": [], "nextCursor": "evt_000000000000"}))) is None


def test_a_list_goes_on_by_its_own_parameter_until_the_next_cursor_is_null_s43() -> None:
    call = endpoints.list_versions("ds_a", limit=1)
    following = call.after(call.read(answer({"versions": [], "nextCursor": 7})))
    assert following is not None
    assert following.query == {"limit": "1", "after": "7"}
    assert following.after(following.read(answer({"versions": [], "nextCursor": None}))) is None


def test_a_new_subscription_names_what_it_selects() -> None:
    call = endpoints.create_subscription(name="Permits", places=["us/fl"], datasets=["ds_a"])
    assert isinstance(call.body, bytes)
    assert json.loads(call.body) == {
        "name": "Permits",
        "places": ["us/fl"],
        "topics": [],
        "datasets": ["ds_a"],
    }


def test_a_patch_says_only_what_is_to_change_and_can_empty_a_list() -> None:
    call = endpoints.update_subscription("sub_8f3k2m", topics=[])
    assert (call.method, call.body) == ("PATCH", b'{"topics":[]}')


def test_a_declaration_is_put_at_its_own_id_and_one_without_is_refused_here() -> None:
    call = endpoints.apply_dataset({"id": "ds_a", "title": "A"}, dry_run=True)
    assert (call.method, call.path, call.query) == (
        "PUT",
        "/v1/admin/datasets/ds_a",
        {"dryRun": "true"},
    )
    with pytest.raises(ConfigError, match="id: ds_"):
        endpoints.apply_dataset({"title": "A"})


def test_a_push_is_read_while_it_is_sent_under_the_files_own_name_for_up_to_an_hour() -> None:
    call = endpoints.push_state("ds_a", "some/folder/permits.csv")
    assert call.body == Upload(source="some/folder/permits.csv")
    assert call.query == {"name": "permits.csv"}
    assert call.timeout == 3600
    assert endpoints.push_state("ds_a", "a.csv", name="b.csv").query == {"name": "b.csv"}


def test_every_call_may_be_sent_again_but_one_whose_body_is_an_open_file() -> None:
    calls: list[Call[Any]] = [
        endpoints.create_subscription(datasets=["ds_a"]),
        endpoints.check_dataset("ds_a"),
        endpoints.push_state("ds_a", "a.csv"),
        endpoints.release_hold("hold_a"),
        endpoints.get_dataset("ds_a"),
        endpoints.delete_subscription("sub_a"),
    ]
    assert [call.repeatable for call in calls] == [True] * 6
    assert not endpoints.push_state("ds_a", BytesIO(b"a"), name="a.csv").repeatable


def test_a_csv_that_has_yet_to_be_made_may_be_waited_for() -> None:
    assert endpoints.get_version("ds_a", 3, format="csv", patience=60).extra == 60


def test_the_snapshots_link_is_where_the_answer_redirects_to() -> None:
    call = endpoints.get_snapshot_link("ds_a", format="csv")
    assert call.redirects
    assert call.read(answer({}, location="https://files.example/a")) == "https://files.example/a"
    with pytest.raises(TransportError):
        call.read(answer({}))
