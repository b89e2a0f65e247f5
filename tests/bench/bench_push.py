"""What a push costs, from a CSV to a version's files, against reading and writing the same bytes.

`python -m tests.bench.bench_push [ROWS|austin [RUNS [FOLDER]]]` (1,000,000 rows, 3 runs); `austin`
is the history `austin_permits_all`, and FOLDER keeps what was made. The floor is DuckDB's
`read_csv` as text and a sorted Parquet write in a process of its own; each build is a process of
its own too, start-up included, in the environment that the server gives a child. In each run the
floor comes first, so that both meet the same machine; the least of the runs counts. Not in a
build: the upload, the parent's sha256, the commit.

A later state is made of the first by a rule over a hash of the key: of 1,000 (or 10) classes one
is left out, one has another status and valuation, and one comes again under new keys.
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
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

GIB = 1 << 30
HISTORY = Path(__file__).parents[3] / "shared/data/austin_permits_all.parquet"
KINDS = ("first", "0.1 %", "10 %")
PARTS = {"0.1 %": 1000, "10 %": 10}
GOALS = {"first": (3.4, 1000), "0.1 %": (2.6, 500), "10 %": (3.4, 500)}
MEMORY_OF_10M = {"first": 1500, "0.1 %": 700, "10 %": 700}

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
        CASE WHEN class = 1 THEN '123456.75' ELSE {value} END AS {value}
    ) FROM permits WHERE class <> 0
    UNION ALL SELECT * REPLACE ('X' || permit_number AS permit_number) FROM permits WHERE class = 2
"""


class Table(NamedTuple):
    """A table of permits: its SQL, the column of a valuation, how it is declared."""

    sql: str
    value: str
    declared: dict[str, object]


TABLES = {
    "made": Table(
        PERMITS, "valuation", {"geometry": {"longitude": "longitude", "latitude": "latitude"}}
    ),
    "austin": Table(
        f"SELECT * FROM '{HISTORY}' LIMIT ?",
        "total_job_valuation",
        {"geometry": {"longitude": "lng", "latitude": "lat"}, "repeated_keys": "number"},
    ),
}


def make(folder: Path, rows: int, table: str = "made") -> dict[str, Path]:
    """The states as CSV files: a first one, and two that follow it."""
    import duckdb

    paths = {kind: folder / f"{number}.csv" for number, kind in enumerate(KINDS)}
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE made AS {TABLES[table].sql}", [rows])
        connection.execute(f"COPY made TO '{paths['first']}' (HEADER)")
        for kind, parts in PARTS.items():
            connection.execute(
                "CREATE OR REPLACE VIEW permits AS"
                f" SELECT *, hash(permit_number, 7) % {parts} AS class FROM made"
            )
            changed = LATER.format(value=TABLES[table].value)
            later = f"SELECT * EXCLUDE (class) FROM ({changed})"
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


def run_build(table: str, source: str, folder: str, base: str) -> None:
    """Build a version as the child does; what follows needs is left as `base.json`."""
    from ploti.model.wire import decode, encode
    from ploti.server.adapters.engine import duck, snapshot, walk
    from ploti.server.adapters.readers import READERS
    from ploti.server.adapters.readers.csv import CsvReader
    from ploti.server.app.child import leave_pandas_out
    from ploti.server.build.candidate import Base, BuildOrder, Candidate
    from ploti.server.service.build_version import build_version
    from ploti.server.sources.declaration import parse_declaration

    leave_pandas_out()
    steps: dict[str, float] = defaultdict(float)
    steps["start"] = spent()
    within: list[str] = []
    for owner, name, step in (
        (CsvReader, "read", "structure of the CSV"),
        (duck.DuckEngine, "keep", "read, type, hash, keep"),
        (duck.DuckEngine, "run", "match and diff"),
        (duck.DuckEngine, "match", "shared keys, proof of the keys"),
        (duck.DuckEngine, "rows", "looks (types, key, counts)"),
        (duck, "write_first", "sort, write"),
        (duck.DuckEngine, "write_next", "walk, write"),
        (snapshot, "digest_file", "digest"),
        (walk.Ledger, "_sum", "digest"),
    ):
        time_calls(owner, name, step, steps, within)
    Path(folder).mkdir()
    before = decode(Path(base).read_bytes(), Base) if base != "-" else None
    named = {"id": "ds_bench", "title": "Bench", "place": "us/fl", "topic": "permits"}
    declaration = parse_declaration(
        named | {"key": ["permit_number"], "continuation": "off"} | TABLES[table].declared
    )
    order = BuildOrder(
        dataset_id=declaration.id,
        declaration=declaration,
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


def main(what: str = "1000000", runs: str = "3", kept: str = "") -> None:
    """Print what a push of each kind costs."""
    table, rows = (what, 1 << 40) if what in TABLES else ("made", int(what))
    with ExitStack() as stack:
        folder = Path(kept or stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(exist_ok=True)
        paths = make(folder, rows, table)
        print(f"{what}: {paths['first'].stat().st_size / 1e6:.0f} MB of CSV")
        floors, builds = [], defaultdict[str, list[dict[str, object]]](list)
        for run in range(int(runs)):
            floors.append(cpu_of(measure("floor", str(paths["first"]))))
            for number, kind in enumerate(KINDS):
                base = "-" if kind == "first" else str(folder / "b0_0/base.json")
                built = str(folder / f"b{number}_{run}")
                builds[kind].append(measure("build", table, str(paths[kind]), built, base))
    large = table == "made" and rows >= 10_000_000
    show(min(floors), {kind: min(taken, key=cpu_of) for kind, taken in builds.items()}, large=large)


def cpu_of(run: dict[str, object]) -> float:
    """CPU seconds of a process that reported."""
    return float(str(run["cpu"]))


def show(floor: float, builds: dict[str, dict[str, object]], *, large: bool) -> None:
    """Print the table, and each build's steps."""
    print(f"floor: {floor:.2f} CPU s\n")
    print("| push | CPU s | x floor | goal | peak MB | goal |\n|---|--:|--:|--:|--:|--:|")
    for kind, best in builds.items():
        cpu, (goal, memory) = cpu_of(best), GOALS[kind]
        memory = MEMORY_OF_10M[kind] if large else memory
        peak = best["peak"]
        print(f"| {kind} | {cpu:.2f} | {cpu / floor:.2f} | {goal} | {peak:.0f} | {memory} |")
    for kind, best in builds.items():
        steps = best["steps"]
        assert isinstance(steps, dict)
        print(f"\n{kind}: " + ", ".join(f"{step} {cpu:.2f}" for step, cpu in steps.items()))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["floor", source]:
            run_floor(source)
        case ["build", table, source, folder, base]:
            run_build(table, source, folder, base)
        case arguments:
            main(*arguments)
