"""JSON rows, newline-delimited JSON and sequences of features keep every value's text."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.readers.reading import Read, read

from ploti.errors import SourceError
from ploti.server.adapters.readers.geojsonseq import GeoJsonSeqReader
from ploti.server.adapters.readers.json_rows import JsonReader, NdjsonReader

FEATURE = '{"type":"Feature","properties":{"a":%s},"geometry":{"type":"Point","coordinates":[1,2]}}'


def given(folder: Path, text: str) -> Path:
    path = folder / "given.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def read_json(folder: Path, text: str, **settings: Any) -> Read:
    return read(JsonReader(), given(folder, text), folder, **settings)


@pytest.mark.parametrize(
    ("values", "texts", "kind"),
    [
        (f"{2**53 + 1} {2**63} {-(2**63)}", [str(2**53 + 1), str(2**63), str(-(2**63))], None),
        ("1.10 1e5 -0.0", ["1.10", "1e5", "-0.0"], "number"),
        ("12 7 -3", ["12", "7", "-3"], "integer"),
        ('"007" "" null', ["007", "", None], "string"),
        (
            '"2024-01-02T03:04:05+05:30" "12E4" null',
            ["2024-01-02T03:04:05+05:30", "12E4", None],
            "string",
        ),
        ("true false null", ["true", "false", None], "boolean"),
        ('{"b":1.0,"a":[]} [] null', ['{"b":1.0,"a":[]}', "[]", None], "json"),
    ],
)
def test_values_keep_their_text_and_their_kind(
    tmp_path: Path, values: str, texts: list[str | None], kind: str | None
) -> None:
    rows = ",".join(f'{{"a":{value}}}' for value in values.split(" "))
    found = read_json(tmp_path, f"[{rows}]")
    assert found.column("a") == texts
    assert kind in {None, found.kind("a")}


def test_b55_missing_and_null_are_the_same_and_empty_text_is_another(tmp_path: Path) -> None:
    found = read_json(tmp_path, '[{"a":"x","b":""},{"a":"y","b":null},{"a":"z"}]')
    assert found.column("b") == ["", None, None]


def test_fields_that_come_later_are_columns_like_the_first(tmp_path: Path) -> None:
    found = read_json(tmp_path, '[{"a":1},{"b":2,"a":3}]')
    assert found.rows == [{"a": "1", "b": None}, {"a": "3", "b": "2"}]


def test_strings_beside_nested_values_are_json_in_quotes(tmp_path: Path) -> None:
    found = read_json(tmp_path, '[{"a":"x"},{"a":{"b":1}}]')
    assert (found.column("a"), found.kind("a")) == (['"x"', '{"b":1}'], "json")


def test_an_object_may_hold_the_rows_among_other_members(tmp_path: Path) -> None:
    text = '{"meta":{"rows":[{"x":1}]},"columns":["a"],"none":[],"data":[{"a":1},{"a":2}],"n":2}'
    assert read_json(tmp_path, text).column("a") == ["1", "2"]


@pytest.mark.parametrize(
    ("beside", "reason"),
    [
        ('"exceededTransferLimit": true', "says that it has more than these 1 rows"),
        ('"numberMatched": 7', r"gave 1 rows of 7 that it has \(numberMatched\)"),
        ('"total_count": 7', r"gave 1 rows of 7 that it has \(total_count\)"),
        ('"@odata.count": 7', r"gave 1 rows of 7 that it has \(@odata.count\)"),
        ('"errors": [{"message": "timeout"}]', 'answers with errors: {"message": "timeout"}'),
        ('"next": "https://x/?page=2"', r"an address of more \('https://x/\?page=2'\)"),
        ('"@odata.nextLink": "https://x/2"', "it is one page"),
        ('"links": {"next": "/p/2"}', "it is one page"),
    ],
)
def test_one_page_of_a_source_is_not_taken_for_all_of_it(
    tmp_path: Path, beside: str, reason: str
) -> None:
    with pytest.raises(SourceError, match=reason):
        read_json(tmp_path, f'{{"data":[{{"a":1}}],{beside}}}')


def test_a_text_that_says_it_is_whole_is_read_and_so_is_a_column_called_next(
    tmp_path: Path,
) -> None:
    beside = '"exceededTransferLimit":false,"numberMatched":1,"next":null,"links":{"self":"/p/1"}'
    found = read_json(tmp_path, f'{{{beside},"data":[{{"next":"/p/2"}}]}}')
    assert found.column("next") == ["/p/2"]


def test_of_two_lists_of_objects_one_has_to_be_declared(tmp_path: Path) -> None:
    text = '{"people":[{"a":1}],"places":[{"b":2}]}'
    with pytest.raises(SourceError, match=r"'people' and 'places' .* source.layer"):
        read_json(tmp_path, text)
    assert read_json(tmp_path, text, source={"layer": "places"}).rows == [{"b": "2"}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[{"a":1},{"a":1', "cut short"),
        ('[{"a":1},\n{"a":tru}]', r"row 2 \(line 2\)"),
        ('[{"a":1},7]', "row 2 .* no object"),
        ('[{"a":1}] {}', "something follows"),
        ('{"a":1}', "no list of objects"),
        ("[{}]", "1 rows and no fields"),
        ("<html>", "a list of objects is expected"),
        ('{"a":[[1]]}', "no list of objects"),
        ('[{"a":%s}]' % ("[" * 5000 + "]" * 5000), "row 1 .* nested too deep"),
        ("[{{{}}}]".format(",".join(f'"c{n}":1' for n in range(2001))), "more than 2,000 columns"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        read_json(tmp_path, text)


def test_zero_bytes_and_halves_of_pairs_are_set_right_and_said(tmp_path: Path) -> None:
    found = read_json(tmp_path, r'[{"a":"x\u0000y"},{"a":"\ud800"}]')
    assert found.column("a") == ["xy", "\N{REPLACEMENT CHARACTER}"]
    kinds = [finding.kind for finding in found.table.findings]
    assert kinds == ["nul_removed", "surrogate_replaced"]


@pytest.mark.parametrize(
    "text", ['{"a":1}\n{"a":2}\n', '{"a":1}\r\n\r\n{"a":\n2}', '\x1e{"a":1}\n\x1e{"a":2}']
)
def test_objects_may_follow_one_another(tmp_path: Path, text: str) -> None:
    assert read(NdjsonReader(), given(tmp_path, text), tmp_path).column("a") == ["1", "2"]


def test_a_line_that_is_cut_short_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cut short"):
        read(NdjsonReader(), given(tmp_path, '{"a":1}\n{"a":"x'), tmp_path)
    with pytest.raises(SourceError, match=r"row 2 \(line 2\)"):
        read(NdjsonReader(), given(tmp_path, '{"a":1}\n{"a":2]}\n{"a":3}'), tmp_path)


@pytest.mark.parametrize("separator", ["", "\x1e"])
def test_features_may_follow_one_another_with_or_without_separators(
    tmp_path: Path, separator: str
) -> None:
    text = "".join(f"{separator}{FEATURE % value}\n" for value in ('"007"', "null"))
    found = read(GeoJsonSeqReader(), given(tmp_path, text), tmp_path)
    assert found.column("a") == ["007", None]
    assert len(set(found.column("geometry"))) == 1
    assert found.table.geometry
    assert found.table.geometry.types == ["Point"]


@pytest.mark.parametrize(
    ("name", "head", "reader"),
    [
        ("a", b'[{"a":1}]', "json"),
        ("a.json", b'{"data":[]}', "json"),
        ("a.json", b'{"a":1}', "json"),
        ("a.ndjson", b'{"a":1}', "ndjson"),
        ("a", b'{"a":1}\n{"a":2}', "ndjson"),
        ("a.json", b'{"a":1}\r\n{"a":2}', "ndjson"),
        ("a.jsonl", b'{"type":"Feature"}\n', "geojsonseq"),
        ("a", b'\x1e{"type":"Feature"}\n', "geojsonseq"),
        ("a.geojson", b'{"type":"FeatureCollection","features":[{"type":"Feature"', None),
        ("a.csv", b"a,b\n1,2\n", None),
    ],
)
def test_formats_are_told_by_name_and_head(name: str, head: bytes, reader: str | None) -> None:
    readers = (GeoJsonSeqReader(), NdjsonReader(), JsonReader())
    assert next((each.format for each in readers if each.matches(name, head)), None) == reader


def test_a_member_that_stands_twice_is_told_by_name(tmp_path: Path) -> None:
    found = read_json(tmp_path, '[{"a":1,"b":{"c":1}},{"a":1,"a" :2},{"a":3,"b":{"d":1,"d":1}}]')
    assert found.column("a") == ["1", "2", "3"]
    [finding] = found.table.findings
    assert (finding.kind, finding.examples) == ("member_repeated", ["row 2: 'a'", "row 3: 'd'"])
