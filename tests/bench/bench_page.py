"""What a page of 100 events costs the server, against equal bytes that it sends from memory.

`python -m tests.bench.bench_page [postgres]` prints CPU microseconds a request of each, and their
ratio; PostgreSQL's own processes are not counted. The floor is /openapi.json of the same server,
whose cost is scaled to the page's size by its own measured share per byte, which is small beside
that per request. Rounds take turns with each other, so that other work on the machine falls on all
of them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from tests.e2e.serving import Server, served
from tests.fakes import postgres

EVENTS = 100
REQUESTS = 4000
ROUNDS = 5
UNBOUND = {"PLOTI_RATE_LIMIT": "1000000"}


def cpu_seconds(pid: int) -> float:
    """What the process's threads have used, the system's time for them included.

    The scheduler counts nanoseconds; the process's own sum is in hundredths of a second.
    """
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


async def ask(session: aiohttp.ClientSession, path: str) -> int:
    """Ask so often over a few connections; the bytes of one answer."""
    size = 0

    async def some() -> None:
        nonlocal size
        for _ in range(REQUESTS // 4):
            async with session.get(path) as response:
                response.raise_for_status()
                size = len(await response.read())

    await asyncio.gather(*(some() for _ in range(4)))
    return size


async def measure(server: Server, paths: dict[str, str]) -> dict[str, tuple[float, int]]:
    """The least CPU microseconds a request of each, of rounds of all in turn, and its bytes."""
    headers = {"authorization": f"Bearer {server.key}"}
    found: dict[str, tuple[float, int]] = {}
    async with aiohttp.ClientSession(server.url, headers=headers) as session:
        for _ in range(ROUNDS):
            for name, path in paths.items():
                began = cpu_seconds(server.process.pid)
                size = await ask(session, path)
                spent = (cpu_seconds(server.process.pid) - began) / REQUESTS * 1e6
                found[name] = min(found.get(name, (spent, size)), (spent, size))
    return found


@contextmanager
def serving(database: list[str]) -> Iterator[Server]:
    """A server over the database of its folder, or over one of PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder:
        if database == ["postgres"]:
            with postgres.running() as cluster, cluster.database() as url:
                settings = {"PLOTI_DATABASE_URL": url, "PLOTI_SECRET_KEYS": "k" * 32}
                with served(Path(folder), anew=True, **UNBOUND, **settings) as server:
                    yield server
        else:
            with served(Path(folder), anew=True, **UNBOUND) as server:
                yield server


def main() -> None:
    """Fill a log, measure all and print."""
    with serving(sys.argv[1:]) as server:
        for number in range(EVENTS):
            server.declare(f"ds_{number}")
        log = server.subscribe(*(f"ds_{number}" for number in range(EVENTS)))
        paths = {
            "page of 100 events": f"{log}/events?limit=100",
            "one event": f"{log}/events?limit=1",
            "from memory": "/openapi.json",
            "health": "/healthz",
        }
        costs = asyncio.run(measure(server, paths))
        for name, (cost, size) in costs.items():
            print(f"{name:20} {cost:6.0f} us a request, {size} bytes")
        page, size = costs["page of 100 events"]
        floor = from_memory(size, small=costs["health"], large=costs["from memory"])
        print(f"the page costs {page / floor:.2f} of its bytes from memory ({floor:.0f} us)")


def from_memory(size: int, *, small: tuple[float, int], large: tuple[float, int]) -> float:
    """What so many bytes from memory cost, between a small answer and a large one."""
    share = max(large[0] - small[0], 0) / (large[1] - small[1])
    return small[0] + share * (size - small[1])


if __name__ == "__main__":
    main()
