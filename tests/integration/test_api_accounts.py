"""Workspaces, members and keys over REST, and that nothing of one workspace shows in another."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.fakes.releases import release
from tests.integration.running import BASE, Running, problem, running

from ploti.model.ids import DatasetId, KeyId, MemberId, WebhookId, WorkspaceId
from ploti.model.webhook import OffReason, WebhookState
from ploti.model.wire import Instant
from ploti.server.adapters.poster import WebhookPoster
from ploti.server.api.limits import RateLimits
from ploti.server.api.repeats import Repeats
from ploti.server.membership.principal import FEEDS, Principal
from ploti.server.ports.store import Transaction
from ploti.server.service.deliver_due import switched_off
from ploti.server.service.note_use import KeyUses
from ploti.server.service.read_webhooks import find_webhook

SUBSCRIPTIONS = "/v1/feeds/subscriptions"
ADMIN = "/v1/admin"
HOOK = "http://127.0.0.1:9/hook"


def make_workspace(api: Running, **settings: Any) -> str:
    made = api.staff("POST", f"{ADMIN}/workspaces", json={"name": "Other", **settings})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def make_member(api: Running, workspace: str, name: str = "Ada") -> str:
    body = {"workspaceId": workspace, "name": name}
    return str(api.staff("POST", f"{ADMIN}/members", json=body).json()["id"])


def make_key(api: Running, member: str, **settings: Any) -> dict[str, Any]:
    made = api.staff("POST", f"{ADMIN}/keys", json={"memberId": member, **settings})
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def subscribe(api: Running, key: str = "", **selection: Any) -> str:
    body = selection or {"places": ["us"]}
    return str(api.send("POST", SUBSCRIPTIONS, key=key, json=body).json()["id"])


def create_hook(api: Running, subscription: str, key: str = "") -> str:
    body = {"url": HOOK, "subscriptionId": subscription}
    return str(api.send("POST", "/v1/webhooks", key=key, json=body).json()["id"])


def test_a_workspace_has_members_keys_coverage_and_a_plan_r201_r172(api: Running) -> None:
    workspace = make_workspace(api, coverage=["us/fl"], public=False)
    shown = api.staff("GET", f"{ADMIN}/workspaces/{workspace}").json()
    assert (shown["coverage"], shown["planId"], shown["public"]) == (["us/fl"], "default", False)
    member = make_member(api, workspace)
    key = make_key(api, member, name="laptop")
    assert (key["workspaceId"], key["memberId"], key["memberName"]) == (workspace, member, "Ada")
    listed = api.staff("GET", f"{ADMIN}/workspaces").json()["workspaces"]
    assert workspace in [each["id"] for each in listed]
    members = api.staff("GET", f"{ADMIN}/members?workspace={workspace}").json()["members"]
    assert [each["id"] for each in members] == [member]


def test_a_new_key_has_both_permissions_and_is_shown_once_r170(api: Running) -> None:
    workspace = make_workspace(api)
    key = make_key(api, make_member(api, workspace))
    assert key["permissions"] == ["feeds", "webhooks"]
    assert api.get(SUBSCRIPTIONS, key=key["secret"]).status_code == 200
    response = api.staff("GET", f"{ADMIN}/keys?workspace={workspace}")
    (listed,) = response.json()["keys"]
    assert key["secret"].startswith(listed["prefix"])
    assert key["secret"] not in response.text
    assert "secret" not in listed
    assert "digest" not in response.text


def test_a_key_is_given_the_permissions_that_were_asked_for_and_no_others(api: Running) -> None:
    member = make_member(api, make_workspace(api))
    secret = make_key(api, member, permissions=["webhooks"])["secret"]
    assert "'feeds'" in problem(api.get(SUBSCRIPTIONS, key=secret), 403, "forbidden")["detail"]
    for wrong in (["root"], [], ["feeds", "x"]):
        body = {"memberId": member, "permissions": wrong}
        problem(api.staff("POST", f"{ADMIN}/keys", json=body), 400, "invalid_input")


def test_a_revoked_key_is_refused_at_once_and_its_webhooks_go_on_s48(api: Running) -> None:
    key = make_key(api, make_member(api, make_workspace(api)))
    subscription = subscribe(api, key["secret"])
    hook = create_hook(api, subscription, key["secret"])
    revoked = api.staff("DELETE", f"{ADMIN}/keys/{key['id']}")
    assert revoked.json()["revokedAt"]
    problem(api.get(SUBSCRIPTIONS, key=key["secret"]), 401, "unauthenticated")
    again = api.staff("DELETE", f"{ADMIN}/keys/{key['id']}").json()
    assert again["revokedAt"] == revoked.json()["revokedAt"]
    other = make_key(api, key["memberId"])["secret"]
    assert api.get(f"/v1/webhooks/{hook}", key=other).json()["state"] == WebhookState.ON


def test_a_key_ends_when_it_expires(api: Running) -> None:
    member = make_member(api, make_workspace(api))
    end = Instant.of(api.clock.now() + timedelta(hours=1))
    key = make_key(api, member, expiresAt=str(end))
    digest = api.write(lambda tx: tx.keys.get(KeyId(key["id"]))).key.digest
    before, after = Instant.of(end - timedelta(seconds=1)), end
    assert api.write(lambda tx: tx.keys.principal(digest, now=before)) is not None
    assert api.write(lambda tx: tx.keys.principal(digest, now=after)) is None
    past = {"memberId": member, "expiresAt": "2020-01-01T00:00:00Z"}
    problem(api.staff("POST", f"{ADMIN}/keys", json=past), 400, "invalid_input")


def test_the_last_use_of_a_key_is_kept(api: Running) -> None:
    key = make_key(api, make_member(api, make_workspace(api)))
    api.get(SUBSCRIPTIONS, key=key["secret"])
    api.call(api.backend.uses.keep(api.store))
    shown = api.write(lambda tx: tx.keys.get(KeyId(key["id"]))).key
    assert shown.last_used_at is not None
    earlier = Instant.of(shown.last_used_at - timedelta(hours=1))
    uses = KeyUses()
    uses.note(shown.id, at=earlier)
    api.call(uses.keep(api.store))
    assert api.write(lambda tx: tx.keys.get(shown.id)).key.last_used_at == shown.last_used_at


def test_a_member_that_leaves_takes_its_keys_and_webhooks_along_r158_r159(api: Running) -> None:
    workspace = make_workspace(api)
    leaver, stays = make_member(api, workspace, "Leaver"), make_member(api, workspace, "Stays")
    theirs, mine = make_key(api, leaver)["secret"], make_key(api, stays)["secret"]
    subscription = subscribe(api, mine)
    gone, kept = create_hook(api, subscription, theirs), create_hook(api, subscription, mine)
    left = api.staff("DELETE", f"{ADMIN}/members/{leaver}").json()
    assert left["leftAt"]
    problem(api.get(SUBSCRIPTIONS, key=theirs), 401, "unauthenticated")
    off = api.get(f"/v1/webhooks/{gone}", key=mine).json()
    assert (off["state"], off["offReason"]) == ("off", "member_left")
    assert api.get(f"/v1/webhooks/{kept}", key=mine).json()["state"] == "on"
    resumed = api.send("POST", f"/v1/webhooks/{gone}/resume", key=mine, json={"from": "now"})
    problem(resumed, 409, "conflict")
    problem(api.staff("POST", f"{ADMIN}/keys", json={"memberId": leaver}), 409, "conflict")
    assert api.staff("DELETE", f"{ADMIN}/members/{leaver}").json() == left


def test_a_webhook_that_was_off_when_its_member_left_stays_off_r159(api: Running) -> None:
    workspace = make_workspace(api)
    leaver, stays = make_member(api, workspace), make_member(api, workspace)
    theirs, mine = make_key(api, leaver)["secret"], make_key(api, stays)["secret"]
    subscription = subscribe(api, mine)
    hook = create_hook(api, subscription, theirs)
    asked = Principal(
        key_id=KeyId("key_x"),
        workspace_id=WorkspaceId(workspace),
        member_id=MemberId(stays),
        permissions=frozenset({FEEDS}),
    )

    def switch(tx: Transaction) -> None:
        row = find_webhook(tx, asked, WebhookId(hook))
        now = api.clock.now()
        tx.webhooks.save(switched_off(row, OffReason.GONE, at=now), at=now)

    api.write(switch)
    api.staff("DELETE", f"{ADMIN}/members/{leaver}")
    path = f"/v1/webhooks/{hook}"
    assert api.get(path, key=mine).json()["offReason"] == "member_left"
    resumed = api.send("POST", f"{path}/resume", key=mine, json={"from": "now"})
    problem(resumed, 409, "conflict")
    api.send("DELETE", f"{SUBSCRIPTIONS}/{subscription}", key=mine)
    assert api.get(path, key=mine).json()["offReason"] == "member_left"


def test_a_service_account_can_be_the_member_that_owns_a_webhook_r161(api: Running) -> None:
    workspace = make_workspace(api)
    person, service = make_member(api, workspace), make_member(api, workspace, "pipeline")
    key = make_key(api, service)["secret"]
    subscription = subscribe(api, make_key(api, person)["secret"])
    hook = create_hook(api, subscription, key)
    api.staff("DELETE", f"{ADMIN}/members/{person}")
    assert api.get(f"/v1/webhooks/{hook}", key=key).json()["state"] == "on"


def test_a_webhook_of_a_subscription_needs_both_permissions_r169_r171_s47(api: Running) -> None:
    member = make_member(api, make_workspace(api))
    both = make_key(api, member)["secret"]
    subscription = subscribe(api, both)
    hook = create_hook(api, subscription, both)
    without = make_key(api, member, permissions=["webhooks"])["secret"]
    body = {"url": HOOK, "subscriptionId": subscription}
    refused = [api.send("POST", "/v1/webhooks", key=without, json=body)]
    refused += [api.send("DELETE", f"/v1/webhooks/{hook}", key=without)]
    refused += [api.send("POST", f"/v1/webhooks/{hook}/test", key=without)]
    for response in refused:
        assert "'feeds'" in problem(response, 403, "forbidden")["detail"]
    assert api.get("/v1/webhooks", key=without).json()["webhooks"] == []
    feeds = make_key(api, member, permissions=["feeds"])["secret"]
    for method, path in (("GET", "/v1/webhooks"), ("DELETE", f"/v1/webhooks/{hook}")):
        detail = problem(api.send(method, path, key=feeds), 403, "forbidden")["detail"]
        assert "'webhooks'" in detail


def test_what_staff_did_is_recorded_with_who_and_to_what(api: Running) -> None:
    workspace = make_workspace(api, name="Audited")
    api.staff("PATCH", f"{ADMIN}/workspaces/{workspace}", json={"name": "Renamed"})
    api.staff("PUT", f"{ADMIN}/datasets/ds_audited?dryRun=true", json=_declared("ds_audited"))
    api.staff("PUT", f"{ADMIN}/datasets/ds_audited", json=_declared("ds_audited"))
    api.staff("PATCH", f"{ADMIN}/workspaces/ws_none", json={"name": "x"})
    found = api.staff("GET", f"{ADMIN}/audit?limit=3").json()["entries"]
    assert [(each["action"], each["subject"], each["memberName"]) for each in found] == [
        ("apply_dataset", "ds_audited", "default"),
        ("update_workspace", workspace, "default"),
        ("create_workspace", workspace, "default"),
    ]
    only = api.staff("GET", f"{ADMIN}/audit?subject={workspace}").json()["entries"]
    assert [each["action"] for each in only] == ["update_workspace", "create_workspace"]


def test_the_audit_is_read_in_pages(api: Running) -> None:
    for number in range(3):
        make_workspace(api, name=str(number))
    first = api.staff("GET", f"{ADMIN}/audit?limit=2").json()
    second = api.staff("GET", f"{ADMIN}/audit?limit=2&cursor={first['nextCursor']}").json()
    times = [each["at"] for each in first["entries"] + second["entries"]]
    assert times == sorted(times, reverse=True)
    for wrong in ("x", "-1", "9" * 30):
        problem(api.staff("GET", f"{ADMIN}/audit?cursor={wrong}"), 400, "invalid_input")


def _declared(dataset: str) -> dict[str, Any]:
    return {"id": dataset, "title": "T", "place": "us/fl", "topic": "permits"}


def test_no_id_of_another_workspace_answers_other_than_404(api: Running) -> None:
    """Every route of the OpenAPI document, with a key of another workspace."""
    api.declare("ds_theirs")
    mine = make_key(api, make_member(api, make_workspace(api)))["secret"]
    theirs = subscribe(api)
    hook = create_hook(api, theirs)
    tested = api.send("POST", f"/v1/webhooks/{hook}/test").json()["id"]
    ids = {"{subscription}": theirs, "{webhook}": hook, "{delivery}": tested}
    bodies: dict[str, Any] = {
        "Resume": {"from": "now"},
        "WebhookPatch": {"url": HOOK},
        "SubscriptionPatch": {"name": "mine now"},
    }
    paths = api.get("/openapi.json").json()["paths"]
    walked = 0
    for path, operations in paths.items():
        if not any(name in path for name in ids):
            continue
        for name, known in ids.items():
            path = path.replace(name, known)  # noqa: PLW2901
        for method, operation in operations.items():
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            kind = schema.get("schema", {}).get("$ref", "").rpartition("/")[2]
            given = {"json": bodies[kind]} if kind else {}
            problem(api.send(method.upper(), path, key=mine, **given), 404, "not_found")
            walked += 1
    assert walked >= 14
    body = {"url": HOOK, "subscriptionId": theirs}
    problem(api.send("POST", "/v1/webhooks", key=mine, json=body), 404, "not_found")
    assert api.get(f"{SUBSCRIPTIONS}/{theirs}").json()["name"] == ""
    assert api.get(f"/v1/webhooks/{hook}").status_code == 200
    assert api.get(SUBSCRIPTIONS, key=mine).json()["subscriptions"] == []
    assert api.get("/v1/webhooks", key=mine).json()["webhooks"] == []


def test_every_route_with_an_id_is_the_staffs_or_walked_by_the_test_above(api: Running) -> None:
    paths = api.get("/openapi.json").json()["paths"]
    others = [
        path
        for path in paths
        if "{" in path
        and not path.startswith("/v1/admin/")
        and not any(name in path for name in ("{subscription}", "{webhook}"))
    ]
    catalogue, signed = "/v1/feeds/datasets/{dataset}", "/files/{blob}"
    assert all(path.startswith(catalogue) or path == signed for path in others), others


# Public workspaces


def test_a_public_workspaces_catalogue_and_versions_are_read_without_a_key(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        api.declare("ds_open")
        api.declare("ds_closed", place="ca")
        for dataset in ("ds_open", "ds_closed"):
            api.write(lambda tx, dataset=dataset: release(tx, DatasetId(dataset)))
        catalogue = "/v1/feeds/datasets"
        problem(api.get(catalogue, key=None), 401, "unauthenticated")
        public = make_workspace(api, coverage=["us"], public=True)
        owner = make_key(api, make_member(api, public))["secret"]
        subscribe(api)  # another workspace's subscription opens nothing
        page = api.get(catalogue, key=None)
        assert [each["id"] for each in page.json()["datasets"]] == ["ds_open"]
        assert api.get(f"{catalogue}/ds_open", key=None).json()["current"]["version"] == 1
        assert api.get(f"{catalogue}/ds_open/schema", key=None).status_code == 200
        problem(api.get(f"{catalogue}/ds_closed", key=None), 409, "outside_coverage")
        version = f"{catalogue}/ds_open/versions/1/digest"
        problem(api.get(version, key=None), 409, "not_subscribed")
        subscribe(api, owner)
        assert api.get(version, key=None).json()["rowCount"] == 1
        for path in (SUBSCRIPTIONS, "/v1/webhooks", f"{ADMIN}/keys"):
            problem(api.get(path, key=None), 401, "unauthenticated")
        problem(api.get(catalogue, key="ploti_wrong"), 401, "unauthenticated")
        api.staff("PATCH", f"{ADMIN}/workspaces/{public}", json={"public": False})
        problem(api.get(catalogue, key=None), 401, "unauthenticated")


# Limits


def test_a_key_that_sends_too_much_is_told_when_to_come_again(tmp_path: Path) -> None:
    with running(tmp_path, rate=1) as api:
        answers = [api.get(SUBSCRIPTIONS) for _ in range(8)]
        limited = [each for each in answers if each.status_code == 429]
        assert limited
        problem(limited[0], 429, "rate_limited")
        assert int(limited[0].headers["retry-after"]) >= 1
        assert api.get("/healthz", key=None).status_code == 200


def test_behind_a_proxy_every_line_that_names_an_address_counts(
    api: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy may add a line of its own to the one that the sender made up."""
    told: list[str] = []

    def address(*_: object, forwarded: str) -> str:
        told.append(forwarded)
        return "somebody"

    monkeypatch.setattr(RateLimits, "address", address)
    key = ("authorization", f"Bearer {api.keys.subscriber}")
    lines = [key, ("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "10.0.0.9")]
    with httpx2.Client(base_url=BASE) as client:
        request = client.build_request("GET", SUBSCRIPTIONS, headers=lines)
    api.call(api.http.send(request))
    assert told == ["198.51.100.1,10.0.0.9"]


# Requests that come again


def again(name: str) -> dict[str, Any]:
    return {"headers": {"idempotency-key": name}}


def test_a_post_that_comes_again_is_done_once_and_answered_the_same(api: Running) -> None:
    body = {"places": ["us"], "name": "once"}
    first = api.send("POST", SUBSCRIPTIONS, json=body, **again("a1"))
    second = api.send("POST", SUBSCRIPTIONS, json=body, **again("a1"))
    assert (second.status_code, second.json()) == (201, first.json())
    other = api.send("POST", SUBSCRIPTIONS, json=body, **again("a2"))
    assert other.json()["id"] != first.json()["id"]


def test_many_of_one_request_at_once_make_one_thing(api: Running) -> None:
    body = {"places": ["us"], "name": "many"}
    begun = [api.start("POST", SUBSCRIPTIONS, json=body, **again("m1")) for _ in range(8)]
    assert len({each.result(timeout=60).json()["id"] for each in begun}) == 1


def test_what_ended_while_it_came_again_is_not_begun_anew(
    api: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one looks for a kept answer before there is one, and goes on once there is."""
    hook = create_hook(api, subscribe(api, api.keys.subscriber), api.keys.subscriber)
    repeats, real = api.backend.repeats, Repeats.check
    first_looked, second_looked, go_on, first_ended = (threading.Event() for _ in range(4))

    def check(self: Repeats, *given: Any, **named: Any) -> None:
        real(self, *given, **named)
        if not first_looked.is_set():
            first_looked.set()
            assert go_on.wait(60)
        else:
            second_looked.set()
            assert first_ended.wait(60)

    monkeypatch.setattr(Repeats, "check", check)
    path = f"/v1/webhooks/{hook}"
    first = api.start("POST", f"{path}/test", **again("t1"))
    assert first_looked.wait(60)
    second = api.start("POST", f"{path}/test", **again("t1"))
    while not (second_looked.is_set() or repeats.under_way):
        threading.Event().wait(0.01)
    go_on.set()
    answered = first.result(timeout=60)
    first_ended.set()
    assert second.result(timeout=60).json() == answered.json()
    assert len(api.get(f"{path}/deliveries").json()["deliveries"]) == 1


def test_a_name_that_was_another_requests_is_refused(api: Running) -> None:
    api.send("POST", SUBSCRIPTIONS, json={"places": ["us"]}, **again("b1"))
    other = api.send("POST", SUBSCRIPTIONS, json={"places": ["ca"]}, **again("b1"))
    problem(other, 409, "conflict")
    for wrong in ("", " ", "x" * 256, "a b"):
        answer = api.send("POST", SUBSCRIPTIONS, json={"places": ["us"]}, **again(wrong))
        problem(answer, 400, "invalid_input")


def test_a_name_belongs_to_its_key(api: Running) -> None:
    body = {"places": ["us"]}
    stranger = make_key(api, make_member(api, make_workspace(api)))["secret"]
    mine = api.send("POST", SUBSCRIPTIONS, json=body, **again("c1"))
    theirs = api.send("POST", SUBSCRIPTIONS, json=body, key=stranger, **again("c1"))
    assert (theirs.status_code, theirs.json()["id"] != mine.json()["id"]) == (201, True)


def test_an_answer_with_a_secret_is_kept_sealed(api: Running) -> None:
    member = make_member(api, make_workspace(api))
    first = api.staff("POST", f"{ADMIN}/keys", json={"memberId": member}, **again("d1")).json()
    second = api.staff("POST", f"{ADMIN}/keys", json={"memberId": member}, **again("d1")).json()
    assert second["secret"] == first["secret"]
    staff = api.write(lambda tx: tx.keys.page(workspace=None, before=None, limit=500))
    names = [each.key.id for each in staff if "admin" in each.key.permissions]
    since = Instant.parse("2020-01-01T00:00:00Z")
    kept = [api.write(lambda tx, n=name: tx.answers.find(n, "d1", since=since)) for name in names]
    (row,) = [each for each in kept if each is not None]
    assert first["secret"] not in row.answer


def test_a_refused_request_may_come_again_and_is_tried_again(api: Running) -> None:
    body = {"memberId": "mem_none"}
    problem(api.staff("POST", f"{ADMIN}/keys", json=body, **again("e1")), 404, "not_found")
    problem(api.staff("POST", f"{ADMIN}/keys", json=body, **again("e1")), 404, "not_found")


def test_a_test_of_a_webhook_that_comes_again_is_sent_once(api: Running) -> None:
    hook = create_hook(api, subscribe(api))
    path = f"/v1/webhooks/{hook}/test"
    first, second = (api.send("POST", path, **again("f1")).json() for _ in range(2))
    assert first["id"] == second["id"]
    listed = api.get(f"/v1/webhooks/{hook}/deliveries").json()["deliveries"]
    assert len(listed) == 1


def test_what_was_done_is_answered_again_whatever_became_of_what_it_names(
    api: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the name of an endpoint is looked up then, nor is a webhook that may be gone."""
    body = {"url": "http://127.0.0.1:1/h", "subscriptionId": subscribe(api)}
    made = api.send("POST", "/v1/webhooks", json=body, **again("h1"))
    path = f"/v1/webhooks/{made.json()['id']}"
    tested = api.send("POST", f"{path}/test", **again("h2"))

    async def refuse(_: object, url: str) -> str:
        return f"{url} leads to nowhere by now"

    monkeypatch.setattr(WebhookPoster, "refuse", refuse)
    problem(api.send("POST", "/v1/webhooks", json=body), 400, "invalid_input")
    api.send("DELETE", path)
    problem(api.send("POST", f"{path}/test"), 404, "not_found")
    for first, second in (
        (made, api.send("POST", "/v1/webhooks", json=body, **again("h1"))),
        (tested, api.send("POST", f"{path}/test", **again("h2"))),
    ):
        assert (second.status_code, second.json()) == (first.status_code, first.json())
    other = api.send("POST", "/v1/webhooks", json=body | {"events": []}, **again("h1"))
    problem(other, 409, "conflict")


def test_an_answer_is_kept_for_a_day_and_then_forgotten(api: Running) -> None:
    body = {"places": ["us"]}
    api.send("POST", SUBSCRIPTIONS, json=body, **again("g1"))
    keys = api.write(lambda tx: tx.keys.page(workspace=None, before=None, limit=500))
    now = api.clock.now()
    later = Instant.of(now + timedelta(hours=25))

    def kept() -> int:
        since = Instant.parse("2020-01-01T00:00:00Z")
        found = [
            api.write(lambda tx, k=each.key.id: tx.answers.find(k, "g1", since=since))
            for each in keys
        ]
        return len([each for each in found if each is not None])

    assert kept() == 1
    api.write(lambda tx: tx.answers.prune(before=Instant.of(later - timedelta(hours=24))))
    assert kept() == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("workspaces", {"name": "x", "coverage": []}),
        ("workspaces", {"name": ""}),
        ("plans", {"id": "Not An Id"}),
        ("plans", {"id": "p", "datasets": []}),
    ],
)
def test_what_cannot_be_meant_is_refused_by_field(
    api: Running, path: str, body: dict[str, Any]
) -> None:
    found = problem(api.staff("POST", f"{ADMIN}/{path}", json=body), 400, "invalid_input")
    assert found["errors"][0]["field"] in body


def test_plans_are_made_changed_and_listed_by_id(api: Running) -> None:
    made = api.staff("POST", f"{ADMIN}/plans", json={"id": "roads", "topics": ["roads"]})
    assert made.status_code == 201
    changed = api.staff("PATCH", f"{ADMIN}/plans/roads", json={"datasets": ["ds_a"]}).json()
    assert (changed["topics"], changed["datasets"]) == (["roads"], ["ds_a"])
    changed = api.staff("PATCH", f"{ADMIN}/plans/roads", json={"topics": None}).json()
    assert (changed["topics"], changed["datasets"]) == (None, ["ds_a"])
    listed = api.staff("GET", f"{ADMIN}/plans?limit=1").json()
    assert (listed["plans"][0]["id"], listed["nextCursor"]) == ("default", "default")
    after = api.staff("GET", f"{ADMIN}/plans?cursor=default").json()
    assert "roads" in [each["id"] for each in after["plans"]]
    problem(api.staff("POST", f"{ADMIN}/plans", json={"id": "roads"}), 409, "conflict")
