"""The digest's published vector, by plain Python and by DuckDB (digest.md)."""

import struct
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from ploti.model.digest import (
    NO_ROWS,
    Buckets,
    Cell,
    bucket_of,
    digest_rows,
    digest_sql,
    row_bytes,
    row_hash,
)
from ploti.model.schema import Column, Schema
from ploti.model.sql import literal

TYPES = {
    "permit status": "string",
    "units": "int64",
    "valuation": "float64",
    "fee": "decimal(8,2)",
    "active": "boolean",
    "issued": "date",
    "updated": "timestamp",
    "geom": "geometry",
}
ARROW = {
    "permit": pa.string(),
    "status": pa.string(),
    "units": pa.int64(),
    "valuation": pa.float64(),
    "fee": pa.decimal128(8, 2),
    "active": pa.bool_(),
    "issued": pa.date32(),
    "updated": pa.timestamp("us", tz="UTC"),
    "geom": pa.binary(),
}
SCHEMA = Schema(
    columns=[
        Column(name=name, type=type_)
        for name, type_ in zip(
            ["permit", "status", *list(TYPES)[1:]], ["string", *TYPES.values()], strict=True
        )
    ],
    key_columns=["permit"],
    geometry=None,
)
NULLS: dict[str, Cell] = dict.fromkeys(ARROW)
POINT = struct.pack("<BIdd", 1, 1, -81.5, 28.25)
REC_01: dict[str, Cell] = {
    "permit": "0012",
    "status": "",
    "units": -3,
    "valuation": 1030.5,
    "fee": Decimal("0.50"),
    "active": True,
    "issued": date(2026, 1, 31),
    "updated": datetime(2026, 1, 31, 6, 13, 2, 1, tzinfo=UTC),
    "geom": POINT,
}
REC_02: dict[str, Cell] = {
    "permit": "Größe",
    "status": None,
    "units": 9223372036854775807,
    "valuation": -0.0,
    "fee": Decimal("-12.00"),
    "active": False,
    "issued": date(1, 1, 1),
    "updated": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "geom": None,
}
FIRST = {"rec_01": REC_01, "rec_02": REC_02, "rec_03": NULLS}
NEXT = {
    "rec_01": REC_01 | {"status": "Issued"},
    "rec_02": REC_02,
    "rec_04": NULLS | {"permit": "7"},
}


def by_duckdb(rows: dict[str, dict[str, Cell]], schema: Schema = SCHEMA) -> Buckets:
    arrays = {"_ploti_record_id": pa.array(list(rows), pa.string())}
    for name, type_ in ARROW.items():
        arrays[name] = pa.array([row[name] for row in rows.values()], type_)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        connection.register("given", pa.table(arrays))
        return Buckets.from_sql(connection.execute(digest_sql(schema, "given")).fetchall())


def test_the_row_bytes_are_those_of_the_vector() -> None:
    expected = (
        b"rec_01\0active\0true\0fee\x000.50\0geom\0"
        + bytes.fromhex("010100000000000000006054C00000000000403C40")
        + b"\0issued\x0020484\0permit\x000012\0status\0\0units\0-3\0updated\x001769839982000001"
        b"\0valuation\x0040901A0000000000"
    )
    assert row_bytes(SCHEMA, "rec_01", REC_01) == expected
    assert len(expected) == 148
    assert len(row_bytes(SCHEMA, "rec_02", REC_02)) == 140
    assert row_bytes(SCHEMA, "rec_03", NULLS) == b"rec_03"


