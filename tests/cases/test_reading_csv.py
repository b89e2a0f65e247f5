"""Cases A21 to A30: CSV files as they are met, read whole and built."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.cases.cases import FOLDER, case, rows
from tests.fakes.builds import Builds, declare

from ploti.errors import SourceError
from ploti.server.adapters.readers.csv import CsvReader
from ploti.server.build.candidate import Broken, Candidate
from ploti.server.sources.raw import RawTable


class Reading:
    """A case's file, read and built."""

    def __init__(self, number: str, folder: Path) -> None:
        given = case(number)["given"]
        self.file = FOLDER / given["file"]
        self.declaration = declare(key=given["key"])
        self._folder = folder
        self._builds = Builds(folder, self.declaration)

    def table(self) -> RawTable:
        return CsvReader().read(
            str(self.file), declaration=self.declaration, folder=str(self._folder)
        )

    def texts(self) -> list[dict[str, Any]]:
        """The rows in the order of the file, each value as its text; an empty one is null."""
        table = self.table()
        fields = ", ".join(column.field for column in table.columns)
        names = [column.source_name for column in table.columns]
        found = duckdb.sql(f"SELECT {fields} FROM {table.relation}").fetchall()
        return [dict(zip(names, row, strict=True)) for row in found]

    def built(self) -> Candidate:
        result = self._builds.build(self.file)
        assert isinstance(result, Candidate), result
        assert result.key_fault is None
        return result

    def refused(self) -> str:
        result = self._builds.build(self.file)
        assert isinstance(result, Broken), result
        return result.detail

    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.built().schema.columns}

    def values(self) -> list[dict[str, Any]]:
        """The rows of the snapshot."""
        return self._builds.rows(self.built())


def without_empty(expected: list[dict[str, str | None]]) -> list[dict[str, str | None]]:
    return [{name: value or None for name, value in row.items()} for row in expected]


@pytest.mark.parametrize("number", ["A21", "A23", "A26", "A29", "A76"])
def test_every_value_keeps_every_character(number: str, tmp_path: Path) -> None:
    """A21 a byte order mark, A23 codes, A26 line breaks in quotes, A29 money, A76 bare returns."""
    reading = Reading(number, tmp_path)
    name = case(number)["expect"].get("rows_file") or case(number)["expect"]["rows_file_if_text"]
    expected = without_empty(rows(name))
    assert reading.texts() == expected
    assert reading.built().row_count == len(expected)


def test_a22_bytes_that_are_not_utf_8_are_refused_with_their_place(tmp_path: Path) -> None:
    detail = Reading("A22", tmp_path).refused()
    assert "UTF-8" in detail
    assert "line 2" in detail


def test_a23_codes_stay_texts(tmp_path: Path) -> None:
    types = Reading("A23", tmp_path).types()
    assert types == {
        "parcel_id": "string",
        "zip": "string",
        "plan": "string",
        "serial": "int64",
        "lot": "string",
    }


def test_a24_a_type_is_decided_over_all_rows(tmp_path: Path) -> None:
    reading = Reading("A24", tmp_path)
    texts = reading.texts()
    expect = case("A24")["expect"]
    assert len(texts) == reading.built().row_count == expect["row_count"]
    for cell in expect["cells"]:
        assert texts[cell["row"] - 1][cell["column"]] == cell["text"]


def test_a24_late_values_make_the_whole_column_a_text(tmp_path: Path) -> None:
    assert Reading("A24", tmp_path).types() == {"permit_no": "string", "units": "string"}


def test_a72_one_stray_byte_is_a_failure_that_says_where(tmp_path: Path) -> None:
    assert "line 901" in Reading("A72", tmp_path).refused()


def test_a74_dates_with_some_that_are_none_are_texts(tmp_path: Path) -> None:
    reading = Reading("A74", tmp_path)
    texts, expect = reading.texts(), case("A74")["expect"]
    assert reading.types()["issued"] == "string"
    for cell in expect["cells"]:
        assert texts[cell["row"] - 1][cell["column"]] == cell["text"]
    assert len(texts) == expect["row_count"]


def test_a25_ragged_rows_fail_with_their_line(tmp_path: Path) -> None:
    assert "line 3" in Reading("A25", tmp_path).refused()


def test_a27_nul_bytes_are_taken_out_and_counted(tmp_path: Path) -> None:
    reading = Reading("A27", tmp_path)
    found = {row["permit_no"]: row["note"] for row in reading.values()}
    assert found == {"BP-1": "abcd", "BP-2": "x", "BP-3": "fine"}
    assert len(reading.table().findings) == 1


def test_a28_a_field_of_any_length_is_read(tmp_path: Path) -> None:
    reading = Reading("A28", tmp_path)
    lengths = sorted(len(row["geom"]) for row in reading.values())
    assert lengths[-1] > 131_072
    assert sorted(len(row["geom"]) for row in reading.texts()) == lengths


def test_a30_columns_of_one_name_are_both_kept(tmp_path: Path) -> None:
    reading = Reading("A30", tmp_path)
    assert list(reading.types()) == ["permit_no", "name", "name_2"]


def test_a30_the_second_of_two_names_keeps_its_values(tmp_path: Path) -> None:
    values = Reading("A30", tmp_path).values()
    assert sorted((row["name"], row["name_2"]) for row in values) == [
        ("Applicant One", "Contractor One"),
        ("Applicant Two", "Contractor Two"),
    ]


def test_a40_a_page_in_place_of_a_table_is_refused(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["permit_no"], source={"format": "csv"}))
    result = builds.build((FOLDER / "A40.page.html").read_bytes(), name="data.csv")
    assert isinstance(result, Broken)
    assert "HTML" in result.detail


def test_a_refusal_is_a_source_error_of_the_reader(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="line 3"):
        Reading("A25", tmp_path).table()
