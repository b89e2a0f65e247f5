"""What matching by key, the diff and the changes file cost, against decoding both snapshots.

`python -m tests.bench.bench_diff [ROWS [RUNS [FOLDER]]]` (1,000,000 rows, 3 runs) makes the
snapshots by `bench_push`, or takes those that `bench_push ROWS 1 FOLDER` left. Both sides are
processes of their own, start-up included: DuckDB, which decodes every column of both snapshots,
and the build's own join by key, over the state as the build kept it (the hashes of its rows are
made while it is read and typed), with the engine's write of the changed, new and gone rows, each
in a file. A build has these rows in the base's order besides, by its walk over the base. The floor
comes before each diff; the least of the runs counts.
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
    """Find what differs by the build's own SQL, and write the rows of the changes file."""
    from ploti.model.columns import CHANGE, OP, RECORD_ID
    from ploti.model.wire import decode
    from ploti.server.adapters.engine.duck import DuckEngine
    from ploti.server.build.candidate import Base, FileRole
    from ploti.server.build.columns import PlannedColumn
    from ploti.server.build.diff import DIFF, added_rows, snapshot_relation
    from ploti.server.build.gone import no_returns_sql
    from ploti.server.build.shape import Shape, ShapedGeometry
    from ploti.server.service.match_state import join_by_key
    from ploti.server.sources.raw import RawKind

    base = decode(Path(base_json).read_bytes(), Base)
    columns = tuple(
        PlannedColumn(c.name, c.name, RawKind.TEXT, c.name, (c.type,), settled=True, fixed=False)
        for c in base.schema.columns
        if c.type != "geometry"
    )
    shape = Shape(columns, ShapedGeometry("", "", ""), tuple(base.schema.key_columns))
    old, kept = snapshot_relation(base.snapshot), f"{built}/shaped.parquet"
    new = snapshot_relation(kept)
    values = ", ".join(shape.fields.values())
    named = (
        f"CREATE TABLE named AS SELECT {RECORD_ID}, new_pos"
        f" FROM {old} JOIN {DIFF} ON file_row_number = base_pos"
    )
    changes = {
        "removed": f"SELECT {RECORD_ID}, 'delete' AS {OP} FROM named WHERE new_pos IS NULL",
        "changed": f"SELECT {RECORD_ID}, 'upsert' AS {OP}, {values}"
        f" FROM {new} JOIN named ON file_row_number = new_pos",
        "added": f"SELECT NULL AS {RECORD_ID}, 'upsert' AS {OP}, {values} FROM {added_rows(new)}",
    }
    Path(folder).mkdir(exist_ok=True)
    with DuckEngine(folder, reads=[base.snapshot, kept], memory_limit=MEMORY_LIMIT) as engine:
        join_by_key(engine, new, old, shape, base=base)
        engine.run(no_returns_sql())
        engine.run(named)
        rows = sum(
            engine.write_table(
                f"SELECT *, '{change}' AS {CHANGE} FROM ({sql})",
                role=FileRole.CHANGES,
                name=f"{change}.parquet",
            ).rows
            for change, sql in changes.items()
        )
        ((found,),) = engine.rows(f"SELECT count(*) FROM {DIFF}")
    assert rows == found, (rows, found)
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
