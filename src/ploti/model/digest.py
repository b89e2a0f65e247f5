"""The content digest: one number over a version's (record id, row) pairs, by 256 buckets.

The plain Python form is the reference; `digest_sql` says the same as one DuckDB expression. What
either hashes is canonical already: nothing is normalized here but −0 and NaN.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import NamedTuple

from ploti.model.columns import RECORD_ID
from ploti.model.schema import Column, Schema
from ploti.model.sql import identifier, literal
from ploti.model.version import BucketDigest

BUCKETS = 256
PREFIX = "d1:"
"""Names the rules by which a digest was made."""

_MODULUS = 1 << 128
_EPOCH = date(1970, 1, 1).toordinal()

Cell = str | int | float | bool | Decimal | date | datetime | bytes | None
"""A value as Python holds it; instants are aware, local date-times are not, geometry is WKB."""


class Buckets(NamedTuple):
    """Rows and sum of row hashes of each bucket; they add and subtract as the sets of rows do."""

    rows: tuple[int, ...]
    sums: tuple[int, ...]

    def plus(self, other: Buckets) -> Buckets:
        """The buckets of both sets of rows together."""
        return Buckets(
            rows=tuple(a + b for a, b in zip(self.rows, other.rows, strict=True)),
            sums=tuple((a + b) % _MODULUS for a, b in zip(self.sums, other.sums, strict=True)),
        )

    def minus(self, other: Buckets) -> Buckets:
        """The buckets without another set of rows, which must be among these."""
        return Buckets(
            rows=tuple(a - b for a, b in zip(self.rows, other.rows, strict=True)),
            sums=tuple((a - b) % _MODULUS for a, b in zip(self.sums, other.sums, strict=True)),
        )

    @property
    def row_count(self) -> int:
        """The rows of all buckets."""
        return sum(self.rows)

    @property
    def content_digest(self) -> str:
        """The digest of the whole, as `d1:` and 32 hex digits."""
        return f"{PREFIX}{sum(self.sums) % _MODULUS:032x}"

    def differing(self, other: Buckets) -> list[int]:
        """The numbers of the buckets that differ in rows or sum."""
        pairs = zip(zip(*self, strict=True), zip(*other, strict=True), strict=True)
        return [number for number, (a, b) in enumerate(pairs) if a != b]

    def to_wire(self) -> list[BucketDigest]:
        """The form in which the API gives the buckets and the store keeps them."""
        pairs = zip(self.rows, self.sums, strict=True)
        return [BucketDigest(rows=rows, digest=f"{total:032x}") for rows, total in pairs]

    @classmethod
    def from_wire(cls, buckets: Iterable[BucketDigest]) -> Buckets:
        """Buckets out of the API's form; raises ValueError unless there are 256 of them."""
        listed = list(buckets)
        if len(listed) != BUCKETS:
            raise ValueError(f"a digest has {BUCKETS} buckets, not {len(listed)}")
        return cls(
            rows=tuple(bucket.rows for bucket in listed),
            sums=tuple(int(bucket.digest, 16) for bucket in listed),
        )

    @classmethod
    def from_sql(cls, found: Iterable[tuple[str | None, int, int, int]]) -> Buckets:
        """Buckets out of the rows that `digest_sql` gives.

        Rows without a record id, which no version has, count as rows of the first bucket.
        """
        rows, sums = [0] * BUCKETS, [0] * BUCKETS
        for bucket, count, high, low in found:
            number = int(bucket or "0", 16)
            rows[number] += count
            sums[number] += 0 if bucket is None else ((high << 64) + low) % _MODULUS
        return cls(rows=tuple(rows), sums=tuple(sums))


NO_ROWS = Buckets(rows=(0,) * BUCKETS, sums=(0,) * BUCKETS)


def digest_rows(schema: Schema, rows: Iterable[tuple[str, Mapping[str, Cell]]]) -> Buckets:
    """The buckets of (record id, cells by column name) pairs, in plain Python."""
    counts, sums = [0] * BUCKETS, [0] * BUCKETS
    for record_id, cells in rows:
        number = bucket_of(record_id)
        counts[number] += 1
        sums[number] = (sums[number] + row_hash(row_bytes(schema, record_id, cells))) % _MODULUS
    return Buckets(rows=tuple(counts), sums=tuple(sums))


