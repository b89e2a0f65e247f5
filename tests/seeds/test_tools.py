"""What the references say of keys, webhooks, the SDK, the commands and the documentation."""

from __future__ import annotations

import importlib
import json
import tomllib
from pathlib import Path

import pytest
from tests.docs.generate import DOCS, ROOT
from tests.fakes import api as scripted
from tests.fakes.api import Reply
from tests.fakes.lanes import Lanes
from tests.fakes.lanes import play as play_lanes
from tests.fakes.receiver import receiving
from tests.fakes.releases import release
from tests.integration.running import Running, problem

import ploti
from ploti.cli.groups import make_app
from ploti.client import endpoints, webhook_endpoints
from ploti.model.event import EventType
from ploti.model.ids import DatasetId
from ploti.server.eventlog.drafts import Draft
from ploti.sync import default


def test_links_of_an_event_are_called_with_the_key_r023(api: Running) -> None:
    api.declare("ds_a")
    api.write(lambda tx: release(tx, DatasetId("ds_a")))
    made = api.send("POST", "/v1/feeds/subscriptions", json={"datasets": ["ds_a"]}).json()
    page = api.get(f"/v1/feeds/subscriptions/{made['id']}/events").json()
    links = page["events"][0]["data"]["links"]
    schema = links["schema"].removeprefix(api.backend.base)
    assert api.get(schema).status_code == 200
    for link in links.values():
        path = link.removeprefix(api.backend.base)
        problem(api.get(path, key=None), 401, "unauthenticated")


def test_a_webhook_without_events_gets_every_type_r146(tmp_path: Path) -> None:
    """S-50."""

    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            subscription = await lanes.subscribe(DatasetId("ds_a"))
            every = await lanes.hook(receiver.url, subscription)
            assert every.events is None
            drafts = [
                Draft(type=kind, dataset_id=DatasetId("ds_a"), linked_version=None, data="{}")
                for kind in EventType
            ]
            await lanes.store.write(
                lambda tx: tx.log.append(drafts, to=[subscription], now=lanes.clock.now())
            )
            await lanes.drain()
        assert [post.event["type"] for post in receiver.posts] == [*EventType]

    play_lanes(tmp_path, story)


def test_the_sdk_creates_a_webhook_and_returns_it_with_its_secret_r179(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = {
        "id": "wh_a",
        "url": "https://receiver.example/hook",
        "subscriptionId": "sub_8f3k2m",
        "events": None,
        "createdAt": "2026-10-18T06:13:02.000Z",
        "memberId": "mem_a",
        "memberName": "Ada",
        "state": "on",
        "offReason": None,
        "offAt": None,
        "lastSuccessAt": None,
        "failingSince": None,
        "eventsBehind": 0,
        "secret": "whsec_abc",
    }
    with scripted.running() as server:
        monkeypatch.setenv("PLOTI_API_URL", server.url)
        monkeypatch.setenv("PLOTI_API_KEY", "ploti_key")
        unused = importlib.reload(default).webhooks  # another test may have used the process's own
        monkeypatch.setattr(ploti, "webhooks", unused, raising=False)
        server.on("POST /v1/webhooks", Reply(made))
        webhook = ploti.webhooks.create(
            "https://receiver.example/hook", subscription_id="sub_8f3k2m"
        )
        (asked,) = server.seen
    assert json.loads(asked.body) == {
        "url": "https://receiver.example/hook",
        "subscriptionId": "sub_8f3k2m",
    }
    assert (webhook.id, webhook.secret) == ("wh_a", "whsec_abc")


def test_each_call_is_offered_as_rest_python_and_command_and_none_over_mcp_r180(
    api: Running,
) -> None:
    """S-60. Of the calls of the references: subscriptions, their logs, and webhooks."""
    paths = api.get("/openapi.json").json()["paths"]
    operations = {
        operation["operationId"]
        for path, methods in paths.items()
        for operation in methods.values()
        if path.startswith(("/v1/feeds/subscriptions", "/v1/webhooks"))
    }
    python = {_camel(name) for module in (endpoints, webhook_endpoints) for name in vars(module)}
    assert operations <= python
    app = make_app()
    commands = {
        "subscriptions": ("create", "list", "show", "update", "delete", "manifest", "events"),
        "webhooks": ("create", "list", "show", "update", "delete", "test", "rotate", "resume"),
    }
    for group, names in commands.items():
        found = app["feeds"][group] if group == "subscriptions" else app[group]
        assert set(names) <= {name for name in found if not name.startswith("-")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(each for extra in extras for each in extra)]
    assert not any(each.lower().startswith("mcp") for each in wanted)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def test_the_documentation_has_parts_on_holds_and_on_ids_that_are_replaced_r208() -> None:
    assert "## What is held" in (DOCS / "explanation/holds.md").read_text()
    assert "## When ids are replaced" in (DOCS / "explanation/record-ids.md").read_text()
