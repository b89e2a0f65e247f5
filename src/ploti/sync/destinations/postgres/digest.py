"""The content digest, computed inside PostgreSQL: 256 rows come back, whatever the table's size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ploti.model.schema import Schema


def buckets_sql(schema: Schema, place: str, *, record_id: str, values: Mapping[str, str]) -> str:
    """SQL that gives (bucket as two hex digits, rows, high sum, low sum) of a table.

    `values` gives each column's digest bytes; one that is left out is null throughout. OFFSET 0
    keeps the hash from being computed once for each use of it.
    """
    return f"""
        SELECT lpad(to_hex(bucket), 2, '0'), count(*)::bigint,
            sum({_word(0)}) * 4294967296 + sum({_word(1)}),
            sum({_word(2)}) * 4294967296 + sum({_word(3)})
        FROM (
            SELECT get_byte(sha256(convert_to({record_id}, 'UTF8')), 0) AS bucket,
                encode(sha256({_row(schema, record_id, values)}), 'hex') AS hash
            FROM {place} OFFSET 0
        ) AS hashed
        GROUP BY bucket
    """


def _word(number: int) -> str:
    """Four of the hash's bytes as a number."""
    return f"('x' || substr(hash, {number * 8 + 1}, 8))::bit(32)::bigint"


def _row(schema: Schema, record_id: str, values: Mapping[str, str]) -> str:
    parts = [f"convert_to({record_id}, 'UTF8')"]
    for column in sorted(schema.columns, key=lambda each: each.name.encode()):
        if column.name in values:
            name = rf"'\x00{column.name.encode().hex()}00'::bytea"
            parts.append(rf"coalesce({name} || {values[column.name]}, '\x')")
    return _joined(parts)


def _joined(parts: Sequence[str]) -> str:
    """Joined in halves: a row of a thousand columns is neither copied nor nested so often."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_joined(parts[:middle])} || {_joined(parts[middle:])})"


def in_buckets_sql(place: str, record_id: str, buckets: Sequence[int]) -> str:
    """SQL that gives the record ids of these buckets."""
    numbers = ", ".join(map(str, sorted(buckets)))
    return (
        f"SELECT {record_id} FROM {place} WHERE"
        f" get_byte(sha256(convert_to({record_id}, 'UTF8')), 0) = ANY ('{{{numbers}}}'::integer[])"
    )
