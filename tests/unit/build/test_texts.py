"""Which type holds a text: found only where it cannot be meant otherwise (domain, step 2)."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from ploti.server.build import texts


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute("SET TimeZone = 'UTC'")
        yield opened


NUMBERS = ["0", "12", "-3", "9223372036854775807"]
DOUBLES = ["1.5", "0.10", "9.999e-07", "35.349300384521484", "1e+20", "-0.0"]
CODES = ["007", "00.5", "12E4", "1e5", "+1", " 1", "1_000", "1,5", "5.", ".5", "nan", "inf", "12-3"]
WIDE = ["9223372036854775808", "12345678901234567.5", "0.1234567890123456789"]


@pytest.mark.parametrize(
    ("type_", "held", "refused"),
    [
        ("int64", NUMBERS, [*DOUBLES, *CODES, *WIDE, "12.0", "-0"]),
        ("float64", [*NUMBERS[:3], *DOUBLES, "12.0"], [*CODES, *WIDE, "4e-1"]),
        ("boolean", ["true", "false"], ["True", "T", "1", "yes"]),
        (
            "date",
            ["2026-02-28", "0001-01-01", "9999-12-31"],
            ["2026-02-30", "2026-2-3", "0000-01-01", "10000-01-01", "02/03/2026", "2026-02-28 "],
        ),
        (
            "timestamp",
            ["2026-01-31T06:13:02Z", "2026-01-31 06:13:02.123456+05:30", "2026-01-31 06:13:02-05"],
            [
                "2026-01-31T06:13:02",
                "2026-01-31T24:00:00Z",
                "2026-01-31T06:13:60Z",
                "2026-01-31T06:13:02.1234567Z",
                "9999-12-31T23:59:59-05:00",
            ],
        ),
        (
            "datetime",
            ["2026-01-31T06:13:02", "2026-01-31 06:13:02.5000000"],
            ["2026-01-31T06:13:02Z", "2026-01-31", "2026-02-30 00:00:00"],
        ),
    ],
)
def test_a_type_is_found_where_a_text_cannot_be_meant_otherwise(
    connection: duckdb.DuckDBPyConnection, type_: str, held: list[str], refused: list[str]
) -> None:
    sql = f"SELECT text, {texts.found(type_, 'text')} FROM (SELECT unnest(?) AS text)"
    answers = dict(connection.execute(sql, [held + refused]).fetchall())
    assert answers == dict.fromkeys(held, True) | dict.fromkeys(refused, False)


@pytest.mark.parametrize(
    ("type_", "held", "refused"),
    [
        ("int64", [*NUMBERS, "12.0", "-0", "9007199254740993.00"], ["12.5", "1e3", "007", "x"]),
        (
            "float64",
            [
                *NUMBERS[:3],
                *DOUBLES,
                "12E4",
                "4e-1",
                "0.20000000000000001",
                "35.3493000000000000000",
                "-9007199254740992",
                "1152921504606846976",
                "1152921504606847000",
            ],
            [
                *("007", "nan", "1e400", "0.123456789012345678", "5."),
                *("9007199254740993", "-12345678901234567"),
            ],
        ),
        (
            "decimal(5,2)",
            ["0", "-12.5", "1.10", "999.990"],
            ["1.005", "1000", "1e1", "05", "5."],
        ),
        ("decimal(3,0)", ["12", "12.0"], ["12.5", "1000"]),
        ("boolean", ["true", "True", "FALSE"], ["t", "1", "yes", "true "]),
    ],
)
def test_a_settled_type_takes_the_same_value_written_otherwise(
    connection: duckdb.DuckDBPyConnection, type_: str, held: list[str], refused: list[str]
) -> None:
    sql = f"SELECT text, {texts.kept(type_, 'text')} FROM (SELECT unnest(?) AS text)"
    answers = dict(connection.execute(sql, [held + refused]).fetchall())
    assert answers == dict.fromkeys(held, True) | dict.fromkeys(refused, False)


def test_a_negative_zero_is_zero(connection: duckdb.DuckDBPyConnection) -> None:
    found = connection.execute(f"SELECT {texts.value('float64', repr('-0.0'))}::VARCHAR").fetchall()
    assert found == [("0.0",)]


def test_instants_are_written_with_three_decimals_or_six(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    sql = f"""
        SELECT {texts.moment_text("timestamp", "t")}, {texts.moment_text("datetime", "d")}
        FROM (VALUES ('0001-01-01T00:00:00Z'::TIMESTAMPTZ, '0987-12-31 23:59:59.5'::TIMESTAMP),
            ('2026-01-01T01:00:00.000001+01:00', '9999-12-31 23:59:59.999999')) AS given(t, d)
    """
    assert connection.execute(sql).fetchall() == [
        ("0001-01-01T00:00:00.000Z", "0987-12-31T23:59:59.500"),
        ("2026-01-01T00:00:00.000001Z", "9999-12-31T23:59:59.999999"),
    ]
