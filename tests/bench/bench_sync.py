"""What sync costs in a DuckDB file, against DuckDB's own insert and delete of the same files.

`python -m tests.bench.bench_sync [ROWS [RUNS]]` (1,000,000 rows, 3 runs). Each side is a process
of its own with the same steps: a first load, 0.1 % and 10 % of changes, and (for sync alone) a
load of the same rows again and the digest of the whole. CPU seconds; the least of the runs counts.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from tests.fakes.feed import SUBSCRIPTION, make_schema

from ploti.model.columns import OP, RECORD_ID

GOAL = 1.3
PARTS = {"0.1 %": 1000, "10 %": 10}
SCHEMA = make_schema(
    number="string",
    status="string",
    address="string",
    description="string",
    issued="date",
    updated="timestamp",
    units="int64",
    valuation="float64",
    fee="decimal(12,2)",
    active="boolean",
)
RECORDS = f"""
    SELECT printf('rec_00000001%010d', i) AS {RECORD_ID}, printf('BP-%08d', i) AS number,
        ['Issued', 'Final', 'Void', 'Expired', 'Applied'][1 + h % 5] AS status,
        printf('%d Street %d', 1 + h % 9999, h % 97) AS address,
        md5(i::VARCHAR) AS description, DATE '2010-01-01' + (h // 31 % 6000)::INTEGER AS issued,
        TIMESTAMPTZ '2020-01-01 00:00:00Z' + to_seconds(h // 41 % 180000000) AS updated,
        h // 43 % 40 AS units, (h // 47 % 90000000) / 100 AS valuation,
        (h % 100000)::DECIMAL(12,2) AS fee, h % 2 = 0 AS active
    FROM (SELECT i, (hash(i) >> 4)::BIGINT AS h FROM range({{rows}}) AS numbers(i))
"""


def make(folder: Path, rows: int) -> None:
    """A snapshot and two changes files, a third of whose rows are deletes."""
    import duckdb

    records = RECORDS.format(rows=rows)
    with duckdb.connect() as connection:
        copy = "(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)"
        connection.execute(f"COPY ({records}) TO '{folder / 'load.parquet'}' {copy}")
        for kind, parts in PARTS.items():
            changes = f"""
                SELECT if(hash(number) % 3 = 0, 'delete', 'upsert') AS {OP},
                    * REPLACE ('Changed' AS status)
                FROM ({records}) WHERE hash(number, 7) % {parts} = 0
            """
            connection.execute(f"COPY ({changes}) TO '{folder / kind}.parquet' {copy}")


def measure(what: Callable[[], object]) -> float:
    """CPU seconds of this process, user and system, for a piece of work."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    before = spent()
    what()
    return spent() - before


def run_floor(folder: Path) -> dict[str, float]:
    """What DuckDB itself takes."""
    import duckdb

    def execute(*statements: str) -> None:
        with duckdb.connect(str(folder / "floor.duckdb")) as connection:
            for statement in statements:
                connection.execute(statement)

    def load() -> None:
        execute(f"CREATE TABLE t AS FROM read_parquet('{folder / 'load.parquet'}')")

    def apply(kind: str) -> None:
        changes = f"read_parquet('{folder / kind}.parquet')"
        execute(
            "BEGIN",
            f"DELETE FROM t WHERE {RECORD_ID} IN (SELECT {RECORD_ID} FROM {changes})",
            f"INSERT INTO t SELECT * EXCLUDE ({OP}) FROM {changes} WHERE {OP} = 'upsert'",
            "COMMIT",
        )

    return {"load": measure(load)} | {
        kind: measure(lambda kind=kind: apply(kind)) for kind in PARTS
    }


def run_sync(folder: Path) -> dict[str, float]:
    """What sync takes for the same, its checks included."""
    from ploti.sync.destination import Transaction
    from ploti.sync.destinations import open_destination

    to = open_destination(f"duckdb:{folder / 'sync.duckdb'}", subscription_id=SUBSCRIPTION)

    def do(what: Callable[[Transaction], object]) -> float:
        def work() -> None:
            with to.session() as session, session.transaction() as transaction:
                what(transaction)
                transaction.count("t")

        return measure(work)

    def load() -> float:
        return do(lambda transaction: transaction.load("t", SCHEMA, folder / "load.parquet"))

    def apply(kind: str) -> float:
        file = folder / f"{kind}.parquet"
        return do(lambda transaction: transaction.apply("t", SCHEMA, file))

    spent = {"load": load()} | {kind: apply(kind) for kind in PARTS}
    spent["digest"] = do(lambda transaction: transaction.buckets("t", SCHEMA))
    spent["load again"] = load()
    return spent


SIDES = {"floor": run_floor, "sync": run_sync}


def run_side(name: str, folder: Path) -> dict[str, float]:
    """One side in a process of its own."""
    for file in folder.glob(f"{name}.duckdb*"):
        file.unlink()
    command = [sys.executable, "-m", "tests.bench.bench_sync", "--side", name, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    spent: dict[str, float] = json.loads(done.stdout)
    return spent


def main(rows: int = 1_000_000, runs: int = 3) -> None:
    """Print a table of both sides."""
    least: dict[tuple[str, str], float] = defaultdict(lambda: float("inf"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, rows)
        for _ in range(runs):
            for side in SIDES:
                for work, spent in run_side(side, folder).items():
                    least[side, work] = min(least[side, work], spent)
    print(f"{rows:,} rows; CPU seconds, the least of {runs}\n")
    print("| work | DuckDB | sync | ratio | goal |\n|---|--:|--:|--:|--:|")
    for work in ("load", *PARTS):
        floor, sync = least["floor", work], least["sync", work]
        print(f"| {work} | {floor:.2f} | {sync:.2f} | {sync / floor:.2f} | {GOAL} |")
    for work in ("load again", "digest"):
        print(f"| {work} | | {least['sync', work]:.2f} | | |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        print(json.dumps(SIDES[sys.argv[2]](Path(sys.argv[3]))))
    else:
        main(*map(int, sys.argv[1:]))
