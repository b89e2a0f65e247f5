"""XLSX: what cells hold, told by their kinds, and sheets that are no larger than they are."""

import resource
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from tests.unit.readers.reading import Read, read

from ploti.errors import SourceError
from ploti.server.adapters.readers.xlsx import XlsxReader
from ploti.server.adapters.readers.xlsx_formats import Shown, shown_by

NS = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
HEAD = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'
STYLES = (
    f"<styleSheet {NS}><numFmts><numFmt numFmtId='164' formatCode='yyyy\\-mm\\-dd\\ hh:mm'/>"
    "</numFmts><cellXfs><xf numFmtId='0'/><xf numFmtId='14'/><xf numFmtId='164'/>"
    "<xf numFmtId='20'/><xf numFmtId='46'/></cellXfs></styleSheet>"
)
DATE, BOTH, TIME, ELAPSED = "s='1'", "s='2'", "s='3'", "s='4'"


def book(
    folder: Path,
    *sheets: str,
    shared: str = "",
    properties: str = "",
    charts: Collection[int] = (),
) -> Path:
    """A workbook with sheets of these rows, called `s1`, `s2`, …; `charts` are said to be none."""
    path = folder / "given.xlsx"
    numbers = range(1, len(sheets) + 1)
    listed = "".join(f"<sheet name='s{n}' sheetId='{n}' r:id='r{n}'/>" for n in numbers)
    relations = "".join(
        f"<Relationship Id='r{n}' Target='worksheets/sheet{n}.xml'"
        f" Type='{REL}/{'chartsheet' if n in charts else 'worksheet'}'/>"
        for n in numbers
    )
    parts = {
        "[Content_Types].xml": "<Types/>",
        "xl/workbook.xml": f"<workbook {NS} xmlns:r='{REL}'><workbookPr {properties}/>"
        f"<sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f"<Relationships>{relations}</Relationships>",
        "xl/styles.xml": STYLES,
        "xl/sharedStrings.xml": f"<sst {NS}>{shared}</sst>",
    } | {
        f"xl/worksheets/sheet{n}.xml": f"<worksheet {NS}><sheetData>{rows}</sheetData></worksheet>"
        for n, rows in enumerate(sheets, 1)
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in parts.items():
            packed.writestr(name, text)
    return path


def read_cells(folder: Path, *cells: str, **more: Any) -> Read:
    """A column `a` of these cells: their attributes and what is in them."""
    rows = "".join(f"<row r='{n}'><c r='A{n}' {cell}</c></row>" for n, cell in enumerate(cells, 2))
    return read(XlsxReader(), book(folder, HEAD + rows, **more), folder)


def test_text_cells_keep_leading_zeros_and_are_no_numbers(tmp_path: Path) -> None:
    rich = "<si><r><t>a</t></r><r><t xml:space='preserve'> b</t></r></si>"
    found = read_cells(
        tmp_path,
        "t='s'><v>0</v>",
        "t='s'><v>1</v>",
        "t='inlineStr'><is><t>12E4</t></is>",
        "t='str'><f>A1</f><v>0012</v>",
        shared=f"<si><t>007</t></si>{rich}",
    )
    assert found.column("a") == ["007", "a b", "12E4", "0012"]
    assert found.kind("a") == "string"


@pytest.mark.parametrize(
    "cell",
    [
        "t='s'><v>0</v>",
        "t='str'><f>IF(B2=0,\"\",B2)</f><v></v>",
        "t='str'><f>B2</f>",
        "t='inlineStr'><is><t/></is>",
        "t='n'><v/>",
        f"{DATE}>",
    ],
)
def test_a_cell_that_shows_nothing_has_no_value_and_bends_no_type(
    tmp_path: Path, cell: str
) -> None:
    head = HEAD.replace("</row>", "<c r='B1' t='inlineStr'><is><t>b</t></is></c></row>")
    one = f"<row r='2'><c r='A2' {cell}</c><c r='B2'><v>1</v></c><c r='C2' {cell}</c></row>"
    two = f"<row r='3'><c r='A3'><v>7</v></c></row><row r='4'><c r='A4' {cell}</c></row>"
    given = book(tmp_path, head + one + two, shared="<si><t/></si>")
    found = read(XlsxReader(), given, tmp_path)
    assert [list(row.values()) for row in found.rows] == [[None, "1"], ["7", None]]
    assert found.table.columns[0].kind == "integer"


def test_what_a_maker_adds_to_a_cell_is_not_its_value(tmp_path: Path) -> None:
    found = read_cells(tmp_path, "><v>1</v><extLst><ext><x:v>77</x:v></ext></extLst>")
    assert found.column("a") == ["1"]


def test_a_cell_that_stands_twice_fails_the_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="row 2, column 1: the cell stands there twice"):
        read_cells(tmp_path, "><v>1</v></c><c r='A2'><v>2</v>")


