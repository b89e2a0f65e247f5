"""The use cases over a real database and real files, with a clock and a source that tests move."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from tests.fakes.plans import ALL_OPEN
from tests.fakes.small_builder import SmallBuilder

from ploti.errors import SourceError
from ploti.model.admin import Applied, BuildProgress, Hold, HoldState, Outcome
from ploti.model.ids import START, DatasetId, HoldId, SubscriptionId
from ploti.model.subscription import NewSubscription, Subscription
from ploti.model.wire import Instant
from ploti.server.adapters.blobs import FolderBlobs, LinkSigner
from ploti.server.adapters.ids import RandomIds
from ploti.server.adapters.meters import PrometheusMeters
from ploti.server.adapters.plans import LocalPlans
from ploti.server.adapters.store import SqliteStore
from ploti.server.build.progress import Tell, ignore
from ploti.server.membership.principal import Principal, Reader
from ploti.server.membership.rights import PlanReading
from ploti.server.ports.outside import Builder, Fetched, NotModified, Plans
from ploti.server.ports.store import Transaction
from ploti.server.service.apply_dataset import apply_dataset
from ploti.server.service.authenticate import authenticate
from ploti.server.service.change_subscription import create_subscription
from ploti.server.service.check_source import Parts, check_source, push_state
from ploti.server.service.read_events import read_events
from ploti.server.service.read_plans import read_all_plans, read_plans, with_plans
from ploti.server.service.review_hold import discard_hold, list_holds, release_hold
from ploti.server.service.set_up import set_up
from ploti.server.sources.source import Source
from ploti.server.sources.validators import Validators

T = TypeVar("T")
BASE = "https://api.example"
PERMITS = DatasetId("ds_permits")
ROADS = DatasetId("ds_roads")


class MovedClock:
    """A clock that goes on by a second at each look."""

    def __init__(self) -> None:
        self.moment = Instant.parse("2026-11-30T12:00:00Z")

    def now(self) -> Instant:
        self.moment = Instant.of(self.moment + timedelta(seconds=1))
        return self.moment


class OneSource:
    """A source whose bytes a test sets; None means that it cannot be read."""

    def __init__(self, blobs: FolderBlobs) -> None:
        self.blobs = blobs
        self.bytes: bytes | None = b""
        self.etag: str | None = None
        self.told: list[BuildProgress] = []
        self.asked: list[Validators | None] = []
        self.before: Callable[[], Awaitable[None]] | None = None

    async def fetch(
        self, source: Source, *, into: str, known: Validators | None = None, tell: Tell = ignore
    ) -> Fetched | NotModified:
        for word in self.told:
            tell(word)
        self.asked.append(known)
        if known and known.etag == self.etag:
            return NotModified()
        if self.bytes is None:
            raise SourceError("The source answers 503: check again later")
        blob = await self.blobs.receive(into, stream(self.bytes), limit=1000)
        if self.before is not None:
            await self.before()
        said = self.etag and Validators(url=source.url or "", etag=self.etag, last_modified=None)
        return Fetched(blob=blob, name="permits.csv", validators=said or None)


class World:
    """A composed server without its API; `subscriber` and `staff` are the keys of its set-up."""

    def __init__(self, folder: Path, *, builder: Builder | None = None) -> None:
        self.clock = MovedClock()
        signer = LinkSigner(b"s" * 32, base=BASE, now=self.clock.now)
        self.blobs = FolderBlobs(folder / "blobs", signer=signer)
        self.store = SqliteStore(str(folder / "ploti.db"))
        self.builder = SmallBuilder()
        self.source = OneSource(self.blobs)
        self.ids = RandomIds()
        self.plans: Plans = LocalPlans(self.store)
        self.parts = Parts(
            store=self.store,
            blobs=self.blobs,
            fetcher=self.source,
            builder=builder or self.builder,
            clock=self.clock,
            ids=self.ids,
            plans=self.plans,
            meters=PrometheusMeters(),
            max_source=100_000_000 if builder else 1000,
        )

    async def open(self) -> None:
        now = self.clock.now()
        keys = await self.write(lambda tx: set_up(tx, ids=self.ids, now=now))
        if keys is not None:
            self.staff = await self.read(lambda tx: authenticate(tx, keys.staff, now=now))
            self.subscriber = await self.read(lambda tx: authenticate(tx, keys.subscriber, now=now))

    async def close(self) -> None:
        await self.store.close()
        self.blobs.close()

    async def read(self, work: Callable[[Transaction], T]) -> T:
        return await self.store.read(work)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        return await self.store.write(work)

    async def declare(
        self, dataset_id: DatasetId = PERMITS, *, dry_run: bool = False, **settings: Any
    ) -> Applied:
        raw: dict[str, object] = {
            "id": dataset_id,
            "title": "Permits",
            "place": "us/fl/orange",
            "topic": "permits/building",
            "key": ["id"],
        }
        reading = await read_all_plans(self.store, self.plans)
        return await self.write(
            lambda tx: apply_dataset(
                tx, dataset_id, raw | settings, plans=reading, dry_run=dry_run, now=self.clock.now()
            )
        )

    async def subscribe(self, *, by: Principal | None = None, **selection: Any) -> Subscription:
        new = NewSubscription(**(selection or {"datasets": [PERMITS]}))
        who = by or self.subscriber

        async def create(reading: PlanReading) -> Subscription:
            return await self.write(
                lambda tx: create_subscription(
                    *(tx, who, new),
                    id=self.ids.subscription(),
                    plans=reading,
                    now=self.clock.now(),
                )
            )

        return await with_plans(lambda: self.plans_of(who), create)

    async def plans_of(self, who: Principal) -> PlanReading:
        return await read_plans(self.store, self.plans, [who.workspace_id])

    async def reader_of(self, who: Principal) -> Reader:
        """Who reads the catalogue for the workspace of a key."""
        return Reader(workspaces=(who.workspace_id,), plans=await self.plans_of(who))

    @property
    def reader(self) -> Reader:
        """The subscriber as one who reads the catalogue, on a plan that opens everything."""
        return Reader(workspaces=(self.subscriber.workspace_id,), plans=ALL_OPEN)

    async def push(
        self, text: str, dataset_id: DatasetId = PERMITS, *, dry_run: bool = False
    ) -> Outcome:
        return await push_state(
            self.parts,
            dataset_id,
            name="permits.csv",
            chunks=stream(text.encode()),
            dry_run=dry_run,
        )

    async def check(self, dataset_id: DatasetId = PERMITS, *, full: bool = False) -> Outcome:
        return await check_source(self.parts, dataset_id, full=full)

    async def holds(self, state: HoldState | None = None) -> list[Hold]:
        page = await self.read(lambda tx: list_holds(tx, cursor=None, limit=500, state=state))
        return page.holds

    async def release(self, hold: HoldId, note: str = "") -> Hold:
        now = self.clock.now()
        return await self.write(
            lambda tx: release_hold(tx, hold, by=self.staff, note=note, now=now)
        )

    async def discard(self, hold: HoldId, note: str = "") -> Hold:
        now = self.clock.now()
        return await self.write(
            lambda tx: discard_hold(tx, hold, by=self.staff, note=note, now=now)
        )

    async def events(
        self, subscription: SubscriptionId, *, after: str | None = START, limit: int = 500
    ) -> list[dict[str, Any]]:
        page = await self.read(
            lambda tx: read_events(
                tx,
                self.subscriber,
                subscription,
                cursor=after,
                limit=limit,
                types=frozenset(),
                base=BASE,
            )
        )
        found: list[dict[str, Any]] = json.loads(page.text)["events"]
        return found

    async def told(self, subscription: SubscriptionId) -> list[tuple[Any, ...]]:
        """Each event as its short name with the version and the reason, where it has them."""
        return [
            (
                event["type"].rpartition(".")[2],
                *(event["data"][name] for name in ("version", "reason") if name in event["data"]),
            )
            for event in await self.events(subscription)
        ]

    async def kept(self) -> set[str]:
        """The blobs there are, without the parts that chance makes."""
        names = [*await self.blobs.names("states/"), *await self.blobs.names("datasets/")]
        return {"/".join(part for part in name.split("/") if "att_" not in part) for name in names}


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def table(rows: dict[str, str], *, columns: str = "id,kind") -> str:
    """A state with these values by their keys."""
    return "".join(f"{line}\n" for line in [columns, *(f"{k},{v}" for k, v in rows.items())])


def many(count: int, **changed: str) -> str:
    """A state of `count` rows, some of them with another value."""
    return table({f"k{n}": "deck" for n in range(count)} | changed)


def play(
    folder: Path, story: Callable[[World], Awaitable[T]], *, builder: Builder | None = None
) -> T:
    """Run a story in a new world, or in the one that a folder holds."""

    async def run() -> T:
        world = World(folder, builder=builder)
        await world.open()
        try:
            return await story(world)
        finally:
            await world.close()

    return asyncio.run(run())
