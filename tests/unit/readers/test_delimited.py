"""Text tables of other separators and encodings give the values that they hold."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.readers.reading import Read, read

from ploti.errors import SourceError
from ploti.server.adapters.readers.delimited import DelimitedReader, TsvReader


def read_text(folder: Path, text: str, *, encoding: str = "utf-8", **source: Any) -> Read:
    path = folder / "given.txt"
    path.write_bytes(text.encode(encoding))
    reader = TsvReader() if source.get("format") == "tsv" else DelimitedReader()
    return read(reader, path, folder, source=source)


def test_tabs_and_any_declared_separator_part_values(tmp_path: Path) -> None:
    expected = [{"id": "1", "t": "0,7"}, {"id": "2", "t": 'say "a;b"\tc'}]
    tabs = 'id\tt\n1\t0,7\n2\t"say ""a;b""\tc"\n'
    assert read_text(tmp_path, tabs, format="tsv").rows == expected
    semicolons = 'id;t\r\n1;0,7\r\n2;"say ""a;b""\tc"\r\n'
    assert read_text(tmp_path, semicolons, delimiter=";").rows == expected


def test_a_tsv_file_may_have_a_separator_of_its_own_in_its_values(tmp_path: Path) -> None:
    found = read_text(tmp_path, "id\tt\n007\ta,b\n\n008\t x \n", format="tsv")
    assert found.rows == [{"id": "007", "t": "a,b"}, {"id": "008", "t": " x "}]


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16-le", "cp437", "UTF-8"])
def test_a_declared_encoding_is_the_one_that_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "given.csv"
    path.write_bytes("id,t\n1,Größe\n".encode(encoding))
    found = read(DelimitedReader(), path, tmp_path, source={"encoding": encoding})
    assert found.column("t") == ["Größe"]


@pytest.mark.parametrize("marked", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("declared", [None, "cp1252"])
def test_unicode_is_told_by_its_mark_whatever_was_declared(
    tmp_path: Path, marked: str, declared: str | None
) -> None:
    path = tmp_path / "given.csv"
    path.write_bytes("id,t\n1,Größe\n".encode(marked))
    found = read(DelimitedReader(), path, tmp_path, source={"encoding": declared})
    assert found.rows == [{"id": "1", "t": "Größe"}]


@pytest.mark.parametrize("line", ["sep=,", "sep=;", "SEP=\t"])
def test_a_line_that_names_the_separator_has_no_names_of_columns(tmp_path: Path, line: str) -> None:
    separator = line[-1]
    text = f"{line}\nid{separator}t\n1{separator}a\n"
    with pytest.raises(SourceError, match="line 1 names the separator"):
        read_text(tmp_path, text, delimiter=separator)
    found = read_text(tmp_path, text, delimiter=separator, header_row=2)
    assert found.rows == [{"id": "1", "t": "a"}]


def test_text_in_another_encoding_than_the_declared_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_bytes("id;t\n1;Größe\n".encode("cp1252"))
    with pytest.raises(SourceError, match=r"another encoding .* declare source.encoding"):
        read(DelimitedReader(), path, tmp_path, source={"delimiter": ";"})


def test_the_names_may_stand_lower_down(tmp_path: Path) -> None:
    found = read_text(tmp_path, "Permits,,\nof 2024\nid,t\n1,a\n", header_row=3)
    assert found.rows == [{"id": "1", "t": "a"}]
    with pytest.raises(SourceError, match="no names in row 9"):
        read_text(tmp_path, "id,t\n1,a\n", header_row=9)


def test_line_breaks_in_quotes_are_exact(tmp_path: Path) -> None:
    found = read_text(tmp_path, 'id;t\n1;"a\r\nb\nc\rd"\n', delimiter=";")
    assert found.column("t") == ["a\r\nb\nc\rd"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("id;t\n1;a;b\n", "line 2: 3 values, and there are 2 names"),
        ("id;t\n1;a\n2\n", "line 3: 1 values, and there are 2 names"),
        ('id;t\n1;"a"b\n', "line 2: text after the quotes around a value"),
        ('id;t\n1;"a\n"b\n', "line 2: text after the quotes around a value"),
        ('id;t\n1;"a\n', "line 2: a quote there is never closed"),
        ('id;t\n1;"a\nb"\n2;"c\n3;d\n', "line 4: a quote there is never closed"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_by_its_line(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(SourceError, match=reason):
        read_text(tmp_path, text, delimiter=";")


@pytest.mark.parametrize("row", ['1{0}"a\n2{0}b\n', '1{0}"a"b\n2{0}c\n', '1{0}"a\n2"b{0}c\n'])
def test_broken_quotes_are_told_alike_in_csv_and_tsv(tmp_path: Path, row: str) -> None:
    said = []
    for kind, between in (("csv", ","), ("tsv", "\t")):
        text = f"id{between}t\n0{between}x\n" + row.format(between)
        with pytest.raises(SourceError) as raised:
            read_text(tmp_path, text, format=kind)
        said.append(raised.value.args[0])
    assert said[0] == said[1]
    assert said[0].startswith("line 3: ")


def test_a_plain_file_is_not_written_again(tmp_path: Path) -> None:
    read_text(tmp_path, "id,t\n1,a\n", encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["given.txt"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_names_that_come_again_tell_of_files_put_one_after_another(
    tmp_path: Path, end: str, mark: str, delimiter: str
) -> None:
    names = f'id{delimiter}"kind, of it"'
    lines = ["", names, f"1{delimiter}a", mark + names, f"2{delimiter}b", ""]
    with pytest.raises(SourceError, match="line 4: the names of the columns again"):
        read_text(tmp_path, end.join(lines), delimiter=delimiter)


def test_names_that_come_again_are_found_in_every_block_of_a_large_file(tmp_path: Path) -> None:
    rows = f"12,{'a' * 5_000}\n" * 1_000
    assert len(read_text(tmp_path, f"id,ab\n{rows}").rows) == 1_000
    with pytest.raises(SourceError, match="line 1002: the names of the columns again"):
        read_text(tmp_path, f"id,ab\n{rows}id,ab\n")


def test_a_value_of_a_single_column_may_be_as_its_name(tmp_path: Path) -> None:
    assert read_text(tmp_path, "word\nid\nword\n").column("word") == ["id", "word"]
    assert len(read_text(tmp_path, ",\n,\n,\n").rows) == 2


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_names_that_stand_lower_down_are_pointed_at(tmp_path: Path, delimiter: str) -> None:
    text = f"Permits of 2024\n\nid{delimiter}kind{delimiter}cost\n1{delimiter}a{delimiter}5\n"
    with pytest.raises(SourceError, match=r"line 3: .*\{format: csv, header_row: 3\}"):
        read_text(tmp_path, text, delimiter=delimiter)
    found = read_text(tmp_path, text, delimiter=delimiter, header_row=3)
    assert found.rows == [{"id": "1", "kind": "a", "cost": "5"}]
