"""How long after its release a version is committed in the copy of a client that follows.

`python -m tests.bench.bench_follow [VERSIONS [ROWS]]` (40 versions of 20,000 rows, one changed in
each): the time from the version's `publishedAt` to the line that `ploti feeds sync --follow --json`
prints of its commit, both by this machine's clock. The goal is a median of at most 250 ms.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.serving import PLOTI, Server, environment, served

GOAL = 250.0
DATASET = "ds_bench"


def state(rows: int, changed: int) -> bytes:
    """A CSV in which one row is others' each time."""
    lines = [f"{number},place {number},{number % 17}" for number in range(rows)]
    lines[changed] = f"{changed},changed,{changed}"
    return ("id,name,units\n" + "\n".join(lines) + "\n").encode()


def await_commit(follower: subprocess.Popen[str], version: int) -> datetime:
    """When the line of this version's commit is read."""
    assert follower.stdout is not None
    for line in follower.stdout:
        told = json.loads(line)
        if told["moment"] == "committed" and told["version"] == version:
            return datetime.now(UTC)
    raise RuntimeError("the follower ended")


def measure(server: Server, folder: Path, versions: int, rows: int) -> list[float]:
    """Milliseconds from release to commit of each version but the first."""
    server.declare(DATASET, key=["id"])
    server.push(DATASET, state(rows, 0))
    subscription = server.subscribe(DATASET).rpartition("/")[2]
    command = [*PLOTI, "feeds", "sync", subscription, "--to", f"duckdb:{folder / 'copy.duckdb'}"]
    settings = environment(PLOTI_API_URL=server.url, PLOTI_API_KEY=server.key)
    spent = []
    with subprocess.Popen(
        [*command, "--follow", "--json"], stdout=subprocess.PIPE, text=True, env=settings
    ) as follower:
        await_commit(follower, 1)
        for number in range(2, versions + 2):
            assert server.push(DATASET, state(rows, number))["version"] == number
            committed = await_commit(follower, number)
            shown = server.get(f"/v1/feeds/datasets/{DATASET}/versions/{number}").json()
            released = datetime.fromisoformat(shown["publishedAt"])
            spent.append((committed - released).total_seconds() * 1000)
        follower.terminate()
    return spent


def main(versions: int = 40, rows: int = 20_000) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), anew=True) as server:
        spent = sorted(measure(server, Path(folder), versions, rows))
    half, worst = statistics.median(spent), spent[int(len(spent) * 0.95)]
    print(
        f"{versions} versions of {rows:,} rows: release to applied p50 {half:.0f} ms,"
        f" p95 {worst:.0f} ms; goal p50 {GOAL:.0f} ms, {'met' if half <= GOAL else 'NOT met'}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
