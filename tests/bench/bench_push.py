"""What a push costs, from a CSV to a version's files, against reading and writing the same bytes.

`python -m tests.bench.bench_push [ROWS [RUNS]]` (1,000,000 rows, 3 runs). The floor is DuckDB's
`read_csv` as text and a sorted Parquet write in a process of its own; each build is a process of
its own too, start-up included, in the environment that the server gives a child. The least of the
runs counts. Not in a build: the upload, the parent's sha256, the commit.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

GIB = 1 << 30
KINDS = ("first", "0.1 %", "10 %")
PARTS = {"0.1 %": 1000, "10 %": 10}
GOALS = {"first": (3.4, 1000), "0.1 %": (2.6, 500), "10 %": (3.4, 500)}

PERMITS = """
    SELECT printf('BP-%08d', i) AS permit_number,
        ['Issued', 'Final', 'Void', 'Expired', 'Applied'][1 + h % 5] AS status,
        ['Residential', 'Commercial', 'Electrical', 'Roof', 'Pool', 'Demolition'][1 + h % 6]
            || ' ' || ['new', 'repair', 'alteration', 'addition'][1 + h // 7 % 4] AS work_type,
        printf('%d %s %s', 1 + h % 9999,
            ['Oak', 'Main', 'Lake', 'Palm', 'Church', 'Mill', 'Park'][1 + h // 11 % 7],
            ['Street', 'Avenue', 'Road', 'Court'][1 + h // 13 % 4]) AS address,
        ['Orlando', 'Winter Park', 'Apopka', 'Ocoee', 'Maitland'][1 + h // 17 % 5] AS city,
        printf('%05d', 32700 + h // 19 % 200) AS zip,
        printf('%02d-%02d-%02d-%04d-%02d-%03d', h % 36, h // 3 % 30, h // 5 % 35, h // 7 % 9999,
            h // 23 % 99, h // 29 % 999) AS parcel,
        md5(i::VARCHAR)[1:20] || ' ' || md5((h % 900)::VARCHAR)[1:16] AS description,
        (DATE '2010-01-01' + (h // 31 % 6000)::INTEGER)::VARCHAR AS issued,
        CASE WHEN h % 3 = 0 THEN '' ELSE
            (DATE '2012-01-01' + (h // 37 % 6000)::INTEGER)::VARCHAR END AS expires,
        strftime(TIMESTAMP '2020-01-01' + to_seconds((h // 41 % 180000000)::INTEGER),
            '%Y-%m-%dT%H:%M:%SZ') AS updated,
        (h // 43 % 40)::VARCHAR AS units,
        printf('%.2f', (h // 47 % 90000000) / 100) AS valuation,
        printf('%.6f', -81.6 + (h // 53 % 500000) / 1e6) AS longitude,
        printf('%.6f', 28.3 + (h // 59 % 500000) / 1e6) AS latitude
    FROM (SELECT i, (hash(i) >> 4)::BIGINT AS h FROM range(?) AS numbers(i))
"""
LATER = """
    SELECT * REPLACE (
        CASE WHEN class = 1 THEN 'Changed' ELSE status END AS status,
        CASE WHEN class = 1 THEN '123456.75' ELSE valuation END AS valuation
    ) FROM permits WHERE class <> 0
    UNION ALL SELECT * REPLACE ('X' || permit_number AS permit_number) FROM permits WHERE class = 2
"""


def make(folder: Path, rows: int) -> dict[str, Path]:
    """The states as CSV files: a first one, and two that follow it."""
    import duckdb

    paths = {kind: folder / f"{number}.csv" for number, kind in enumerate(KINDS)}
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE made AS {PERMITS}", [rows])
        connection.execute(f"COPY made TO '{paths['first']}' (HEADER)")
        for kind, parts in PARTS.items():
            connection.execute(
                "CREATE OR REPLACE VIEW permits AS"
                f" SELECT *, hash(permit_number, 7) % {parts} AS class FROM made"
            )
            later = f"SELECT * EXCLUDE (class) FROM ({LATER})"
            connection.execute(f"COPY ({later}) TO '{paths[kind]}' (HEADER)")
    return paths


def spent() -> float:
    """CPU seconds of this process, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def report(steps: dict[str, float]) -> None:
    """Say what this process took, for the one that started it."""
    # Not ru_maxrss, in which the parent's memory stays counted after a fork.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"cpu": spent(), "peak": peak, "steps": steps}))


def run_floor(source: str) -> None:
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute(
            f"COPY (SELECT * FROM read_csv('{source}', all_varchar=true) ORDER BY permit_number)"
            f" TO '{source}.parquet' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)"
        )
    report({})


def run_build(source: str, folder: str, base: str) -> None:
    """Build a version as the child does; what follows needs is left as `base.json`."""
    from tests.building import declare

    from ploti.model.wire import decode, encode
    from ploti.server.adapters.engine import duck, snapshot, walk
    from ploti.server.adapters.readers import READERS
    from ploti.server.adapters.readers.csv import CsvReader
    from ploti.server.build.candidate import Base, BuildOrder, Candidate
    from ploti.server.service.build_version import build_version

    steps: dict[str, float] = defaultdict(float)
    steps["start"] = spent()
    within: list[str] = []
    for owner, name, step in (
        (CsvReader, "read", "structure of the CSV"),
        (duck.DuckEngine, "keep", "read, type, hash, keep"),
        (duck.DuckEngine, "run", "match and diff"),
        (duck.DuckEngine, "match", "proof of the keys"),
        (duck.DuckEngine, "rows", "looks (types, key, counts)"),
        (duck, "write_first", "sort, write"),
        (duck.DuckEngine, "write_next", "walk, write"),
        (snapshot, "digest_file", "digest"),
        (walk.Ledger, "_sum", "digest"),
    ):
        time_calls(owner, name, step, steps, within)
    Path(folder).mkdir()
    before = decode(Path(base).read_bytes(), Base) if base != "-" else None
    order = BuildOrder(
        dataset_id=declare().id,
        declaration=declare(
            key=["permit_number"],
            geometry={"longitude": "longitude", "latitude": "latitude"},
            continuation="off",
        ),
        version=before.version + 1 if before else 1,
        base=before,
        source=source,
        source_name="permits.csv",
        folder=folder,
    )
    reads = [source, *([before.snapshot] if before else [])]
    with duck.DuckEngine(folder, reads=reads, memory_limit=GIB) as engine:
        built = build_version(order, readers=READERS, engine=engine)
    assert isinstance(built, Candidate), built
    following = Base(
        version=order.version,
        schema=built.schema,
        schema_version="1.0",
        row_count=built.row_count,
        snapshot=f"{folder}/snapshot.parquet",
        buckets=built.buckets,
    )
    Path(folder, "base.json").write_bytes(encode(following))
    report(steps)


def time_calls(
    owner: object, name: str, step: str, steps: dict[str, float], within: list[str]
) -> None:
    """Count what calls of a function take, without what steps within it are counted for."""
    called: Callable[..., object] = getattr(owner, name)

    def timed(*args: object, **kwargs: object) -> object:
        if name == "run" and "keep" in within:
            return called(*args, **kwargs)
        within.append(name)
        try:
            with counted(step, steps):
                return called(*args, **kwargs)
        finally:
            within.pop()

    setattr(owner, name, timed)


@contextmanager
def counted(step: str, steps: dict[str, float]) -> Iterator[None]:
    begun, within = spent(), sum(steps.values())
    try:
        yield
    finally:
        steps[step] += spent() - begun - (sum(steps.values()) - within)


def measure(*arguments: str) -> dict[str, object]:
    from ploti.server.adapters.builder.process import VARIABLES

    command = [sys.executable, "-m", "tests.bench.bench_push", *arguments]
    environment = os.environ | (VARIABLES if arguments[0] == "build" else {})
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(rows: int, runs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = make(folder, rows)
        print(f"{rows:,} rows x 15 columns, {paths['first'].stat().st_size / 1e6:.0f} MB of CSV")
        floors = [measure("floor", str(paths["first"])) for _ in range(runs)]
        floor = min(float(str(run["cpu"])) for run in floors)
        print(f"floor: {floor:.2f} CPU s\n")
        print("| push | CPU s | x floor | goal | peak MB | goal |\n|---|--:|--:|--:|--:|--:|")
        steps = {}
        for number, kind in enumerate(KINDS):
            base = "-" if kind == "first" else str(folder / "b0_0/base.json")
            taken = [
                measure("build", str(paths[kind]), str(folder / f"b{number}_{run}"), base)
                for run in range(runs)
            ]
            best = min(taken, key=lambda run: float(str(run["cpu"])))
            cpu, peak, (goal, memory) = float(str(best["cpu"])), best["peak"], GOALS[kind]
            steps[kind] = best["steps"]
            print(f"| {kind} | {cpu:.2f} | {cpu / floor:.2f} | {goal} | {peak:.0f} | {memory} |")
        for kind, found in steps.items():
            assert isinstance(found, dict)
            print(f"\n{kind}: " + ", ".join(f"{step} {cpu:.2f}" for step, cpu in found.items()))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["floor", source]:
            run_floor(source)
        case ["build", source, folder, base]:
            run_build(source, folder, base)
        case numbers:
            rows, runs, *_ = [*map(int, numbers), *(1_000_000, 3)[len(numbers) :]]
            main(rows, runs)
