"""How soon an event reaches 50 clients that wait while a push of 1.7M rows is built.

`python -m tests.bench.bench_waiting [PARQUET]` makes a CSV of the history `austin_permits_all`
(or of another Parquet file), serves, pushes it, and meanwhile declares a dataset a second, whose
`added` each of 50 waiting clients gets. Printed: seconds from the declaration's commit being
asked for to the last and the median client's answer, and the peak memory of server and child.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import duckdb
from tests.e2e.serving import Server, served

CLIENTS = 50
HISTORY = Path(__file__).parents[3] / "shared/data/austin_permits_all.parquet"
LONGEST_WAIT = 30


class Peaks:
    """The most memory that the server and its children were seen to hold, in MiB."""

    def __init__(self, server: int) -> None:
        self.server = self.child = 0.0
        self._pid = server
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            self.server = max(self.server, _peak(self._pid))
            self.child = max([self.child, *map(_peak, _children(self._pid))])


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        yield from map(int, task.read_text().split())


def _peak(pid: int) -> float:
    try:
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) / 1024 if found else 0


async def follow(session: aiohttp.ClientSession, log: str, seen: dict[str, list[float]]) -> None:
    """Wait on a log for ever, noting when each dataset's `added` came."""
    cursor = "evt_000000000000"
    while True:
        url = f"{log}/events?cursor={cursor}&wait={LONGEST_WAIT}"
        async with session.get(url) as response:
            page = await response.json()
        now = time.perf_counter()
        for event in page["events"]:
            seen.setdefault(event["data"]["datasetId"], []).append(now)
        cursor = page["nextCursor"]


async def measure(server: Server, content: Path) -> list[tuple[float, float]]:
    """Median and last delay of each event that was written while the push was built."""
    staff = {"authorization": f"Bearer {server.staff_key}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        aiohttp.ClientSession(
            server.url,
            headers={"authorization": f"Bearer {server.key}"},
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as session,
        aiohttp.ClientSession(
            server.url, headers=staff, timeout=aiohttp.ClientTimeout(total=None)
        ) as admin,
    ):
        logs = [await _subscribe(session) for _ in range(CLIENTS)]
        seen: dict[str, list[float]] = {}
        clients = [asyncio.create_task(follow(session, log, seen)) for log in logs]
        push = asyncio.create_task(_push(admin, content))
        delays = []
        number = 0
        while not push.done():
            await asyncio.sleep(1)
            number += 1
            delays.append(await _declare_and_wait(admin, f"ds_other_{number}", seen))
        print(f"push: {push.result()}")
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        return delays


async def _subscribe(session: aiohttp.ClientSession) -> str:
    body = {"topics": ["others"]}
    async with session.post("/v1/feeds/subscriptions", json=body) as response:
        made = await response.json()
    return f"/v1/feeds/subscriptions/{made['id']}"


async def _push(session: aiohttp.ClientSession, content: Path) -> str:
    began = time.perf_counter()
    with content.open("rb") as file:
        url = "/v1/admin/datasets/ds_big/push?name=big.csv"
        async with session.post(url, data=file) as response:
            outcome = await response.json()
    return f"{outcome.get('outcome')} {outcome['detail']}, {time.perf_counter() - began:.0f} s"


async def _declare_and_wait(
    session: aiohttp.ClientSession, dataset: str, seen: dict[str, list[float]]
) -> tuple[float, float]:
    body = {"id": dataset, "title": "T", "place": "us", "topic": "others"}
    began = time.perf_counter()
    async with session.put(f"/v1/admin/datasets/{dataset}", json=body) as response:
        response.raise_for_status()
    while len(seen.get(dataset, ())) < CLIENTS:  # noqa: ASYNC110 - the clients note each answer
        await asyncio.sleep(0.005)
    delays = sorted(moment - began for moment in seen[dataset])
    return statistics.median(delays), delays[-1]


def main(parquet: Path) -> None:
    """Make the CSV, serve, measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        content = Path(folder, "big.csv")
        duckdb.sql(f"COPY (FROM '{parquet}') TO '{content}' (FORMAT csv, HEADER)")
        print(f"{content.stat().st_size >> 20} MiB of CSV, {CLIENTS} clients")
        with served(Path(folder), "--max-waits", str(CLIENTS), anew=True) as server:
            points = {"longitude": "lng", "latitude": "lat"}
            server.declare("ds_big", geometry=points, continuation="off")
            peaks = Peaks(server.process.pid)
            delays = asyncio.run(measure(server, content))
            peaks.stop()
            print(server.log())
    print(f"{len(delays)} events while it was built; from the declaration to the client")
    for name, values in (
        ("median client", [median for median, _ in delays]),
        ("last client", [last for _, last in delays]),
    ):
        ordered = sorted(values)
        p95 = ordered[int(len(ordered) * 0.95)]
        print(
            f"{name:14} median {statistics.median(ordered):.3f} s, p95 {p95:.3f} s, "
            f"worst {ordered[-1]:.3f} s"
        )
    print(f"peak memory: server {peaks.server:.0f} MiB, child {peaks.child:.0f} MiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HISTORY)