def bucket_of(record_id: str) -> int:
    """The bucket of a record id: the first byte of its SHA-256."""
    return hashlib.sha256(record_id.encode()).digest()[0]


def row_hash(row: bytes) -> int:
    """The first 16 bytes of SHA-256 of a row's bytes, as a number."""
    return int.from_bytes(hashlib.sha256(row).digest()[:16])


def row_bytes(schema: Schema, record_id: str, cells: Mapping[str, Cell]) -> bytes:
    """What is hashed of a row: its id, then name and value of each cell that is not null."""
    parts = [record_id.encode()]
    for column in _by_name(schema):
        value = _value_bytes(column.type, cells[column.name])
        if value is not None:
            parts += [b"\0", column.name.encode(), b"\0", value]
    return b"".join(parts)


def _by_name(schema: Schema) -> list[Column]:
    return sorted(schema.columns, key=lambda column: column.name.encode())


def _value_bytes(type_: str, value: Cell) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else struct.pack(">d", value + 0.0).hex().upper().encode()
    if isinstance(value, Decimal):
        return f"{value.copy_abs() if value == 0 else value:f}".encode()
    return _text(type_, value).encode()


def _text(type_: str, value: str | int | date) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return str(_microseconds(value if type_ == "timestamp" else value.replace(tzinfo=UTC)))
        case date():
            return str(value.toordinal() - _EPOCH)
        case _:
            return str(value)


def _microseconds(moment: datetime) -> int:
    past = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds


def digest_sql(
    schema: Schema,
    relation: str,
    *,
    id_column: str = RECORD_ID,
    values: Mapping[str, str] | None = None,
) -> str:
    """DuckDB SQL that gives (bucket as two hex digits, rows, high sum, low sum) of a relation.

    `relation` is what may stand after FROM. `values` gives the SQL of a column's value where it is
    other than the column of the same name (another name, a cast, `st_aswkb(…)`): geometry must come
    as WKB in a BLOB, `timestamp` as TIMESTAMPTZ, `datetime` as TIMESTAMP.
    """
    own = {column.name: identifier(column.name) for column in schema.columns} | dict(values or {})
    record_id = identifier(id_column)
    row = _row_sql(_by_name(schema), record_id, own)
    return f"""
        SELECT bucket, count(*)::BIGINT AS rows,
            sum(('0x' || left(hash, 16))::UBIGINT) AS high,
            sum(('0x' || substr(hash, 17, 16))::UBIGINT) AS low
        FROM (SELECT left(sha256({record_id}), 2) AS bucket, sha256({row}) AS hash FROM {relation})
        GROUP BY bucket
    """  # noqa: S608 - every name goes through `identifier` or `literal`


def _row_sql(columns: list[Column], record_id: str, values: Mapping[str, str]) -> str:
    """The row's bytes: runs of text, which `concat` joins without the nulls, and blobs between."""
    parts: list[str] = []
    run = [record_id]
    for column in columns:
        name = f"chr(0) || {literal(column.name)} || chr(0)"
        value = _value_sql(column.type, values[column.name])
        if column.type == "geometry":
            parts += [f"encode(concat({', '.join(run)}))"] if run else []
            parts.append(f"coalesce(encode({name}) || {value}, ''::BLOB)")
            run = []
        else:
            run.append(f"{name} || {value}")
    parts += [f"encode(concat({', '.join(run)}))"] if run else []
    return " || ".join(parts)


def _value_sql(type_: str, value: str) -> str:
    match type_:
        case "geometry" | "string":
            return value
        case "float64":
            return f"hex(nullif({value} + 0.0, 'nan'::DOUBLE)::BIT::BLOB)"
        case "date":
            return f"({value} - DATE '1970-01-01')::VARCHAR"
        case "timestamp" | "datetime":
            return f"epoch_us({value})::VARCHAR"
        case _ if type_.startswith("decimal"):
            # DuckDB prints a decimal(s,s) without the 0 before its point, and only such.
            return rf"regexp_replace({value}::VARCHAR, '^(-?)[.]', '\10.')"
        case _:
            return f"{value}::VARCHAR"
