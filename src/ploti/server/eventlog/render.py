"""The one function that makes the JSON of events, for the log's pages and for webhooks alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ploti.model.ids import DatasetId, SubscriptionId, event_id

_REMEMBERED = 4096
"""Events that are not put together anew for each log: a release goes to many."""


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A stored body: what an event says whoever reads it. Each is itself, not what it is equal to.

    `at` is the finished text of the time, `data` the finished JSON object without links;
    `linked_version` is the version that links lead to, None where the event has no links (S-02).
    """

    type: str
    at: str
    dataset_id: DatasetId
    linked_version: int | None
    data: str


def render(seq: int, *, subscription_id: SubscriptionId, body: Body, base: str) -> bytes:
    """The event number `seq` of a subscription as JSON; `base` is where the API is reached."""
    return _text(seq, subscription_id, body, base).encode()


def render_list(
    events: Iterable[tuple[int, Body]], *, subscription_id: SubscriptionId, base: str
) -> bytes:
    """Events by their numbers, with commas between: each as `render` has it."""
    return ",".join([_text(seq, subscription_id, body, base) for seq, body in events]).encode()


def _text(seq: int, subscription_id: SubscriptionId, body: Body, base: str) -> str:
    before, after = _around_subscription(body, base)
    return f'{{"id":"{event_id(seq)}{before}{subscription_id}{after}'


@lru_cache(_REMEMBERED)
def _around_subscription(body: Body, base: str) -> tuple[str, str]:
    """What is alike in all logs of an event: between its id and the subscription's, and behind."""
    data, version = body.data, body.linked_version
    if version is not None:
        here = version_link(body.dataset_id, version, base=base)
        schema = schema_link(body.dataset_id, version, base=base)
        data = f'{data[:-1]},"links":{{"version":"{here}","schema":"{schema}"}}}}'
    before = f'","type":"{body.type}","timestamp":"{body.at}","subscriptionId":"'
    return before, f'","data":{data}}}'


def version_link(dataset_id: DatasetId, version: int, *, base: str) -> str:
    """The absolute address of a version (R-021)."""
    return f"{base}/v1/feeds/datasets/{dataset_id}/versions/{version}"


def schema_link(dataset_id: DatasetId, version: int, *, base: str) -> str:
    """The absolute address of a version's schema (R-022)."""
    return f"{base}/v1/feeds/datasets/{dataset_id}/schema?version={version}"