def test_whole_numbers_keep_every_digit_that_the_file_has(tmp_path: Path) -> None:
    found = read_cells(tmp_path, f"><v>{2**53 + 1}</v>", f"><v>{2**63}</v>", "><v>-1</v>")
    assert found.column("a") == [str(2**53 + 1), str(2**63), "-1"]
    assert found.kind("a") == "integer"


def test_numbers_are_the_shortest_text_of_their_double(tmp_path: Path) -> None:
    found = read_cells(tmp_path, "><v>0.10000000000000001</v>", "><v>1E-7</v>", "><v>3</v>")
    assert found.column("a") == ["0.1", "1e-07", "3"]
    assert found.kind("a") == "number"


@pytest.mark.parametrize(
    "cell", ["><f>1+1</f>", "t='n'><f>1+1</f><v></v>", "><f t='shared' si='0'/>"]
)
def test_a_formula_that_was_never_reckoned_is_no_empty_cell(tmp_path: Path, cell: str) -> None:
    with pytest.raises(SourceError, match="column 1: the formula has no value"):
        read_cells(tmp_path, "><v>1</v>", cell)


def test_a_formula_is_the_value_kept_with_it_and_an_error_is_null_and_said(tmp_path: Path) -> None:
    error = "t='e'><f>1/0</f><v>#DIV/0!</v>"
    found = read_cells(tmp_path, "><f>1+1</f><v>2</v>", error, "t='b'><v>1</v>")
    assert found.column("a") == ["2", None, "true"]
    assert [(f.kind, f.examples) for f in found.table.findings] == [
        ("cell_error", ["#DIV/0! in row 3"])
    ]
    assert found.kind("a") == "text"


@pytest.mark.parametrize(
    ("cell", "text", "type_"),
    [
        (f"{DATE}><v>45351</v>", "2024-02-29", "date"),
        (f"{DATE}><v>1</v>", "1900-01-01", "date"),
        (f"{DATE}><v>59</v>", "1900-02-28", "date"),
        (f"{DATE}><v>61</v>", "1900-03-01", "date"),
        (f"{DATE}><v>2958465</v>", "9999-12-31", "date"),
        (f"{DATE}><v>45351.5</v>", "2024-02-29T12:00:00", "datetime"),
        (f"{BOTH}><v>45351</v>", "2024-02-29T00:00:00", "datetime"),
        (f"{BOTH}><v>45351.562511574077</v>", "2024-02-29T13:30:01", "datetime"),
        (f"{BOTH}><v>45351.00000144676</v>", "2024-02-29T00:00:00.125", "datetime"),
        (f"{TIME}><v>0.5625</v>", "13:30:00", "string"),
        ("t='d'><v>2024-02-29</v>", "2024-02-29", "date"),
        ("t='d'><v>2024-02-29T10:00:00</v>", "2024-02-29T10:00:00", "datetime"),
        ("t='d'><v>2024-02-29T10:00:00Z</v>", "2024-02-29T10:00:00Z", None),
        (f"{DATE}><v>60</v>", "60", None),
        (f"{DATE}><v>-1</v>", "-1", None),
        (f"{DATE}><v>2958466</v>", "2958466", None),
        (f"{ELAPSED}><v>1.5</v>", "1.5", "float64"),
    ],
)
def test_days_and_times_are_told_by_the_format_of_the_cell(
    tmp_path: Path, cell: str, text: str, type_: str | None
) -> None:
    found = read_cells(tmp_path, cell)
    assert (found.column("a"), found.type("a")) == ([text], type_)


def test_days_among_date_times_are_midnights(tmp_path: Path) -> None:
    found = read_cells(tmp_path, f"{DATE}><v>45351</v>", f"{BOTH}><v>45351.5</v>")
    assert found.column("a") == ["2024-02-29T00:00:00", "2024-02-29T12:00:00"]
    assert found.type("a") == "datetime"


def test_a_book_may_count_its_days_from_1904(tmp_path: Path) -> None:
    found = read_cells(tmp_path, f"{DATE}><v>0</v>", properties="date1904='1'")
    assert found.column("a") == ["1904-01-01"]


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("General", Shown.NUMBER),
        ("0.00E+00", Shown.NUMBER),
        ('0 "days"', Shown.NUMBER),
        ("[Red]#,##0", Shown.NUMBER),
        ("[h]:mm:ss", Shown.NUMBER),
        ("mmm", Shown.DATE),
        ("[$-409]d/m/yy;@", Shown.DATE),
        ("h:mm AM/PM", Shown.TIME),
        ('"as; of "d/m/yy', Shown.DATE),
        ("yyyy-mm-dd hh:mm:ss.000", Shown.BOTH),
    ],
)
def test_formats_of_numbers_say_what_they_show(code: str, shown: Shown) -> None:
    assert shown_by(200, code) is shown


