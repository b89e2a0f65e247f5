"""The one function that makes the JSON of events, for the log's pages and for webhooks alike."""

from __future__ import annotations

from typing import NamedTuple

from ploti.model.ids import DatasetId, SubscriptionId, event_id


class Body(NamedTuple):
    """A stored body: what an event says whoever reads it.

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
    data, version = body.data, body.linked_version
    if version is not None:
        here = version_link(body.dataset_id, version, base=base)
        schema = schema_link(body.dataset_id, version, base=base)
        data = f'{data[:-1]},"links":{{"version":"{here}","schema":"{schema}"}}}}'
    return (
        f'{{"id":"{event_id(seq)}","type":"{body.type}","timestamp":"{body.at}",'
        f'"subscriptionId":"{subscription_id}","data":{data}}}'
    ).encode()


def version_link(dataset_id: DatasetId, version: int, *, base: str) -> str:
    """The absolute address of a version (R-021)."""
    return f"{base}/v1/feeds/datasets/{dataset_id}/versions/{version}"


def schema_link(dataset_id: DatasetId, version: int, *, base: str) -> str:
    """The absolute address of a version's schema (R-022)."""
    return f"{base}/v1/feeds/datasets/{dataset_id}/schema?version={version}"
