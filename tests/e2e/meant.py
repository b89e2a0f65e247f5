"""Hooks of schemathesis' walk: what a body's form does not say of it is as somebody means it.

An address leads to where webhooks may go, a cursor is of the log, a selection keeps something, a
key ends in the future and a declaration is whole. All else is as schemathesis makes it.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import schemathesis

URL = "http://127.0.0.1:9/h"
SUBSCRIPTION = os.environ["WALK_SUBSCRIPTION"]
TAKEN = Path(os.environ["WALK_TAKEN"])
DECLARED = {"id": "ds_a", "title": "A", "place": "us/fl", "topic": "t"}
MORE: list[dict[str, Any]] = [
    {},
    {"license": "CC0-1.0", "attribution": "The county"},
    {"source": {"kind": "http", "url": "https://data.example/a.csv"}, "check_every": "24h"},
    {"key": ["id"], "repeated_keys": "number", "continuation": "auto"},
    {"columns": {"v": "string"}, "null_values": ["n/a"], "trim": True, "timezone": "UTC"},
    {"holds": {"min_row_ratio": 0.1, "max_id_turnover": "off"}, "ignore_changes": ["v"]},
    {"source": {"format": "csv"}, "bad_rows": "set_aside", "rename": {"w": "v"}, "paused": True},
    {"holds": "off", "geometry": {"longitude": "x", "latitude": "y"}, "compare": {"n": 0.5}},
]
_more = itertools.cycle(MORE)


def _whole(_: dict[str, Any]) -> dict[str, Any]:
    return DECLARED | next(_more)


def _led(body: dict[str, Any]) -> dict[str, Any]:
    return body | ({"url": URL} if "url" in body else {})


def _for_the_subscription(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"url": URL, "subscriptionId": SUBSCRIPTION}


def _from_the_log(body: dict[str, Any]) -> dict[str, Any]:
    return body if body["from"] == "now" else body | {"from": "evt_000000000001"}


def _keeping(body: dict[str, Any]) -> dict[str, Any]:
    return body | ({"datasets": ["ds_a"]} if "datasets" in body else {})


def _ahead(body: dict[str, Any]) -> dict[str, Any]:
    return body | ({"expiresAt": "2999-01-01T00:00:00.000Z"} if body.get("expiresAt") else {})


def _of_a_column(body: dict[str, Any]) -> dict[str, Any]:
    return body | ({"from": "id"} if body.get("from") is not None else {})


MEANT = {
    ("POST", "/v1/webhooks"): _for_the_subscription,
    ("PATCH", "/v1/webhooks/{webhook}"): _led,
    ("POST", "/v1/webhooks/{webhook}/resume"): _from_the_log,
    ("PATCH", "/v1/feeds/subscriptions/{subscription}"): _keeping,
    ("PUT", "/v1/admin/datasets/{dataset}"): _whole,
    ("POST", "/v1/admin/datasets/{dataset}/proposals"): _of_a_column,
    ("POST", "/v1/admin/keys"): _ahead,
}


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]
) -> None:
    """Put what is meant into the body of a request that is about to be sent."""
    meant = MEANT.get((case.method.upper(), case.path))
    if meant is not None and isinstance(case.body, dict):
        case.body = meant(case.body)


@schemathesis.hook
def after_call(
    context: schemathesis.HookContext, case: schemathesis.Case, response: schemathesis.Response
) -> None:
    """Note what was taken, so that no request was only ever refused for what it is about."""
    if response.status_code < 300:
        with TAKEN.open("a") as taken:
            taken.write(f"{case.method.upper()} {case.path}\n")
