"""What a build keeps of its source for a while: the rows as they are, in a file of its folder."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ploti.errors import SourceError
from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.build.diff import more_than_once

ROWS = 70_000

VALUES = {
    "whole": "i",
    "hashed": "hash(i)",
    "number": "CASE i % 3 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN '-infinity'::DOUBLE ELSE i / 7 END",
    "money": "(i / 100)::DECIMAL(18, 2)",
    "long": "i::DECIMAL(38, 20)",
    "flag": "i % 2 = 0",
    "repeated": "CASE WHEN i % 10 < 9 THEN 'kind ' || i % 4 END",
    "different": "'number ' || i",
    "day": "DATE '1970-01-01' + i::INTEGER",
    "instant": "TIMESTAMPTZ '1900-01-01 00:00:00.000001+00' + to_seconds(i)",
    "local": "TIMESTAMP '1900-01-01 00:00:00.000001' + to_seconds(i)",
    "shape": "encode('wkb ' || i)",
    "texts": "CASE WHEN i % 1000 = 0 THEN ['a', NULL] END",
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckEngine]:
    with DuckEngine(str(tmp_path), reads=[], memory_limit=256 << 20) as opened:
        yield opened


def made(rows: int) -> str:
    values = ", ".join(f"{sql} AS {name}" for name, sql in VALUES.items())
    return f"SELECT {values} FROM range({rows}) AS numbers(i)"


def test_rows_are_kept_in_their_order_with_the_types_they_have(engine: DuckEngine) -> None:
    kept = engine.keep(made(ROWS), name="kept")
    rows = f"(SELECT *, whole AS file_row_number FROM ({made(ROWS)}))"
    assert kept.rows == ROWS
    types = engine.rows(f"SELECT column_name, column_type FROM (DESCRIBE FROM {kept.relation})")
    assert types == engine.rows(f"SELECT column_name, column_type FROM (DESCRIBE FROM {rows})")
    for one, other in ((kept.relation, rows), (rows, kept.relation)):
        assert engine.rows(f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})") == [(0,)]


def test_the_nulls_of_each_column_are_counted(engine: DuckEngine) -> None:
    kept = engine.keep(made(ROWS), name="kept")
    assert kept.nulls == dict.fromkeys(VALUES, 0) | {
        "repeated": ROWS // 10,
        "texts": ROWS - ROWS // 1000,
    }


def test_no_rows_are_a_file_with_the_columns(engine: DuckEngine) -> None:
    kept = engine.keep(made(0), name="kept")
    assert (kept.rows, kept.nulls) == (0, dict.fromkeys(VALUES, 0))
    assert engine.rows(f"SELECT count(*) FROM {kept.relation} WHERE repeated IS NULL") == [(0,)]


def test_texts_that_come_again_are_kept_once(engine: DuckEngine) -> None:
    engine.keep(made(ROWS), name="kept")
    group = pq.read_metadata(Path(engine.folder, "kept.parquet")).row_group(1)
    chunks = {name: group.column(place) for place, name in enumerate(VALUES)}
    found = {name for name, chunk in chunks.items() if chunk.has_dictionary_page}
    assert found == {"repeated"}


@pytest.mark.parametrize(
    "wrong", ["error('no number in line ' || i)", "('number ' || i)::BIGINT::VARCHAR"]
)
def test_what_is_refused_after_many_rows_is_the_fault_of_the_source(
    engine: DuckEngine, wrong: str
) -> None:
    sql = f"SELECT CASE WHEN i = 60000 THEN {wrong} END AS v FROM range({ROWS}) AS numbers(i)"
    with pytest.raises(SourceError, match=r"the source cannot be read: .*number.* 60000"):
        engine.keep(sql, name="kept")


def test_what_else_fails_is_no_fault_of_the_source(tmp_path: Path) -> None:
    sql = f"SELECT list(i::VARCHAR || repeat('x', 1000)) AS v FROM range({ROWS}) AS numbers(i)"
    small = DuckEngine(str(tmp_path), reads=[], memory_limit=32 << 20)
    with small as engine, pytest.raises(Exception, match="Out of Memory") as raised:
        engine.keep(sql, name="kept")
    assert not isinstance(raised.value, SourceError)


def test_hashes_that_come_again_are_found_once_each_however_many_rows_there_are(
    engine: DuckEngine,
) -> None:
    """Few are sorted, many grouped; among them are the least hash and the greatest."""
    some = "SELECT unnest([0, 0, 0, 1, 2, 2, 5, 18446744073709551615, 18446744073709551615]) AS kh"
    engine.run(f"CREATE TABLE few AS SELECT kh::UBIGINT AS kh FROM ({some})")
    for relation, again in (("few", [0, 2, (1 << 64) - 1]), ("(FROM few LIMIT 0)", [])):
        for rows in (9, 1 << 40):
            found = engine.rows(f"{more_than_once(relation, rows=rows)} ORDER BY kh")
            assert [kh for (kh,) in found] == again
