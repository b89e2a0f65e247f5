"""The job of a push by csv-diff, datacompy and daff: what two CSV files differ in, by key, written.

`python -m tests.bench.bench_peers [ROWS [RUNS [PYTHON]]]` (100,000 rows, 1 run). PYTHON is one
that has the peers, which are no part of this project: `python -m venv peers && peers/bin/pip
install csv-diff datacompy daff`. Who is not there is left out, and daff above 100,000 rows, where
it takes minutes. Each side is a process of its own, start-up included: a peer reads both states,
0.1 % changed, finds what was added, removed and changed, and writes it. Of ploti there are two
lines: the push, which also proves types, writes the new snapshot and keeps its digest; and of it
what is the peers' job: to read the state until it is kept, and what `bench_diff` measures.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.bench_diff import measure_side
from tests.bench.bench_push import cpu_of, make, measure

TIMES, SHARE = 5, 1 / 3
"""The goals: how many times faster, and the share of the memory."""

READING = ("structure of the CSV", "read, type, hash, keep", "looks (types, key, counts)")
"""The steps of a push until its state is kept."""

MOST_ROWS = {"daff": 100_000}

CSV_DIFF = """
import csv_diff
before, after = (csv_diff.load_csv(open(path, newline=''), key='permit_number') for path in paths)
found = csv_diff.compare(before, after)
counts = [len(found[what]) for what in ('added', 'removed', 'changed')]
json.dump(found, open(out, 'w'))
"""
DATACOMPY = """
import datacompy, pandas
before, after = (pandas.read_csv(path, dtype=str, keep_default_na=False) for path in paths)
found = datacompy.PandasCompare(before, after, join_columns='permit_number')
parts = [found.df2_unq_rows, found.df1_unq_rows, found.all_mismatch()]
counts = [len(part) for part in parts]
for number, part in enumerate(parts):
    part.to_csv(f'{out}.{number}', index=False)
"""
DAFF = """
import csv, daff
tables = [daff.PythonTableView(list(csv.reader(open(path, newline='')))) for path in paths]
flags = daff.CompareFlags()
flags.addPrimaryKey('permit_number')
flags.unchanged_context = 0
alignment = daff.Coopy.compareTables(*tables, flags).align()
rows = []
daff.TableDiff(alignment, flags).hilite(daff.PythonTableView(rows))
marks = [row[0] for row in rows]
counts = [marks.count('+++'), marks.count('---'), marks.count('->')]
csv.writer(open(out, 'w')).writerows(rows)
"""
PEERS = {"csv-diff": CSV_DIFF, "datacompy": DATACOMPY, "daff": DAFF}
BEFORE = "import json, resource, sys\npaths, out = sys.argv[1:3], sys.argv[3]\n"
AFTER = """
used = resource.getrusage(resource.RUSAGE_SELF)
peak = int(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0]) / 1024
print(json.dumps({'cpu': used.ru_utime + used.ru_stime, 'peak': peak, 'counts': counts}))
"""


def run_peer(python: str, script: str, before: Path, after: Path) -> dict[str, object] | None:
    """What a peer took; None where it is not installed."""
    command = [python, "-c", BEFORE + script + AFTER, before, after, before.with_suffix(".out")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if "ModuleNotFoundError" in done.stderr:
        return None
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_own(folder: Path, before: Path, after: Path, runs: int) -> dict[str, tuple[float, float]]:
    """CPU seconds and MB of the whole push, and of what is the peers' job in it."""
    measure("build", "made", str(before), str(folder / "base"), "-")
    base = str(folder / "base/base.json")
    pushes, jobs = [], []
    for run in range(runs):
        built = str(folder / f"built{run}")
        push = measure("build", "made", str(after), built, base)
        diff = measure_side("diff", base, built, str(folder / "changes"))
        steps = push["steps"]
        assert isinstance(steps, dict)
        reading = sum(float(steps[step]) for step in READING)
        pushes.append((cpu_of(push), float(str(push["peak"]))))
        jobs.append((reading + cpu_of(diff), max(pushes[-1][1], float(str(diff["peak"])))))
    return {"ploti, the push": min(pushes), "ploti, the same job": min(jobs)}


def main(rows: str = "100000", runs: str = "1", python: str = sys.executable) -> None:
    """Print what each side takes, and how ploti stands to it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before, after, _ = make(folder, int(rows)).values()
        own = run_own(folder, before, after, int(runs))
        print("| side | added, removed, changed | CPU s | x push | x job | peak MB | x push |")
        print("|---|---|--:|--:|--:|--:|--:|")
        for side, (cpu, peak) in own.items():
            print(f"| {side} | | {cpu:.2f} | | | {peak:.0f} | |")
        (push, memory), (job, _) = own.values()
        for peer, script in PEERS.items():
            if int(rows) > MOST_ROWS.get(peer, int(rows)):
                continue
            taken = [run_peer(python, script, before, after) for _ in range(int(runs))]
            found = [run for run in taken if run]
            if not found:
                print(f"| {peer} | not installed | | | | | |")
                continue
            best = min(found, key=cpu_of)
            cpu, peak = cpu_of(best), float(str(best["peak"]))
            print(
                f"| {peer} | {best['counts']} | {cpu:.2f} | {cpu / push:.1f} | {cpu / job:.1f}"
                f" | {peak:.0f} | {peak / memory:.1f} |"
            )
        print(f"\ngoals: {TIMES} times the CPU of ploti, {1 / SHARE:.0f} times its memory")


if __name__ == "__main__":
    main(*sys.argv[1:])
