"""Reading a log to its end or for as long as it goes on, and an event on one line for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ploti.cli.output import say_counts
from ploti.client.connection import Client
from ploti.client.pages import Page
from ploti.errors import RateLimited, TransportError, Unavailable
from ploti.model.event import (
    Added,
    Delayed,
    Event,
    FeedData,
    Removed,
    ResyncRequired,
    SchemaChanged,
    Stale,
    UnknownEvent,
    Updated,
)
from ploti.model.ids import START, EventId

MOST = 500
"""Events of a page at most."""
WAIT = 30
"""Seconds that the server holds a request open while nothing is new."""
LONGEST_PAUSE = 30.0
"""Seconds between tries while the server cannot be reached."""

Events = Page[Event | UnknownEvent, EventId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One reading of a subscription's log; one that follows outlives a server that is away."""

    subscription: str
    types: list[str] | None
    follow: bool

    def pages(self, client: Client, *, cursor: str | None, limit: int | None) -> Iterator[Events]:
        """The pages after the cursor, with at most `limit` events in all, until nothing is new."""
        left = limit
        while left is None or left > 0:
            page = self._page(client, cursor, min(left or MOST, MOST))
            yield page
            if not self.follow and page.next_cursor == (cursor or START):
                return
            cursor = page.next_cursor
            left = None if left is None else left - len(page.events)

    def _page(self, client: Client, cursor: str | None, limit: int) -> Events:
        pause = 1.0
        while True:
            try:
                return client.feeds.subscriptions.events(
                    self.subscription,
                    cursor=cursor,
                    limit=limit,
                    types=self.types,
                    wait=WAIT if self.follow else None,
                )
            except (TransportError, Unavailable, RateLimited) as error:
                if not self.follow:
                    raise
                print(f"{error.detail}; trying again in {pause:g} s", file=sys.stderr)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def describe(event: Event | UnknownEvent) -> tuple[object, ...]:
    """An event's id, time, dataset, type, and what it says."""
    if isinstance(event, UnknownEvent):
        return event.id, event.timestamp, event.data.get("datasetId"), event.type
    kind = event.type.removeprefix("feed.dataset.")
    return event.id, event.timestamp, event.data.dataset_id, kind, _say(event.data)


def _say(data: FeedData) -> str:
    match data:
        case Added(version=None):
            return "before its first version"
        case Added():
            return f"at version {data.version}"
        case Updated():
            return (
                f"version {data.version} after {data.previous_version}, {say_counts(data.counts)}"
            )
        case SchemaChanged():
            return f"{data.schema_change.level}, {data.schema_version} with version {data.version}"
        case ResyncRequired():
            return f"load version {data.version}: {data.reason}"
        case Removed() | Stale():
            return data.reason
        case Delayed():
            return f"a version waits for review since {data.since}: {data.reason}"
