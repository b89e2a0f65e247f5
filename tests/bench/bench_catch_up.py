"""What catching up over many versions costs: by changes, by the snapshot, and as sync chooses.

`python -m tests.bench.bench_catch_up [VERSIONS [ROWS [CHANGED [KIND]]]]` (90 versions of 50,000
rows with 10 changed in each, into a DuckDB file; KIND may be any other of the destinations). A
made-up feed is served on loopback; CPU seconds of this process, which serves too, and of
PostgreSQL. The goal is 1.2 × the cheaper way.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.bench_sync import postmaster_of, server_seconds
from tests.fakes import postgres, synced
from tests.fakes.feed import SUBSCRIPTION, FakeFeed, make_schema
from tests.fakes.feed_server import KEY, serve
from tests.fakes.synced import Place

from ploti.client.connection import Client
from ploti.model.ids import DatasetId
from ploti.sync.costs import Weights
from ploti.sync.feed import ClientFeed
from ploti.sync.runner import open_run
from ploti.sync.work import Options

GOAL = 1.2
PERMITS = DatasetId("ds_permits")
SCHEMA = make_schema(no="string", status="string", address="string", units="int64", fee="float64")
WAYS = {
    "by changes": Weights(step=0, change=0, table=0),
    "by the snapshot": Weights(step=2**40),
    "as sync chooses": None,
}


def row(number: int, chance: random.Random) -> dict[str, object]:
    """A record of some words and numbers."""
    return {
        "no": f"BP-{number:08}",
        "status": chance.choice(["Issued", "Final", "Void"]),
        "address": f"{chance.randrange(9_999)} Street {chance.randrange(97)}",
        "units": chance.randrange(40),
        "fee": chance.randrange(90_000_000) / 100,
    }


def spent(server: int | None) -> float:
    """CPU seconds of this process so far, and of a database server."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    own = used.ru_utime + used.ru_stime
    if server is None:
        return own
    time.sleep(0.5)  # a connection that is closed is counted once its process has ended
    return own + server_seconds(server)


@contextmanager
def places(kind: str) -> Iterator[dict[str, Place]]:
    """A new destination of a kind for each way."""
    with ExitStack() as stack:
        if kind == "postgresql":
            cluster = stack.enter_context(postgres.running())
            yield {way: stack.enter_context(cluster.database()) for way in WAYS}
            return
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        yield {way: Path(folder, f"{number}.{kind}") for number, way in enumerate(WAYS)}


def sync(url: str, place: Place, weights: Weights | None) -> tuple[float, int, int]:
    """Bring the copy up to date: CPU seconds, loads, applied versions."""
    destination = synced.destination(place)
    server = postmaster_of(synced.address(place))
    kind = type(destination)
    own = kind.weights
    kind.weights = weights or own
    before = spent(server)
    with (
        Client(KEY, url=url) as client,
        open_run(
            feed=ClientFeed(client, SUBSCRIPTION), destination=destination, options=Options()
        ) as run,
    ):
        result = run.catch_up()
    kind.weights = own
    return spent(server) - before, result.loads, result.applies


def main(versions: int = 90, rows: int = 50_000, changed: int = 10, kind: str = "duckdb") -> None:
    """Measure and print."""
    chance, feed = random.Random(1), FakeFeed()
    state = {f"rec_{number:012}": row(number, chance) for number in range(rows)}
    feed.join(PERMITS)
    first = feed.release(PERMITS, SCHEMA, dict(state))
    with places(kind) as copies, serve(feed) as server:
        for place in copies.values():
            sync(server.url, place, None)
        for _ in range(versions):
            state |= {key: row(9, chance) for key in chance.sample([*state], changed)}
            version = feed.release(PERMITS, SCHEMA, dict(state))
            vars(version)["buckets"] = first.buckets  # dear by plain Python, and not asked for
        print(f"{versions} versions, {rows:,} rows, {changed:,} changed in each, {kind}:")
        for way, weights in WAYS.items():
            cost, loads, applies = sync(server.url, copies[way], weights)
            print(f"  {way}: {cost:.2f} CPU s ({loads} loads, {applies} versions applied)")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), *sys.argv[4:])
