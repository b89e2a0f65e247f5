"""KML: every text as it stands, shapes with their heights, and nothing that explodes."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
import shapely
from tests.unit.readers.reading import Read, read

from ploti.errors import SourceError
from ploti.server.adapters.readers.kml import KmlReader

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<kml xmlns="http://www.opengis.net/kml/2.2"'
    ' xmlns:gx="http://www.google.com/kml/ext/2.2"><Document>'
)
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE kml [<!ENTITY a "haha">'
    + "".join(
        f'<!ENTITY {name} "{f"&{inner};" * 10}">'
        for inner, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]><kml><Placemark><name>&i;</name></Placemark></kml>"
)


def given(folder: Path, body: str) -> Path:
    path = folder / "given.kml"
    path.write_text(f"{HEAD}{body}</Document></kml>", encoding="utf-8")
    return path


def read_kml(folder: Path, body: str, **settings: Any) -> Read:
    return read(KmlReader(), given(folder, body), folder, **settings)


def shape_of(folder: Path, shape: str) -> str | None:
    (wkb,) = read_kml(folder, f"<Placemark>{shape}</Placemark>").column("geometry")
    return None if wkb is None else str(shapely.from_wkb(wkb).wkt)


def test_values_are_texts_as_they_stand(tmp_path: Path) -> None:
    values = ["0012", str(2**63), "12E4", " x ", "2024-01-02T03:04:05+05:30"]
    marks = "".join(
        f'<Placemark><ExtendedData><Data name="a"><value>{value}</value></Data></ExtendedData>'
        "</Placemark>"
        for value in values
    )
    found = read_kml(tmp_path, marks + "<Placemark/>")
    assert found.column("a") == [*values, None]
    assert found.kind("a") == "text"


def test_an_empty_value_is_none_and_bends_no_type(tmp_path: Path) -> None:
    mark = '<Placemark><name/><ExtendedData><Data name="n">{}</Data></ExtendedData></Placemark>'
    found = read_kml(tmp_path, mark.format("<value></value>") + mark.format("<value>7</value>"))
    assert found.column("n") == [None, "7"]
    assert found.column("name") == [None, None]


def test_links_beside_placemarks_are_told(tmp_path: Path) -> None:
    found = read_kml(tmp_path, "<Placemark><name>a</name></Placemark><NetworkLink/>")
    assert [(finding.kind, finding.message) for finding in found.table.findings] == [
        ("link_left_out", "1 links to other documents were not followed")
    ]


def test_a_schema_says_which_fields_are_texts(tmp_path: Path) -> None:
    found = read_kml(
        tmp_path,
        '<Schema name="s"><SimpleField name="a" type="string"/><SimpleField name="b" type="int"/>'
        '</Schema><Placemark id="p1"><name>One &amp; two</name>'
        "<description><![CDATA[<b>x</b>]]></description><TimeSpan><begin>2024-01</begin></TimeSpan>"
        '<ExtendedData><SchemaData schemaUrl="#s"><SimpleData name="a">7</SimpleData>'
        '<SimpleData name="b">8</SimpleData></SchemaData></ExtendedData></Placemark>',
    )
    assert found.names == ["id", "name", "description", "begin", "a", "b"]
    assert list(found.rows[0].values())[:-1] == ["p1", "One & two", "<b>x</b>", "2024-01", "7", "8"]
    assert [found.kind(name) for name in ("name", "a", "b")] == ["string", "string", "text"]


def test_the_sources_name_beside_kmls_own_is_a_column_of_its_own(tmp_path: Path) -> None:
    data = '<ExtendedData><Data name="name"><value>b</value></Data></ExtendedData>'
    table = read_kml(tmp_path, f"<Placemark><name>a</name>{data}</Placemark>").table
    assert [column.source_name for column in table.columns] == ["name", "name"]


@pytest.mark.parametrize(
    ("shape", "wkt"),
    [
        ("<Point><coordinates> -81.5,28.25 </coordinates></Point>", "POINT (-81.5 28.25)"),
        ("<Point><coordinates>1,2,3</coordinates></Point>", "POINT Z (1 2 3)"),
        ("<Point><coordinates/></Point>", "POINT EMPTY"),
        ("<Point><coordinates>1, 2</coordinates></Point>", "POINT (1 2)"),
        (
            "<LineString><coordinates>0,0,5\n1,1\t2,2,7</coordinates></LineString>",
            "LINESTRING Z (0 0 5, 1 1 0, 2 2 7)",
        ),
        (
            (
                "<Polygon><outerBoundaryIs><LinearRing><coordinates>0,0 9,0 9,9 0,0</coordinates>"
                "</LinearRing></outerBoundaryIs><innerBoundaryIs><LinearRing>"
                "<coordinates>5,1 6,1 6,2 5,1</coordinates></LinearRing></innerBoundaryIs>"
                "</Polygon>"
            ),
            "POLYGON ((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1))",
        ),
        (
            (
                "<MultiGeometry><Point><coordinates>1,2</coordinates></Point>"
                "<Point><coordinates>3,4,5</coordinates></Point></MultiGeometry>"
            ),
            "MULTIPOINT Z ((1 2 0), (3 4 5))",
        ),
        (
            (
                "<MultiGeometry><Point><coordinates>1,2</coordinates></Point><LineString>"
                "<coordinates>0,0 1,1</coordinates></LineString></MultiGeometry>"
            ),
            "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (0 0, 1 1))",
        ),
        ("<name>no shape</name>", None),
    ],
)
def test_shapes_are_read_with_their_heights(tmp_path: Path, shape: str, wkt: str | None) -> None:
    assert shape_of(tmp_path, shape) == wkt


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        ("<Point><coordinates>1;2</coordinates></Point>", "'1;2' is no position"),
        ("<Point><coordinates>1,nan</coordinates></Point>", "'1,nan' is no position"),
        ("<Point><coordinates>1,2 3,4</coordinates></Point>", "Point has 2 positions"),
        ("<gx:Track><when>x</when></gx:Track>", "gx:Track, which is not read"),
        ("<description>a <b>x</b></description>", "wrap it in CDATA"),
        ("<Point/><Point/>", "two geometries"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_placemark(
    tmp_path: Path, mark: str, reason: str
) -> None:
    with pytest.raises(SourceError, match=f"placemark 2 cannot be read: .*{reason}"):
        read_kml(tmp_path, f"<Placemark/><Placemark>{mark}</Placemark>")


def test_a_billion_laughs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "laughs.kml"
    path.write_text(LAUGHS, encoding="utf-8")
    with pytest.raises(SourceError, match="document type"):
        read(KmlReader(), path, tmp_path)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<Placemark><name>a</Placemark>", r"line 1: broken XML \(mismatched tag\)"),
        ("<a>" * 300, "nested too deep"),
        ("<NetworkLink/>", "only links to others"),
    ],
)
def test_a_document_that_cannot_be_read_says_why(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        read_kml(tmp_path, body)


def test_a_layer_is_a_folder(tmp_path: Path) -> None:
    body = "".join(
        f"<Folder><name>{name}</name><Placemark><name>{name} 1</name></Placemark></Folder>"
        for name in ("roads", "rivers")
    )
    found = read_kml(tmp_path, body, source={"format": "kml", "layer": "rivers"})
    assert found.column("name") == ["rivers 1"]
    with pytest.raises(SourceError, match="its folders are rivers, roads"):
        read_kml(tmp_path, body, source={"format": "kml", "layer": "rails"})


def test_kmz_is_kml_in_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "given.kmz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(given(tmp_path, "<Placemark><name>a</name></Placemark>"), "doc.kml")
        packed.writestr("files/other.kml", "")
        packed.writestr("files/icon.png", "")
    assert read(KmlReader(), path, tmp_path).column("name") == ["a"]


def test_another_encoding_is_the_one_that_the_document_says(tmp_path: Path) -> None:
    path = tmp_path / "latin.kml"
    head = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    text = f"{head}<kml><Placemark><name>Größe</name></Placemark></kml>"
    path.write_bytes(text.encode("latin-1"))
    assert read(KmlReader(), path, tmp_path).column("name") == ["Größe"]
