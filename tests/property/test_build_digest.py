"""The digest by DuckDB is the digest by plain Python, whatever the rows; and it adds up."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Context

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ploti.model.digest import Buckets, digest_rows, digest_sql
from ploti.model.schema import Column, Schema

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001
EXACT = Context(prec=38)
VALUES = {
    "string": (TEXT, pa.string()),
    "int64": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "float64": (st.floats(), pa.float64()),
    "boolean": (st.booleans(), pa.bool_()),
    "date": (st.dates(date(1, 1, 1), date(9999, 12, 31)), pa.date32()),
    "timestamp": (
        INSTANTS.map(lambda moment: moment.replace(tzinfo=UTC)),
        pa.timestamp("us", tz="UTC"),
    ),
    "datetime": (INSTANTS, pa.timestamp("us")),
    "decimal(38,10)": (
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda digits: EXACT.scaleb(digits, -10)),
        pa.decimal128(38, 10),
    ),
    "decimal(4,4)": (
        st.integers(-9999, 9999).map(lambda digits: EXACT.scaleb(digits, -4)),
        pa.decimal128(4, 4),
    ),
    "geometry": (st.binary(max_size=30), pa.binary()),
}
SCHEMA = Schema(
    columns=[Column(name=f'{type_}\'s "ü"', type=type_) for type_ in VALUES],
    key_columns=[],
    geometry=None,
)
CELLS = st.fixed_dictionaries(
    {column.name: st.none() | VALUES[column.type][0] for column in SCHEMA.columns}
)
TABLE = st.dictionaries(TEXT.map("rec_{}".format), CELLS, max_size=5)
CONNECTION = duckdb.connect()


def by_duckdb(rows: dict[str, dict[str, object]]) -> Buckets:
    columns = {"_ploti_record_id": pa.array(list(rows), pa.string())}
    for column in SCHEMA.columns:
        cells = [row[column.name] for row in rows.values()]
        columns[column.name] = pa.array(cells, VALUES[column.type][1])
    CONNECTION.register("given_rows", pa.table(columns))
    return Buckets.from_sql(CONNECTION.execute(digest_sql(SCHEMA, "given_rows")).fetchall())


@settings(max_examples=100, deadline=None)
@given(TABLE)
def test_duckdb_and_python_agree(rows: dict[str, dict[str, object]]) -> None:
    assert by_duckdb(rows) == digest_rows(SCHEMA, rows.items())


@settings(max_examples=50, deadline=None)
@given(TABLE, TABLE)
def test_the_digest_of_two_sets_is_the_sum_and_taking_one_away_leaves_the_other(
    left: dict[str, dict[str, object]], right: dict[str, dict[str, object]]
) -> None:
    both = digest_rows(SCHEMA, [*left.items(), *right.items()])
    first, second = digest_rows(SCHEMA, left.items()), digest_rows(SCHEMA, right.items())
    assert first.plus(second) == both
    assert both.minus(second) == first
