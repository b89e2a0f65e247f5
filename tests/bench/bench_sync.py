"""What sync costs in each kind of destination, against the database's own bulk path.

`python -m tests.bench.bench_sync [ROWS [RUNS [KIND…]]]` (1,000,000 rows, 3 runs, DuckDB). Each
side is a process of its own with the same steps: a first load, 0.1 % of changes ten times, other
rows each time, 10 % of changes, and (for sync alone) a load of the same rows again and the digest
of the whole. CPU seconds, a database server's among them, of one such step; the least of the runs
counts. The peak is that of sync's process.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.bench import sync_floors
from tests.fakes.feed import SUBSCRIPTION, make_schema

from ploti.model.columns import OP, RECORD_ID
from ploti.model.schema import Schema

GOAL = 1.3
PARTS = {"0.1 %": 1000, "10 %": 10}
TURNS = {"0.1 %": 10, "10 %": 1}
"""How often a part is changed: a server's time is told in hundredths of a second."""

TYPES = {
    "number": "string",
    "status": "string",
    "address": "string",
    "description": "string",
    "issued": "date",
    "updated": "timestamp",
    "units": "int64",
    "valuation": "float64",
    "fee": "decimal(12,2)",
    "active": "boolean",
}
RECORDS = f"""
    SELECT printf('rec_00000001%010d', i) AS {RECORD_ID}, printf('BP-%08d', i) AS number,
        ['Issued', 'Final', 'Void', 'Expired', 'Applied'][1 + h % 5] AS status,
        printf('%d Street %d', 1 + h % 9999, h % 97) AS address,
        md5(i::VARCHAR) AS description, DATE '2010-01-01' + (h // 31 % 6000)::INTEGER AS issued,
        TIMESTAMPTZ '2020-01-01 00:00:00Z' + to_seconds(h // 41 % 180000000) AS updated,
        h // 43 % 40 AS units, (h // 47 % 90000000) / 100 AS valuation,
        (h % 100000)::DECIMAL(12,2) AS fee, h % 2 = 0 AS active{{geometry}}
    FROM (SELECT i, (hash(i) >> 4)::BIGINT AS h FROM range({{rows}}) AS numbers(i))
"""
POINTS = (
    r", '\x00\x00\x00\x00\x01'::BLOB || (h % 360 - 180)::DOUBLE::BIT::BLOB"
    " || (h // 7 % 180 - 90)::DOUBLE::BIT::BLOB AS geometry"
)


def schema_of(kind: str) -> Schema:
    """The columns; a GeoPackage has a point as well."""
    return make_schema(**TYPES | ({"geometry": "geometry"} if kind == "gpkg" else {}))


def make(folder: Path, rows: int, kind: str) -> None:
    """A snapshot and the changes files, a third of whose rows are deletes."""
    import duckdb

    records = RECORDS.format(rows=rows, geometry=POINTS if kind == "gpkg" else "")
    with duckdb.connect() as connection:
        copy = "(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)"
        connection.execute(f"COPY ({records}) TO '{folder / 'load.parquet'}' {copy}")
        for part, files in changes_in(folder).items():
            for turn, file in enumerate(files):
                changes = f"""
                    SELECT if(hash(number) % 3 = 0, 'delete', 'upsert') AS {OP},
                        * REPLACE ('Changed' AS status)
                    FROM ({records}) WHERE hash(number, 7) % {PARTS[part]} = {turn}
                """
                connection.execute(f"COPY ({changes}) TO '{file}' {copy}")


def changes_in(folder: Path) -> dict[str, list[Path]]:
    """The changes files of each part."""
    return {part: [folder / f"{part} {n}.parquet" for n in range(TURNS[part])] for part in PARTS}


def measure(what: Callable[[], object], server: int | None) -> float:
    """CPU seconds of this process, and of a server and its own, for a piece of work."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime + (server_seconds(server) if server else 0)

    before = spent()
    what()
    if server:
        time.sleep(0.5)  # a connection that is closed is counted once its process has ended
    return spent() - before


def server_seconds(postmaster: int) -> float:
    """What PostgreSQL has spent: its processes that ended, and those that are there."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if stat.parent.name == str(postmaster):
            total += sum(map(int, fields[11:15]))
        elif fields[1] == str(postmaster):
            total += sum(map(int, fields[11:13]))
    return total / 100


