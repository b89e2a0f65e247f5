"""What readers make of the cases' files is recorded beside the number that they have for it.

`python -m tests.unit.readers.test_reader_number` records it anew.
"""

import hashlib
import json
import tempfile
from pathlib import Path

import duckdb
from tests.unit.readers.reading import CASES, declare

from ploti.errors import SourceError
from ploti.server.adapters.readers import READERS
from ploti.server.sources import formats
from ploti.server.sources.written import READER

RECORDED = CASES.parent / "readers.json"
READ = {".csv", ".json", ".geojson", ".parquet", ".bin"}


def test_a_reader_that_reads_otherwise_raises_the_number_of_the_readers(tmp_path: Path) -> None:
    recorded = json.loads(RECORDED.read_text())
    made = record(tmp_path)
    assert made["files"] == recorded["files"], (
        "a file is read otherwise than before, and datasets are to be read anew for it: raise"
        " READER in sources/written.py by one, and record what is read now (see above)"
    )
    assert made["reader"] == recorded["reader"]


def record(folder: Path) -> dict[str, object]:
    files = sorted(path for path in CASES.iterdir() if path.suffix in READ)
    made: dict[str, str] = {}
    for number, path in enumerate(files):
        into = folder / str(number)
        into.mkdir()
        made[path.name] = hashlib.sha256(as_read(path, into).encode()).hexdigest()[:16]
    return {"reader": READER, "files": made}


def as_read(path: Path, folder: Path) -> str:
    """All that a reader makes of a file, or that it is refused."""
    try:
        with path.open("rb") as file:
            head = file.read(formats.HEAD)
        reader = formats.choose(READERS, declared=None, name=path.name, head=head)
        table = reader.read(str(path), declaration=declare(), folder=str(folder))
    except SourceError:
        return "refused"
    geometry = table.geometry
    fields = [column.field for column in table.columns] + ([geometry.field] if geometry else [])
    listed = ", ".join(f'"{field}"' for field in fields)
    rows = duckdb.sql(f"SELECT {listed} FROM {table.relation}").fetchall() if fields else []
    columns = [(column.source_name, str(column.kind), column.type) for column in table.columns]
    return repr((columns, geometry and (geometry.crs, geometry.types), sorted(map(repr, rows))))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        RECORDED.write_text(json.dumps(record(Path(scratch)), indent=1) + "\n")