@pytest.mark.parametrize(
    ("record", "cells", "bucket", "digest"),
    [
        ("rec_01", FIRST["rec_01"], 207, "d1d82f2a2e023cd6b392c474e1b49a0c"),
        ("rec_02", FIRST["rec_02"], 183, "6cf59bdaeef3d03ceb1fc3082f4cfdf3"),
        ("rec_03", FIRST["rec_03"], 87, "571908404baf17188ca557c3ad5735cf"),
        ("rec_01", NEXT["rec_01"], 207, "16243dba8ec442fbe5a300cb71301c3c"),
        ("rec_04", NEXT["rec_04"], 175, "534e82bb8b6206c66c99677716d1ef9c"),
    ],
    ids=["rec_01", "rec_02", "rec_03", "rec_01 changed", "rec_04"],
)
def test_the_row_hashes_and_buckets_are_those_of_the_vector(
    record: str, cells: dict[str, Cell], bucket: int, digest: str
) -> None:
    assert bucket_of(record) == bucket
    assert f"{row_hash(row_bytes(SCHEMA, record, cells)):032x}" == digest


@pytest.mark.parametrize(
    ("rows", "digest"),
    [
        (FIRST, "d1:95e6d34568a5242c2b57df40be58cdce"),
        (NEXT, "d1:d6685c51091a19ff3d5c2b4ab74f09cb"),
        ({}, "d1:" + "0" * 32),
    ],
    ids=["first", "next", "no rows"],
)
def test_python_and_duckdb_give_the_digests_of_the_vector(
    rows: dict[str, dict[str, Cell]], digest: str
) -> None:
    assert digest_rows(SCHEMA, rows.items()).content_digest == digest
    assert by_duckdb(rows) == digest_rows(SCHEMA, rows.items())


def test_the_digest_of_the_next_version_comes_by_increment_too() -> None:
    first = digest_rows(SCHEMA, FIRST.items())
    old = digest_rows(SCHEMA, [(name, FIRST[name]) for name in ("rec_01", "rec_03")])
    new = digest_rows(SCHEMA, [(name, NEXT[name]) for name in ("rec_01", "rec_04")])
    following = first.minus(old).plus(new)
    assert following.content_digest == "d1:d6685c51091a19ff3d5c2b4ab74f09cb"
    assert following == by_duckdb(NEXT)
    assert following.row_count == 3
    assert first.differing(following) == [87, 175, 207]


def test_the_wire_form_of_the_buckets_comes_back_whole() -> None:
    first = digest_rows(SCHEMA, FIRST.items())
    assert Buckets.from_wire(first.to_wire()) == first
    assert first.to_wire()[87].digest == "571908404baf17188ca557c3ad5735cf"
    with pytest.raises(ValueError, match="256 buckets, not 2"):
        Buckets.from_wire(first.to_wire()[:2])


def test_a_new_column_of_nulls_and_the_order_of_columns_change_nothing() -> None:
    wider = Schema(
        columns=[Column(name="note", type="string"), *reversed(SCHEMA.columns)],
        key_columns=["permit"],
        geometry=None,
    )
    with_note = {name: row | {"note": None} for name, row in FIRST.items()}
    assert digest_rows(wider, with_note.items()) == digest_rows(SCHEMA, FIRST.items())


def test_a_nan_counts_as_null_and_a_decimal_below_one_has_its_zero() -> None:
    schema = Schema(
        columns=[Column(name="x", type="float64"), Column(name="d", type="decimal(2,2)")],
        key_columns=[],
        geometry=None,
    )
    sql = digest_sql(
        schema,
        "(SELECT 'rec_1' AS _ploti_record_id, 'nan'::DOUBLE AS x, -0.5::DECIMAL(2,2) AS d)",
    )
    with duckdb.connect() as connection:
        found = Buckets.from_sql(connection.execute(sql).fetchall())
    cells: dict[str, Cell] = {"x": float("nan"), "d": Decimal("-0.50")}
    assert found == digest_rows(schema, [("rec_1", cells)])
    assert row_bytes(schema, "rec_1", cells) == b"rec_1\0d\0-0.50"


def test_no_rows_are_no_buckets() -> None:
    assert digest_rows(SCHEMA, []) == NO_ROWS


def test_a_zero_byte_is_no_text_of_sql() -> None:
    assert literal("it's") == "'it''s'"
    with pytest.raises(ValueError, match="zero byte"):
        literal("a\0b")
