"""What type checkers know about the public names: read by mypy and pyright, never run."""

from pathlib import Path
from typing import assert_type

import ploti
from ploti.client.pages import AsyncPage, Page
from ploti.model.admin import AdminDataset, Applied, Hold, Outcome
from ploti.model.dataset import Dataset
from ploti.model.event import Event, UnknownEvent
from ploti.model.ids import EventId
from ploti.model.manifest import Manifest
from ploti.model.schema import SchemaDocument
from ploti.model.subscription import Subscription
from ploti.model.version import ChangeRow, Version, VersionDigest, VersionSummary
from ploti.model.webhook import DeliveryState, Ping

assert_type(ploti.__version__, str)
_ = ploti.nothing  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]

page = ploti.feeds.subscriptions.events("sub_8f3k2m", cursor="evt_000000000042")
assert_type(page, Page[Event | UnknownEvent, EventId])
assert_type(page.events, list[Event | UnknownEvent])
assert_type(page.next_cursor, EventId)
assert_type([each.id for each in page], list[EventId])
assert_type(page.following(), Page[Event | UnknownEvent, EventId] | None)

datasets = ploti.feeds.datasets
maps = ploti.feeds.id_map("ds_orange_fl_building_permits", 41, 43)
assert_type(maps, dict[str, str])
assert_type(datasets.list(place="us/fl"), Page[Dataset, str | None])
assert_type(datasets.show("ds_a"), Dataset)
assert_type(datasets.versions("ds_a", after=3), Page[VersionSummary, int | None])
assert_type(datasets.version("ds_a", 3, format="csv"), Version)
assert_type(datasets.changes("ds_a", 3), Page[ChangeRow, str | None])
assert_type(datasets.digest("ds_a", 3), VersionDigest)
assert_type(datasets.schema("ds_a", version=3), SchemaDocument)
assert_type(datasets.snapshot_link("ds_a"), str)
assert_type(datasets.download("ds_a", 3, to="a.parquet"), Path)
datasets.list("us/fl")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
datasets.show()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

subscriptions = ploti.feeds.subscriptions
assert_type(subscriptions.create(datasets=["ds_a"]), Subscription)
assert_type(subscriptions.list(), Page[Subscription, str | None])
assert_type(subscriptions.show("sub_a"), Subscription)
assert_type(subscriptions.update("sub_a", places=["us"]), Subscription)
assert_type(subscriptions.manifest("sub_a"), Manifest)

with ploti.Client("ploti_key", url="http://127.0.0.1:8080", timeout=5) as client:
    assert_type(client, ploti.Client)
    assert_type(client.admin.datasets.apply({"id": "ds_a"}), Applied)
    assert_type(client.admin.datasets.list(), Page[AdminDataset, str | None])
    assert_type(client.admin.datasets.show("ds_a"), AdminDataset)
    assert_type(client.admin.check("ds_a"), Outcome)
    assert_type(client.admin.push("ds_a", Path("a.csv"), dry_run=True), Outcome)
    assert_type(client.admin.holds.list(state="open"), Page[Hold, str | None])
    assert_type(client.admin.holds.show("hold_a"), Hold)
    assert_type(client.admin.holds.release("hold_a", note="It is right."), Hold)
    assert_type(client.admin.holds.discard("hold_a"), Hold)

error: ploti.ApiError = ploti.Expired("Read the manifest.")
assert_type(error.retry_after, float | None)


async def awaited() -> None:
    """The awaited side gives the same values."""
    async with ploti.AsyncClient() as client:
        assert_type(client, ploti.AsyncClient)
        assert_type(await client.feeds.datasets.show("ds_a"), Dataset)
        assert_type(await client.feeds.datasets.download("ds_a", to=Path("a")), Path)
        listed = await client.feeds.datasets.list(limit=5)
        assert_type(listed, AsyncPage[Dataset, str | None])
        assert_type([each async for each in listed], list[Dataset])
        assert_type(await client.admin.push("ds_a", "a.csv"), Outcome)


made = ploti.webhooks.create("https://example.org/h", subscription_id="sub_8f3k2m")
assert_type(made.secret, str)
assert_type([each.state for each in ploti.webhooks.deliveries(made.id)], list[DeliveryState])
assert_type(ploti.webhooks.verify(b"", {}, made.secret), Event | UnknownEvent | Ping)
