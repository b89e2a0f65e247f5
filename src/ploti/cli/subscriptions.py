"""`ploti feeds subscriptions`: standing choices of datasets, and their logs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter, validators

from ploti.cli import events as log
from ploti.cli.output import Json, print_fields, print_json, print_line, print_next, print_table
from ploti.client.connection import Client
from ploti.errors import NotDeliverable, NotFound, OutsideCoverage
from ploti.model.page import SubscriptionPage
from ploti.model.subscription import Subscription

app = App(
    name="subscriptions",
    help="Standing choices of datasets, and their logs of events.",
    help_epilogue="Next: create --dataset ID, then events SUB --follow, or: ploti feeds sync SUB",
)

Id = Annotated[str, Parameter(help="A subscription's id: sub_…")]
Name = Annotated[str | None, Parameter(help="What to call it.")]
Datasets = Annotated[
    list[str] | None, Parameter(name="--dataset", negative="--no-datasets", help="A dataset's id.")
]
Places = Annotated[
    list[str] | None,
    Parameter(name="--place", negative="--no-places", help="A place and all below it: us/fl."),
]
Topics = Annotated[
    list[str] | None,
    Parameter(name="--topic", negative="--no-topics", help="A topic and all below it: permits."),
]


@app.command
def create(
    *,
    name: Name = None,
    datasets: Datasets = None,
    places: Places = None,
    topics: Topics = None,
    json: Json = False,
) -> None:
    """Subscribe to datasets by id, or to all that lie in a place and under a topic."""
    with Client() as client:
        made = client.feeds.subscriptions.create(
            name=name or "", datasets=datasets or (), places=places or (), topics=topics or ()
        )
        _warn(client, datasets or ())
    _print(made, json=json)


@app.command(name="list")
def list_subscriptions(*, json: Json = False) -> None:
    """List your workspace's subscriptions, oldest first."""
    with Client() as client:
        found = [*client.feeds.subscriptions.list(limit=500)]
    if json:
        print_json(SubscriptionPage(subscriptions=found, next_cursor=None))
        return
    print_table(
        ["id", "name", "datasets", "places", "topics", "created"],
        [
            [each.id, each.name, each.datasets, each.places, each.topics, each.created_at]
            for each in found
        ],
        empty="No subscriptions. Make one with: ploti feeds subscriptions create --dataset ID",
    )


@app.command
def show(subscription: Id, /, *, json: Json = False) -> None:
    """Show a subscription."""
    with Client() as client:
        found = client.feeds.subscriptions.show(subscription)
    _print(found, json=json)


@app.command
def update(
    subscription: Id,
    /,
    *,
    name: Name = None,
    datasets: Datasets = None,
    places: Places = None,
    topics: Topics = None,
    json: Json = False,
) -> None:
    """Replace the name, or what is chosen; what is not given stays as it is."""
    with Client() as client:
        changed = client.feeds.subscriptions.update(
            subscription, name=name, datasets=datasets, places=places, topics=topics
        )
        _warn(client, datasets or ())
    _print(changed, json=json)


@app.command
def delete(subscription: Id, /, *, json: Json = False) -> None:
    """Delete a subscription with its log, for good."""
    with Client() as client:
        client.feeds.subscriptions.delete(subscription)
    if json:
        print_json({"id": subscription, "deleted": True})
    else:
        print(f"{subscription} is deleted.")


@app.command
def manifest(subscription: Id, /, *, json: Json = False) -> None:
    """Show a subscription's datasets with their current versions, and the cursor to go on from."""
    with Client() as client:
        found = client.feeds.subscriptions.manifest(subscription)
    if json:
        print_json(found)
        return
    print_table(
        ["dataset", "version", "schema", "rows"],
        [
            [each.dataset_id, each.version, each.schema_version, each.row_count]
            for each in found.datasets
        ],
        empty="It delivers no dataset now.",
    )
    print_next(
        f"ploti feeds subscriptions events {subscription} --cursor {found.event_cursor} --follow"
    )


@app.command
def preview(
    *,
    datasets: Datasets = None,
    places: Places = None,
    topics: Topics = None,
    json: Json = False,
) -> None:
    """Show what a selection would deliver, and why other datasets that it matches would not be."""
    with Client() as client:
        found = client.feeds.subscriptions.preview(
            datasets=datasets or (), places=places or (), topics=topics or ()
        )
    if json:
        print_json(found)
        return
    rows = [[each, "yes", ""] for each in found.datasets]
    rows += [[each.dataset_id, "no", each.reason.replace("_", " ")] for each in found.excluded]
    rows += [[each, "no", "no such dataset"] for each in found.unknown]
    print_table(["dataset", "delivered", "why not"], rows, empty="It matches no dataset.")


@app.command
def events(
    subscription: Id,
    /,
    *,
    cursor: Annotated[
        str | None, Parameter(help="The last event that you have applied; those after it follow.")
    ] = None,
    limit: Annotated[
        int | None, Parameter(help="At most so many events.", validator=validators.Number(gte=1))
    ] = None,
    types: Annotated[str | None, Parameter(help="Only these types, with commas between.")] = None,
    follow: Annotated[
        bool,
        Parameter(
            negative=(), show_default=False, help="Go on, and print each event as it happens."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Read a subscription's log, oldest first; with --json one event a line."""
    reading = log.Reading(
        subscription=subscription, types=types.split(",") if types else None, follow=follow
    )
    with Client() as client:
        for page in reading.pages(client, cursor=cursor, limit=limit):
            for event in page.events:
                if json:
                    print_json(event)
                else:
                    print_line(*log.describe(event))
            cursor = page.next_cursor
    if not json:
        print_next(f"ploti feeds subscriptions events {subscription} --cursor {cursor}")


def _warn(client: Client, datasets: Sequence[str]) -> None:
    """Say which ids no dataset has that can be delivered: that is allowed, or a typing error."""
    for each in datasets:
        try:
            client.feeds.datasets.show(each)
        except (NotFound, NotDeliverable, OutsideCoverage) as error:
            print(f"Not delivered for now: {each}. {error}", file=sys.stderr)


def _print(subscription: Subscription, *, json: bool) -> None:
    if json:
        print_json(subscription)
        return
    print_fields(
        {
            "id": subscription.id,
            "name": subscription.name,
            "datasets": subscription.datasets,
            "places": subscription.places,
            "topics": subscription.topics,
            "created": subscription.created_at,
        }
    )
    print_next(
        f"ploti feeds subscriptions events {subscription.id}",
        f"ploti feeds sync {subscription.id} --to duckdb:feeds.duckdb",
    )
