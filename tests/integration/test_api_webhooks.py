"""Webhooks over REST: permissions, input, secrets, and what is shown."""

from typing import Any

import pytest
from tests.integration.running import Running, problem

from ploti.model.ids import KeyId, WorkspaceId
from ploti.server.membership.principal import ADMIN, FEEDS, WEBHOOKS
from ploti.server.ports.rows import KeyRow
from ploti.server.ports.store import Transaction
from ploti.server.service.authenticate import authenticate, key_digest

URL = "http://127.0.0.1:1/h"


def key_with(api: Running, *permissions: str, workspace: str | None = None) -> str:
    """A key with just these permissions."""
    secret = api.backend.ids.secret("ploti_")

    def work(tx: Transaction) -> None:
        who = authenticate(tx, api.keys.subscriber, now=api.clock.now())
        tx.keys.add(
            KeyRow(
                id=KeyId(api.backend.ids.token("key_")),
                workspace_id=WorkspaceId(workspace) if workspace else who.workspace_id,
                member_id=who.member_id,
                permissions=[*permissions],
                prefix=secret[:12],
                digest=key_digest(secret),
                created_at=api.clock.now(),
            )
        )

    api.write(work)
    return secret


@pytest.fixture
def subscription(api: Running) -> str:
    api.declare("ds_a")
    made = api.send("POST", "/v1/feeds/subscriptions", json={"datasets": ["ds_a"]})
    found: str = made.json()["id"]
    return found


@pytest.fixture
def webhook(api: Running, subscription: str) -> dict[str, Any]:
    made = api.send("POST", "/v1/webhooks", json={"url": URL, "subscriptionId": subscription})
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def test_r144_r150_a_webhook_is_made_with_url_and_subscription_and_its_secret_shown_once(
    api: Running, webhook: dict[str, Any], subscription: str
) -> None:
    assert webhook["secret"].startswith("whsec_")
    assert (webhook["url"], webhook["subscriptionId"]) == (URL, subscription)
    assert (webhook["events"], webhook["state"], webhook["offReason"]) == (None, "on", None)
    path = f"/v1/webhooks/{webhook['id']}"
    for shown in (
        api.send("GET", path),
        api.send("GET", "/v1/webhooks?limit=500"),
        api.send("PATCH", path, json={"events": ["feed.dataset.added"]}),
        api.send("POST", f"{path}/resume", json={"from": "now"}),
        api.send("POST", f"{path}/test"),
        api.send("GET", f"{path}/deliveries"),
    ):
        assert shown.status_code == 200, shown.text
        assert webhook["secret"] not in shown.text
        assert "whsec_" not in shown.text
    rotated = api.send("POST", f"{path}/rotate").json()
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != webhook["secret"]


def test_a_secret_does_not_lie_open_in_the_database(
    api: Running, webhook: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.getbasetemp()
    written = b"".join(path.read_bytes() for path in base.rglob("ploti.db*"))
    assert webhook["id"].encode() in written
    assert webhook["secret"].removeprefix("whsec_").encode() not in written


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"url": URL}, "subscriptionId"),
        ({"url": "http://10.0.0.1/h", "subscriptionId": "S"}, "url"),
        ({"url": "https://10.0.0.1/h", "subscriptionId": "S"}, "url"),
        ({"url": "ftp://127.0.0.1/h", "subscriptionId": "S"}, "url"),
        ({"url": "https://u:p@127.0.0.1/", "subscriptionId": "S"}, "url"),
        ({"url": "", "subscriptionId": "S"}, "url"),
        ({"url": URL, "subscriptionId": "S", "events": []}, "events"),
        ({"url": URL, "subscriptionId": "S", "events": ["feed.dataset.new"]}, "events[0]"),
        ({"url": URL, "subscriptionId": "S", "secret": "x"}, "secret"),
        ({"subscriptionId": "S"}, "body"),
    ],
    ids=str,
)
def test_s50_r145_input_that_cannot_be_meant_is_named(
    api: Running, subscription: str, body: dict[str, Any], field: str
) -> None:
    if "subscriptionId" in body:
        body = body | {"subscriptionId": subscription}
    told = problem(api.send("POST", "/v1/webhooks", json=body), 400, "invalid_input")
    assert [each["field"] for each in told["errors"]] == [field]


def test_a_subscription_that_is_not_there_is_not_found(api: Running) -> None:
    body = {"url": URL, "subscriptionId": "sub_none"}
    problem(api.send("POST", "/v1/webhooks", json=body), 404, "not_found")


CALLS = [
    ("GET", "", None),
    ("PATCH", "", {"events": None}),
    ("POST", "/test", None),
    ("POST", "/rotate", None),
    ("POST", "/resume", {"from": "now"}),
    ("GET", "/deliveries", None),
    ("POST", "/deliveries/msg_x/retry", None),
    ("POST", "/deliveries/msg_x/skip", None),
    ("DELETE", "", None),
]


@pytest.mark.parametrize(("method", "below", "body"), CALLS, ids=str)
def test_s47_every_call_on_a_webhook_needs_feeds_and_webhooks_both(
    api: Running, webhook: dict[str, Any], method: str, below: str, body: Any
) -> None:
    path = f"/v1/webhooks/{webhook['id']}{below}"
    options = {} if body is None else {"json": body}
    for had, lacking in ((WEBHOOKS, FEEDS), (FEEDS, WEBHOOKS)):
        key = key_with(api, had, ADMIN)
        told = problem(api.send(method, path, key=key, **options), 403, "forbidden")
        assert f"'{lacking}'" in told["detail"]