def run_floor(kind: str, folder: Path, address: str) -> dict[str, float]:
    """What the database itself takes."""
    server, changes = postmaster_of(address), changes_in(folder)

    def measured(what: Callable[[], object]) -> float:
        return measure(what, server)

    if kind == "postgresql":
        return sync_floors.postgresql(folder, changes, measured, address)
    floors = {"duckdb": sync_floors.duckdb, "sqlite": sync_floors.sqlite, "gpkg": sync_floors.gpkg}
    return floors[kind](folder, changes, measured)


def run_sync(kind: str, folder: Path, address: str) -> dict[str, float]:
    """What sync takes for the same, its checks included."""
    from ploti.sync.destination import Transaction
    from ploti.sync.destinations import open_destination

    schema, server = schema_of(kind), postmaster_of(address)
    to = open_destination(address, subscription_id=SUBSCRIPTION)

    def do(*works: Callable[[Transaction], object]) -> float:
        def work() -> None:
            for what in works:
                with to.session() as session, session.transaction() as transaction:
                    what(transaction)
                    transaction.count("t")

        return measure(work, server) / len(works)

    def load() -> float:
        return do(lambda transaction: transaction.load("t", schema, folder / "load.parquet"))

    def applying(file: Path) -> Callable[[Transaction], object]:
        return lambda transaction: transaction.apply("t", schema, file)

    with to.lock():  # as a run has it, over one connection where there is one
        spent = {"load": load()}
        spent["peak of the load, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        for part, files in changes_in(folder).items():
            spent[part] = do(*map(applying, files))
        spent["digest"] = do(lambda transaction: transaction.buckets("t", schema))
        spent["load again"] = load()
    return spent


def postmaster_of(address: str) -> int | None:
    """The first process of the server at an address of PostgreSQL's."""
    if not address.startswith("postgresql:"):
        return None
    import psycopg

    with psycopg.connect(address) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    return int((Path(row[0]) / "postmaster.pid").read_text().split()[0])


SIDES = {"floor": run_floor, "sync": run_sync}


def run_side(side: str, kind: str, folder: Path, address: str) -> dict[str, float]:
    """One side in a process of its own."""
    own = [sys.executable, "-m", "tests.bench.bench_sync", "--side", side, kind]
    done = subprocess.run([*own, str(folder), address], check=True, capture_output=True, text=True)
    spent: dict[str, float] = json.loads(done.stdout)
    return spent


def run_both(kind: str, folder: Path, stack: ExitStack) -> dict[tuple[str, str], float]:
    """Both sides once, each with a database or file that is new."""
    found: dict[tuple[str, str], float] = {}
    for side in SIDES:
        if kind == "postgresql":
            from tests.fakes import postgres

            address = stack.enter_context(stack.enter_context(postgres.running()).database())
        else:
            address = f"{kind}:{folder / side}.{kind}"
        for file in folder.glob(f"{side}.*"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        found |= {(side, work): n for work, n in run_side(side, kind, folder, address).items()}
    return found


def bench(kind: str, rows: int, runs: int) -> None:
    """Print a table of both sides."""
    least: dict[tuple[str, str], float] = defaultdict(lambda: float("inf"))
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), rows, kind)
        for _ in range(runs):
            with ExitStack() as stack:
                for key, spent in run_both(kind, Path(name), stack).items():
                    least[key] = min(least[key], spent)
    print(f"\n{kind}: {rows:,} rows; CPU seconds, the least of {runs}\n")
    print("| work | the database | sync | ratio | goal |\n|---|--:|--:|--:|--:|")
    for work in ("load", *PARTS):
        floor, sync = least["floor", work], least["sync", work]
        print(f"| {work} | {floor:.3f} | {sync:.3f} | {sync / floor:.2f} | {GOAL} |")
    for work in ("load again", "digest", "peak of the load, MB"):
        print(f"| {work} | | {least['sync', work]:.2f} | | |")


def main(rows: int = 1_000_000, runs: int = 3, *kinds: str) -> None:
    """Bench these kinds."""
    for kind in kinds or ("duckdb",):
        bench(kind, rows, runs)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        side, kind, folder, address = sys.argv[2:]
        print(json.dumps(SIDES[side](kind, Path(folder), address)))
    else:
        main(*map(int, sys.argv[1:3]), *sys.argv[3:])