def test_values_of_several_kinds_are_a_column_of_anything(tmp_path: Path) -> None:
    found = read_cells(tmp_path, "><v>12</v>", "t='inlineStr'><is><t>A-17</t></is>")
    assert (found.column("a"), found.kind("a")) == (["12", "A-17"], "text")


def test_rows_and_cells_without_numbers_follow_one_another(tmp_path: Path) -> None:
    cell = "<c t='inlineStr'><is><t>{}</t></is></c>"
    rows = [f"<row>{cell.format(name)}{cell.format(name + '2')}</row>" for name in ("a", "b")]
    found = read(XlsxReader(), book(tmp_path, "".join(rows)), tmp_path)
    assert found.rows == [{"a": "b", "a2": "b2"}]


def test_the_names_may_stand_lower_down_and_empty_rows_are_passed_over(tmp_path: Path) -> None:
    title = '<row r="1"><c r="A1" t="inlineStr"><is><t>Permits</t></is></c></row>'
    names = "".join(f'<c r="{c}4" t="inlineStr"><is><t>{c}</t></is></c>' for c in "BC")
    values = '<row r="6"><c r="C6"><v>7</v></c><c r="B6" s="1"/></row><row r="8"/>'
    path = book(tmp_path, f'{title}<row r="4">{names}</row>{values}')
    found = read(XlsxReader(), path, tmp_path, source={"header_row": 4})
    assert found.rows == [{"B": None, "C": "7"}]
    with pytest.raises(SourceError, match=r"row 4 has a value in column 2, .* source.header_row"):
        read(XlsxReader(), path, tmp_path)
    with pytest.raises(SourceError, match="no names in row 5"):
        read(XlsxReader(), path, tmp_path, source={"header_row": 5})


def test_of_several_sheets_one_has_to_be_declared(tmp_path: Path) -> None:
    other = HEAD + '<row r="2"><c r="A2"><v>2</v></c></row>'
    path = book(tmp_path, HEAD, other)
    with pytest.raises(SourceError, match=r"sheets are s1, s2: declare source.sheet"):
        read(XlsxReader(), path, tmp_path)
    with pytest.raises(SourceError, match="no sheet 's3': its sheets are s1, s2"):
        read(XlsxReader(), path, tmp_path, source={"sheet": "s3"})
    assert read(XlsxReader(), path, tmp_path, source={"sheet": "s2"}).column("a") == ["2"]


def test_a_sheet_that_is_a_chart_is_none_to_choose(tmp_path: Path) -> None:
    path = book(tmp_path, HEAD + '<row r="2"><c r="A2"><v>2</v></c></row>', HEAD, charts={2})
    assert read(XlsxReader(), path, tmp_path).column("a") == ["2"]
    with pytest.raises(SourceError, match="no sheet 's2': its sheets are s1"):
        read(XlsxReader(), path, tmp_path, source={"sheet": "s2"})


def test_a_workbook_without_one_of_its_parts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.xlsx"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("xl/workbook.xml", f"<workbook {NS}/>")
    with pytest.raises(SourceError, match=r"the archive has no .xl/_rels"):
        read(XlsxReader(), path, tmp_path)


def test_characters_that_xml_cannot_hold_are_unescaped(tmp_path: Path) -> None:
    escaped = "a_x000D_b_x005F_x_x0000__xD83D__xDE80_"
    found = read_cells(tmp_path, f"t='inlineStr'><is><t>{escaped}</t></is>")
    assert found.column("a") == ["a\rb_x\N{ROCKET}"]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("t='s'><v>9</v>", "row 2, column 1: there is no shared text '9'"),
        ("><v>x</v>", "row 2, column 1: 'x' is no number"),
        ("t='b'><v>x</v>", "'x' is no value of the kind 'b'"),
        ("><v>1</w>", "broken XML"),
    ],
)
def test_a_cell_that_cannot_be_read_is_named(tmp_path: Path, cell: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        read_cells(tmp_path, cell)


def test_a_cell_in_the_last_corner_takes_no_memory(tmp_path: Path) -> None:
    corner = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SourceError, match="row 1,048,576 has a value in column 16384"):
        read(XlsxReader(), book(tmp_path, HEAD + corner), tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_entities_that_unpack_are_refused(tmp_path: Path) -> None:
    path = book(tmp_path, HEAD)
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    parts["xl/sharedStrings.xml"] = b'<!DOCTYPE a [<!ENTITY b "ha">]><sst><si><t>&b;</t></si></sst>'
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    with pytest.raises(SourceError, match="document type"):
        read(XlsxReader(), path, tmp_path)


def test_an_archive_that_is_no_workbook_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.csv", "a\n1\n")
    with pytest.raises(SourceError, match="no XLSX workbook"):
        read(XlsxReader(), path, tmp_path)