def test_r169_s47_making_one_needs_both_and_the_list_shows_none_without_feeds(
    api: Running, webhook: dict[str, Any], subscription: str
) -> None:
    body = {"url": URL, "subscriptionId": subscription}
    for had, lacking in ((WEBHOOKS, FEEDS), (FEEDS, WEBHOOKS)):
        made = api.send("POST", "/v1/webhooks", key=key_with(api, had), json=body)
        assert f"'{lacking}'" in problem(made, 403, "forbidden")["detail"]
    listed = api.send("GET", "/v1/webhooks", key=key_with(api, WEBHOOKS)).json()
    assert listed == {"webhooks": [], "nextCursor": None}
    problem(api.send("GET", "/v1/webhooks", key=key_with(api, FEEDS)), 403, "forbidden")
    both = api.send("GET", "/v1/webhooks?limit=500", key=key_with(api, FEEDS, WEBHOOKS)).json()
    assert webhook["id"] in [each["id"] for each in both["webhooks"]]


@pytest.mark.parametrize(("method", "below", "body"), CALLS, ids=str)
def test_another_workspaces_webhook_is_not_found(
    api: Running, webhook: dict[str, Any], method: str, below: str, body: Any
) -> None:
    stranger = key_with(api, FEEDS, WEBHOOKS, workspace="ws_other")
    options = {} if body is None else {"json": body}
    path = f"/v1/webhooks/{webhook['id']}{below}"
    problem(api.send(method, path, key=stranger, **options), 404, "not_found")


def test_r162_r163_webhooks_are_listed_by_pages_and_deleted(
    api: Running, subscription: str
) -> None:
    body = {"url": URL, "subscriptionId": subscription}
    made = [api.send("POST", "/v1/webhooks", json=body).json()["id"] for _ in range(3)]
    found: list[str] = []
    page: dict[str, Any] = {"nextCursor": ""}
    while page["nextCursor"] is not None:
        cursor = {"cursor": page["nextCursor"]} if page["nextCursor"] else {}
        page = api.send("GET", "/v1/webhooks", params={"limit": 2, **cursor}).json()
        found += [each["id"] for each in page["webhooks"]]
    assert [each for each in found if each in made] == made
    gone = api.send("DELETE", f"/v1/webhooks/{made[0]}")
    assert gone.status_code == 204
    problem(api.send("GET", f"/v1/webhooks/{made[0]}"), 404, "not_found")


def test_a_patch_changes_what_it_names_and_null_events_are_every_type(
    api: Running, webhook: dict[str, Any]
) -> None:
    path = f"/v1/webhooks/{webhook['id']}"
    some = {"events": ["feed.dataset.updated", "feed.dataset.added", "feed.dataset.added"]}
    changed = api.send("PATCH", path, json=some).json()
    assert changed["events"] == ["feed.dataset.added", "feed.dataset.updated"]
    changed = api.send("PATCH", path, json={"url": "http://127.0.0.2:1/x"}).json()
    assert (changed["url"], len(changed["events"])) == ("http://127.0.0.2:1/x", 2)
    assert api.send("PATCH", path, json={"events": None}).json()["events"] is None
    told = problem(api.send("PATCH", path, json={"url": "https://[::1]/"}), 400, "invalid_input")
    assert told["errors"][0]["field"] == "url"


def test_a_test_tells_what_came_back_and_is_listed(api: Running, webhook: dict[str, Any]) -> None:
    path = f"/v1/webhooks/{webhook['id']}"
    sent = api.send("POST", f"{path}/test").json()
    assert (sent["kind"], sent["state"], sent["eventId"]) == ("test", "failed", None)
    (attempt,) = sent["attempts"]
    assert attempt["error"].startswith("connection: ")
    assert attempt["address"] == "127.0.0.1"
    listed = api.send("GET", f"{path}/deliveries").json()
    assert listed == {"deliveries": [sent], "nextCursor": None}
    retried = api.send("POST", f"{path}/deliveries/{sent['id']}/retry")
    problem(retried, 409, "conflict")


@pytest.mark.parametrize("start", ["evt_000000000999", "yesterday", ""])
def test_resume_from_what_is_no_cursor_of_the_log_is_refused(
    api: Running, webhook: dict[str, Any], start: str
) -> None:
    resumed = api.send("POST", f"/v1/webhooks/{webhook['id']}/resume", json={"from": start})
    assert problem(resumed, 400, "invalid_input")["errors"][0]["field"] == "from"


def test_s48_revoking_the_key_that_made_it_does_not_stop_a_webhook(
    api: Running, subscription: str
) -> None:
    key = key_with(api, FEEDS, WEBHOOKS)
    body = {"url": URL, "subscriptionId": subscription}
    made = api.send("POST", "/v1/webhooks", key=key, json=body).json()
    shown = api.send("GET", f"/v1/webhooks/{made['id']}").json()
    assert shown["state"] == "on"
    stored = api.call(
        api.store.read(
            lambda tx: tx.webhooks.get(
                made["id"],
                workspace=authenticate(tx, api.keys.subscriber, now=api.clock.now()).workspace_id,
            )
        )
    )
    assert stored is not None
    assert stored.member_id.startswith("mem_")  # a member's, and no key's
