"""The one function that makes the JSON of events, for the log's pages and for webhooks alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ploti.model.ids import DatasetId, SubscriptionId, event_id, event_ids

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


@dataclass(frozen=True, slots=True)
class Events:
    """Events of a log in their order: the number of each, and its body."""

    numbers: Sequence[int]
    bodies: Sequence[Body]

    def __iter__(self) -> Iterator[tuple[int, Body]]:
        return zip(self.numbers, self.bodies, strict=True)


def render(seq: int, *, subscription_id: SubscriptionId, body: Body, base: str) -> bytes:
    """The event number `seq` of a subscription as JSON; `base` is where the API is reached."""
    between, behind = _around_in(base)[body]
    return f'{{"id":"{event_id(seq)}{between}{subscription_id}{behind}'.encode()


def render_list(events: Events, *, subscription_id: SubscriptionId, base: str) -> bytes:
    """Events with commas between: each as `render` has it."""
    if not events.numbers:
        return b""
    start, ends = event_ids(events.numbers)
    pieces = [f',{{"id":"{start}', "", "", subscription_id, ""] * len(ends)
    pieces[0] = pieces[0][1:]
    pieces[1::5] = ends
    pieces[2::5], pieces[4::5] = zip(*map(_around_in(base).__getitem__, events.bodies), strict=True)
    return "".join(pieces).encode()


class _Around(dict[Body, tuple[str, str]]):
    """What is alike in all logs of an event: between its id and the subscription's, and behind."""

    def __init__(self, base: str) -> None:
        self._base = base

    def __missing__(self, body: Body) -> tuple[str, str]:
        data, version = body.data, body.linked_version
        if version is not None:
            here = version_link(body.dataset_id, version, base=self._base)
            schema = schema_link(body.dataset_id, version, base=self._base)
            data = f'{data[:-1]},"links":{{"version":"{here}","schema":"{schema}"}}}}'
        before = f'","type":"{body.type}","timestamp":"{body.at}","subscriptionId":"'
        if len(self) >= _REMEMBERED:
            self.clear()
        self[body] = found = before, f'","data":{data}}}'
        return found


@lru_cache
def _around_in(base: str) -> _Around:
    return _Around(base)


def version_link(dataset_id: DatasetId, version: int, *, base: str) -> str:
    """The absolute address of a version (R-021)."""
    return f"{base}/v1/feeds/datasets/{dataset_id}/versions/{version}"


def schema_link(dataset_id: DatasetId, version: int, *, base: str) -> str:
    """The absolute address of a version's schema (R-022)."""
    return f"{base}/v1/feeds/datasets/{dataset_id}/schema?version={version}"
