"""schemathesis, a judge that is not ours, walks the OpenAPI document and finds nothing."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.serving import Server, environment, served

from ploti.server.service.page_lists import timed_cursor

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "schemathesis.toml"
WALK = [sys.executable, "-m", "schemathesis.cli", "--config-file"]
ACCEPTED = """
[checks.positive_data_acceptance]
enabled = true
"""
MEANT = {
    *("POST /v1/webhooks", "PATCH /v1/webhooks/{webhook}", "POST /v1/webhooks/{webhook}/resume"),
    *("PATCH /v1/feeds/subscriptions/{subscription}", "PUT /v1/admin/datasets/{dataset}"),
    *("POST /v1/admin/keys", "POST /v1/admin/datasets/{dataset}/proposals"),
}
"""Whether these are taken is not a matter of their form alone: the hooks do the rest."""

HOOKS = Path(__file__).with_name("meant.py")
BUILDS = "/(push|check|rebuild|restore|approve)$"
"""What takes a build each time, and bodies that have no form: the other walk has them."""


def ids_of(server: Server) -> dict[str, str]:
    """Things that there are, so that requests come past 404; those the walk deletes, it deletes.

    The member and the key are nobody's: the walk takes away neither the key that it has.
    """
    server.declare("ds_a")
    server.push("ds_a", b"id,v\n1,a\n2,b\n")
    subscription, webhook = subscribed(server)
    member = made(server, "members", workspaceId=workspace_of(server), name="Nobody")
    return {
        "dataset": "ds_a",
        "subscription": subscription,
        "webhook": webhook,
        "member": member,
        "key": made(server, "keys", memberId=member),
    }


def subscribed(server: Server) -> tuple[str, str]:
    """A subscription and a webhook of it."""
    subscription = server.subscribe("ds_a").rpartition("/")[2]
    body = {"url": "http://127.0.0.1:9/h", "subscriptionId": subscription}
    return subscription, str(server.request("POST", "/v1/webhooks", json=body).json()["id"])


def left_to_delete(server: Server) -> list[str]:
    """Settings by which the walk deletes others than those that its other requests are about."""
    subscription, webhook = subscribed(server)
    return [
        f'[[operations]]\ninclude-path = "{path}"\ninclude-method = "DELETE"\n'
        f'parameters = {{ "path.{name}" = "{value}" }}'
        for path, name, value in (
            ("/v1/feeds/subscriptions/{subscription}", "subscription", subscription),
            ("/v1/webhooks/{webhook}", "webhook", webhook),
        )
    ]


def workspace_of(server: Server) -> str:
    (found,) = server.staff("GET", "/v1/admin/workspaces").json()["workspaces"]
    return str(found["id"])


def made(server: Server, what: str, **body: Any) -> str:
    return str(server.staff("POST", f"/v1/admin/{what}", json=body).json()["id"])


def cursors_of(server: Server) -> dict[str, str]:
    """Of each kind of list a cursor that it may have given, by the paths that take it."""
    (found,) = server.staff("GET", "/v1/admin/workspaces").json()["workspaces"]
    by_name, by_number = "/v1/(admin|feeds)/datasets", "/v1/(admin/audit|.*/changes)"
    return {
        "^/v1/.*": timed_cursor(found["createdAt"], found["id"]),
        f"^{by_name}$": "ds_a",
        "^/v1/admin/plans$": "default",
        f"^{by_number}$": "1",
        "^/v1/feeds/subscriptions/{subscription}/events$": "evt_000000000000",
    }


def walk(server: Server, folder: Path, key: str, *options: str, more: str = "") -> set[str]:
    """Walk the document; with settings of `more`, by the hooks, and give what they saw taken."""
    taken, ids = folder / "taken", ids_of(server)
    known = "\n".join(f'"path.{name}" = "{value}"' for name, value in ids.items())
    settings = folder / "schemathesis.toml"
    shared, _, checks = SETTINGS.read_text().partition("[checks.")
    shared = f'hooks = "{HOOKS}"\n{shared}' if more else shared
    checks = more or f"[checks.{checks}"
    settings.write_text(f"{shared}\n{checks}\n[parameters]\n{known}\n")
    headers = ("-H", f"Authorization: Bearer {key}")
    done = subprocess.run(
        [
            *(*WALK, str(settings), "--no-color", "run", f"{server.url}/openapi.json"),
            *(*headers, *options),
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=settings.parent,
        env=environment(WALK_SUBSCRIPTION=ids["subscription"], WALK_TAKEN=str(taken)),
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.get("/v1/feeds/datasets", key=key or None).status_code == 200, "it kept its key"
    assert "Traceback" not in server.log()
    return set(taken.read_text().splitlines()) if taken.exists() else set()


@pytest.mark.parametrize("who", ["a subscriber", "staff", "nobody"])
def test_schemathesis_finds_nothing(tmp_path: Path, who: str) -> None:
    with served(tmp_path, PLOTI_ALLOW_NETWORKS="127.0.0.0/8") as server:
        key = {"a subscriber": server.key, "staff": server.staff_key, "nobody": ""}[who]
        path = f"/v1/admin/workspaces/{workspace_of(server)}"
        server.staff("PATCH", path, json={"public": who == "nobody"})
        walk(server, tmp_path, key)


@pytest.mark.parametrize("who", ["a subscriber", "staff"])
def test_what_the_document_allows_is_taken(tmp_path: Path, who: str) -> None:
    with served(tmp_path, PLOTI_ALLOW_NETWORKS="127.0.0.0/8") as server:
        key = server.key if who == "a subscriber" else server.staff_key
        cursors = [
            f'[[operations]]\ninclude-path-regex = "{path}"\n'
            f'parameters = {{ "query.cursor" = "{value}" }}'
            for path, value in reversed(cursors_of(server).items())
        ]
        server.declare("ds_a")
        taken = walk(
            *(server, tmp_path, key),
            *("--mode", "positive", "--exclude-path-regex", BUILDS),
            more="\n".join([ACCEPTED, *cursors, *left_to_delete(server)]),
        )
    staffs = {each for each in MEANT if "/v1/admin/" in each}
    assert (MEANT if who == "staff" else MEANT - staffs) <= taken
