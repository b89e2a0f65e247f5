"""Runs the benchmarks, each in a fresh process: `python -m tests.bench [fan_out …]`, or all."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main(names: list[str]) -> None:
    """Run these benchmarks, by their modules' names without `bench_`."""
    for name in names or sorted(path.stem[6:] for path in FOLDER.glob("bench_*.py")):
        print(f"\n## {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"tests.bench.bench_{name}"], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
