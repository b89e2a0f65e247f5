"""What matching by key, the diff and the changes file cost, against decoding both snapshots.

`python -m tests.bench.bench_diff [ROWS [RUNS [FOLDER]]]` (1,000,000 rows, 3 runs) makes the
snapshots by `bench_push`, or takes those that `bench_push ROWS 1 FOLDER` left. Both sides are
processes of their own, start-up included: DuckDB, which decodes every column of both snapshots,
and the build's own join by key, over the state as the build kept it (the hashes of its rows are
made while it is read and typed), with the changes file, its rows in order, under their ids, as the
build's walk writes it beside the snapshot. The floor comes before each diff; the least of the runs
counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.bench.bench_push import PARTS, cpu_of, make, measure, report

MEMORY_LIMIT = 280 << 20
GOALS = {"0.1 %": 1.5, "10 %": 3.0}
GOAL_OF_10M = 1.9
MOST_MEMORY = 450


def run_floor(*snapshots: str) -> None:
    """Decode every column of the snapshots."""
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute("SET enable_geoparquet_conversion = false")
        for snapshot in snapshots:
            connection.execute(f"SELECT any_value(COLUMNS(*)) FROM '{snapshot}'").fetchall()
    report({})


def run_diff(base_json: str, built: str, folder: str) -> None:
    """Find what differs by the build's own SQL, and write the changes file as its walk does."""
    from tests.bench.changes_alone import DiffEngine

    from ploti.model.wire import decode
    from ploti.server.app.child import leave_pandas_out
    from ploti.server.build import diff
    from ploti.server.build.candidate import Base
    from ploti.server.build.columns import PlannedColumn
    from ploti.server.build.gone import no_returns_sql, returned_sql
    from ploti.server.build.shape import Shape, ShapedGeometry
    from ploti.server.ports.building import NextVersion
    from ploti.server.service.match_state import join_by_key
    from ploti.server.sources.raw import RawKind

    leave_pandas_out()
    base = decode(Path(base_json).read_bytes(), Base)
    columns = tuple(
        PlannedColumn(c.name, c.name, RawKind.TEXT, c.name, (c.type,), settled=True, fixed=False)
        for c in base.schema.columns
        if c.type != "geometry"
    )
    shape = Shape(columns, ShapedGeometry("", "", ""), tuple(base.schema.key_columns))
    kept = f"{built}/shaped.parquet"
    old, new = diff.snapshot_relation(base.snapshot), diff.snapshot_relation(kept)
    added = diff.added_rows(new)
    Path(folder).mkdir(exist_ok=True)
    with DiffEngine(folder, reads=[base.snapshot, kept], memory_limit=MEMORY_LIMIT) as engine:
        join_by_key(engine, new, old, shape, base=base)
        engine.run(no_returns_sql())
        ((count, *others),) = engine.rows(diff.COUNTS_SQL)
        box = engine.box(diff.geometries_sql(added))
        step = NextVersion(
            base=base,
            recast=None,
            touched=diff.TOUCHED_SQL,
            changed=diff.changed_sql(new, shape),
            returned=returned_sql(new, shape),
            added=diff.new_rows(added, shape, rows=int(str(count)), box=box, unique=True),
            same_keys=True,
            with_changes=True,
        )
        rows = engine.write_changes(step, schema=base.schema, version=base.version + 1)
    assert rows == sum(int(str(each)) for each in (count, *others))
    report({"changes": rows})


def measure_side(*arguments: str) -> dict[str, object]:
    """A side in a process of its own, the diff in the environment of a build."""
    from ploti.server.adapters.builder.process import VARIABLES

    command = [sys.executable, "-m", "tests.bench.bench_diff", *arguments]
    environment = os.environ | (VARIABLES if arguments[0] == "diff" else {})
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def build_all(folder: Path, rows: int) -> None:
    """The snapshots of a first state and of two that follow it."""
    for number, source in enumerate(make(folder, rows).values()):
        base = str(folder / "b0_0/base.json") if number else "-"
        measure("build", "made", str(source), str(folder / f"b{number}_0"), base)


def main(rows: str = "1000000", runs: str = "3", kept: str = "") -> None:
    """Print what a diff costs for each rate of changes."""
    with ExitStack() as stack:
        folder = Path(kept or stack.enter_context(tempfile.TemporaryDirectory()))
        if not kept:
            build_all(folder, int(rows))
        base = folder / "b0_0/base.json"
        print(
            "| changed | rows of changes | floor, CPU s | diff, CPU s | x floor | goal | peak MB |"
        )
        print("|---|--:|--:|--:|--:|--:|--:|")
        for number, kind in enumerate(PARTS, 1):
            before, after = (str(folder / f"b{n}_0/snapshot.parquet") for n in (0, number))
            taken = [
                (
                    cpu_of(measure_side("floor", before, after)),
                    measure_side(
                        "diff", str(base), str(folder / f"b{number}_0"), str(folder / "changes")
                    ),
                )
                for _ in range(int(runs))
            ]
            floor = min(spent for spent, _ in taken)
            best = min((found for _, found in taken), key=cpu_of)
            steps = best["steps"]
            assert isinstance(steps, dict)
            goal = GOAL_OF_10M if number == 1 and int(rows) >= 10_000_000 else GOALS[kind]
            print(
                f"| {kind} | {steps['changes']:,} | {floor:.2f} | {cpu_of(best):.2f}"
                f" | {cpu_of(best) / floor:.2f} | {goal} | {best['peak']:.0f} of {MOST_MEMORY} |"
            )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["floor", *snapshots]:
            run_floor(*snapshots)
        case ["diff", base, built, folder]:
            run_diff(base, built, folder)
        case arguments:
            main(*arguments)
