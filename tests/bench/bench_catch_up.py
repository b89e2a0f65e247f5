"""What catching up over many versions costs: by changes, by the snapshot, and as sync chooses.

`python -m tests.bench.bench_catch_up [VERSIONS [ROWS [CHANGED [KIND]]]]` (90 versions of 50,000
rows with 10 changed in each, into a DuckDB file; KIND may be `sqlite`). A made-up feed is served on
loopback; CPU seconds of this process, which serves too. The goal is 1.2 × the cheaper way.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
from pathlib import Path

from tests.fakes import synced
from tests.fakes.feed import SUBSCRIPTION, FakeFeed, make_schema
from tests.fakes.feed_server import KEY, serve

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


def spent() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def sync(url: str, file: Path, weights: Weights | None) -> tuple[float, int, int]:
    """Bring the file up to date: CPU seconds, loads, applied versions."""
    destination = synced.destination(file)
    kind = type(destination)
    own = kind.weights
    kind.weights = weights or own
    before = spent()
    with (
        Client(KEY, url=url) as client,
        open_run(
            feed=ClientFeed(client, SUBSCRIPTION), destination=destination, options=Options()
        ) as run,
    ):
        result = run.catch_up()
    kind.weights = own
    return spent() - before, result.loads, result.applies


def main(versions: int = 90, rows: int = 50_000, changed: int = 10, kind: str = "duckdb") -> None:
    """Measure and print."""
    chance, feed = random.Random(1), FakeFeed()
    state = {f"rec_{number:012}": row(number, chance) for number in range(rows)}
    feed.join(PERMITS)
    first = feed.release(PERMITS, SCHEMA, dict(state))
    with tempfile.TemporaryDirectory() as folder, serve(feed) as server:
        files = {way: Path(folder, f"{number}.{kind}") for number, way in enumerate(WAYS)}
        for file in files.values():
            sync(server.url, file, None)
        for _ in range(versions):
            state |= {key: row(9, chance) for key in chance.sample([*state], changed)}
            version = feed.release(PERMITS, SCHEMA, dict(state))
            vars(version)["buckets"] = first.buckets  # dear by plain Python, and not asked for
        print(f"{versions} versions, {rows:,} rows, {changed:,} changed in each, {kind}:")
        for way, weights in WAYS.items():
            cost, loads, applies = sync(server.url, files[way], weights)
            print(f"  {way}: {cost:.2f} CPU s ({loads} loads, {applies} versions applied)")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), *sys.argv[4:])
