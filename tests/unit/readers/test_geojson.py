"""The GeoJSON reader: layouts, kinds, ids, what it mends and says, and what it refuses."""

import json
import tarfile
from pathlib import Path

import pytest
import shapely
from tests.fakes.geojson import collection, feature, read

from ploti.errors import SourceError
from ploti.server.adapters.readers import geojson, json_columns

POINT = {"type": "Point", "coordinates": [-81.5, 28.25]}
COUNTRIES = Path(__file__).parents[4] / "shared" / "data" / "world_countries_50m.tar.xz"


def refusal(text: bytes, folder: Path, **settings: object) -> str:
    with pytest.raises(SourceError) as caught:
        read(text, folder, **settings)
    assert "\n" not in caught.value.detail
    return caught.value.detail


def geometry(kind: str, coordinates: object) -> dict[str, object]:
    return {"type": kind, "coordinates": coordinates}


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"FeatureCollection","features":[%s,%s]}',
        b'\xef\xbb\xbf{ "features" : [\r\n%s\r\n,\r\n%s\r\n] , "type" : "FeatureCollection" }\r\n',
        b'{"name":"x","bbox":[1,2,3,4],"type":"FeatureCollection","features":[%s , %s],"more":{}}',
        b'{"type":"FeatureCollection","crs":null,"features":[%s\t,%s]}\n\n',
    ],
)
def test_any_layout_of_a_collection_is_read(text: bytes, tmp_path: Path) -> None:
    one = json.dumps(feature(POINT, properties={"a": 1}), indent=2).encode()
    two = json.dumps(feature(properties={"a": 2, "b": "},{"})).encode()
    found = read(text % (one, two), tmp_path)
    assert found.rows == [{"a": "1", "b": None}, {"a": "2", "b": "},{"}]
    assert found.geometries == [shapely.to_wkb(shapely.Point(-81.5, 28.25)), None]
    assert found.table.geometry is not None
    assert (found.table.geometry.crs, found.table.geometry.types) == ("EPSG:4326", ["Point"])


def test_a_collection_without_features_is_an_empty_table(tmp_path: Path) -> None:
    found = read(collection(), tmp_path)
    assert (found.rows, found.table.rows, found.kinds) == ([], 0, {})


@pytest.mark.parametrize(
    "beside",
    [
        {"exceededTransferLimit": True},
        {"properties": {"exceededTransferLimit": True}},
        {"numberMatched": 9, "numberReturned": 1},
        {"totalFeatures": 9},
        {"links": [{"rel": "self", "href": "/1"}, {"rel": "next", "href": "/2"}]},
    ],
)
def test_one_page_of_a_service_is_not_taken_for_all_of_it(
    beside: dict[str, object], tmp_path: Path
) -> None:
    whole = {"type": "FeatureCollection", "features": [feature()]}
    for text in (whole | beside, beside | whole):
        assert "more" in (said := refusal(json.dumps(text).encode(), tmp_path)) or "of 9" in said


def test_a_service_that_gave_all_of_it_may_say_so(tmp_path: Path) -> None:
    said = {"numberMatched": 1, "totalFeatures": "unknown", "links": [{"rel": "self"}]}
    text = {"type": "FeatureCollection", "features": [feature()]} | said
    assert len(read(json.dumps(text).encode(), tmp_path).rows) == 1


def test_numbers_keep_their_text_and_kinds_are_those_of_json(tmp_path: Path) -> None:
    text = (
        b'{"type":"FeatureCollection","features":[{"type":"Feature","geometry":null,"properties":'
        b'{"big":12345678901234567890,"price":1.50,"tiny":1e-7,"yes":true,"name":"007","when":""}}'
        b',{"type":"Feature","geometry":null,"properties":{"big":-1,"price":2,"yes":false}}]}'
    )
    found = read(text, tmp_path)
    assert found.rows == [
        {
            "big": "12345678901234567890",
            "price": "1.50",
            "tiny": "1e-7",
            "yes": "true",
            "name": "007",
            "when": "",
        },
        {"big": "-1", "price": "2", "tiny": None, "yes": "false", "name": None, "when": None},
    ]
    kinds = ["integer", "number", "number", "boolean", "string", "string"]
    assert list(found.kinds.values()) == kinds


def test_a_property_that_the_last_feature_is_the_first_to_carry_is_a_column(tmp_path: Path) -> None:
    """Case A16, as GeoJSON."""
    features = [feature(properties={"permit_no": f"E-{number}"}) for number in range(29)]
    features.append(feature(properties={"permit_no": "E-29", "closed_on": "2024-01-02"}))
    found = read(collection(*features), tmp_path)
    assert list(found.kinds) == ["permit_no", "closed_on"]
    assert [row["closed_on"] for row in found.rows] == [None] * 29 + ["2024-01-02"]


def test_columns_that_come_late_keep_the_order_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geojson, "_BATCH_ROWS", 7)
    features = [feature(properties={"n": n, f"p{n // 100}": n}) for n in range(1000)]
    found = read(collection(*features), tmp_path)
    assert [row["n"] for row in found.rows] == [str(n) for n in range(1000)]
    assert found.rows[950]["p9"] == "950"
    assert found.rows[950]["p0"] is None


def test_scalars_of_several_kinds_are_texts(tmp_path: Path) -> None:
    rows = [{"a": "A-17"}, {"a": 7}, {"a": True}, {"a": 1.5}, {"a": None}]
    found = read(collection(*(feature(properties=row) for row in rows)), tmp_path)
    assert [row["a"] for row in found.rows] == ["A-17", "7", "true", "1.5", None]
    assert found.kinds == {"a": "string"}


def test_nested_values_are_json_and_make_the_texts_beside_them_json_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geojson, "_BATCH_ROWS", 1)
    rows = [{"a": "x"}, {"a": {"k": [1.0, 20000000000000000001]}}, {"a": 5}]
    text = collection(*(feature(properties=row) for row in rows))
    found = read(text, tmp_path)
    assert [row["a"] for row in found.rows] == ['"x"', '{"k": [1.0, 20000000000000000001]}', "5"]
    assert found.kinds == {"a": "json"}
    as_text = read(text, tmp_path, columns={"a": "string"})
    assert [row["a"] for row in as_text.rows] == ["x", '{"k": [1.0, 20000000000000000001]}', "5"]
    assert as_text.kinds == {"a": "string"}


def test_a_column_declared_as_json_holds_json_whatever_comes(tmp_path: Path) -> None:
    rows = [{"a": "x"}, {"a": 'say "hi"'}]
    text = collection(*(feature(properties=row) for row in rows))
    found = read(text, tmp_path, columns={"a": "json"})
    assert [row["a"] for row in found.rows] == ['"x"', '"say \\"hi\\""']
    assert found.kinds == {"a": "json"}


def test_the_id_of_a_feature_is_the_first_column(tmp_path: Path) -> None:
    features = [feature(id="036", properties={"a": 1}), feature(id=9, properties={}), feature()]
    found = read(collection(*features), tmp_path)
    assert list(found.kinds) == ["id", "a"]
    assert [row["id"] for row in found.rows] == ["036", "9", None]
    assert found.findings == {}


def test_a_property_called_id_is_the_column_and_the_member_is_left_out_with_a_finding(
    tmp_path: Path,
) -> None:
    features = [
        feature(id="layer.1", properties={"id": 7}),
        feature(id=8, properties={"id": 8}),
        feature(id="layer.3", properties={}),
    ]
    found = read(collection(*features), tmp_path)
    assert found.kinds == {"id": "integer"}
    assert [row["id"] for row in found.rows] == ["7", "8", None]
    assert found.findings == {"feature_id_left_out": 2}


def test_what_strict_json_or_a_database_refuses_is_mended_and_counted(tmp_path: Path) -> None:
    """Case D10: NUL removed, half a surrogate pair replaced, an emoji and a bell kept."""
    text = (
        rb'{"type":"FeatureCollection","features":[{"type":"Feature","geometry":null,'
        rb'"properties":{"nul":"ab\u0000cd","half":"x\ud800y","bell":"\u0007",'
        rb'"pair":"\ud83d\ude80","not":"\\u0000","bare":NaN,"far":-Infinity,'
        rb'"in":{"k":"\u0000\udc00"},"word":"NaN"}}]}'
    )
    found = read(text, tmp_path)
    assert found.rows == [
        {
            "nul": "abcd",
            "half": "x�y",
            "bell": "\a",
            "pair": "\N{ROCKET}",
            "not": "\\u0000",
            "bare": None,
            "far": None,
            "in": r'{"k":"\ufffd"}',
            "word": "NaN",
        }
    ]
    assert found.findings == {"nul_removed": 2, "surrogate_replaced": 2, "not_a_number": 2}
    assert found.table.findings[0].examples == ["feature 1"]


def test_geometries_without_numbers_are_null_and_counted(tmp_path: Path) -> None:
    """Case A09: missing, null and NaN coordinates keep their records."""
    text = collection(
        feature(geometry("Point", [float("nan"), float("nan")]), properties={"a": 1}),
        feature(geometry("Point", [None, None]), properties={"a": 2}),
        feature(None, properties={"a": 3}),
        {"type": "Feature", "properties": {"a": 4}},
        feature(POINT, properties={"a": 5}),
    )
    found = read(text, tmp_path)
    assert [row["a"] for row in found.rows] == list("12345")
    assert [shape is None for shape in found.geometries] == [True, True, True, True, False]
    assert found.findings == {"no_coordinates": 2, "not_a_number": 2}


def test_open_rings_are_closed_and_further_numbers_dropped_with_findings(tmp_path: Path) -> None:
    text = collection(
        feature(geometry("Polygon", [[[0, 0], [1, 0], [1, 1]]])),
        feature(geometry("Point", [1, 2, 3, 4])),
    )
    found = read(text, tmp_path)
    shapes = shapely.from_wkb(found.geometries)
    assert [shape.wkt for shape in shapes] == [
        "POLYGON ((0 0, 1 0, 1 1, 0 0))",
        "POINT Z (1 2 3)",
    ]
    assert found.findings == {"numbers_dropped": 1, "ring_closed": 1}
    assert found.table.geometry is not None
    assert found.table.geometry.types == ["Point Z", "Polygon"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'{"type":"Feature","geometry":null,"properties":{"a":1,"b":2,"a" :3}}', "a"),
        (b'{"type":"Feature","geometry":null,"properties":{"a":{"c":1,"c":2}}}', "c"),
        (
            b'{"type":"Feature","properties":{"a":1},"geometry":null,"properties":{"a":2}}',
            "properties",
        ),
    ],
)
def test_a_member_that_stands_twice_is_told_by_name(tmp_path: Path, text: bytes, name: str) -> None:
    plain = json.dumps(feature(properties={"a": {"c": '":"'}, "b": '"a":1'})).encode()
    found = read(b'{"type":"FeatureCollection","features":[%s,%s]}' % (plain, text), tmp_path)
    assert found.findings == {"member_repeated": 1}
    [finding] = found.table.findings
    assert finding.examples == [f"feature 2: '{name}'"]


def test_members_beside_the_properties_are_left_out_with_a_finding(tmp_path: Path) -> None:
    found = read(collection(feature(bbox=[1, 2, 3, 4]), feature(title="x")), tmp_path)
    assert found.findings == {"member_left_out": 1}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"type": "Point"}, "its type is 'Point', and only a Feature"),
        ({"properties": [1]}, "Expected `object | null`, got `array`"),
        ({"id": True}, "its id is neither a text nor a number"),
        ({"geometry": {"type": "Circle"}}, "'Circle' is no type of geometry"),
        ({"geometry": {"type": "Point"}}, "its Point has no coordinates"),
        ({"geometry": "POINT (1 2)"}, "got `str`"),
        ({"geometry": geometry("Point", ["1", "2"])}, "wrong coordinates"),
        ({"geometry": geometry("Point", [1])}, "positions of 1 numbers"),
        ({"geometry": geometry("LineString", [[0, 0], [1, 1, 1]])}, "positions of 2 and 3 numbers"),
        ({"geometry": geometry("LineString", [[0, 0]])}, "a single position"),
        ({"geometry": geometry("Polygon", [[[0, 0], [1, 1]]])}, "a ring of 3 positions"),
        ({"crs": {"type": "name", "properties": {"name": "EPSG:2881"}}}, "a crs of its own"),
        ({"attributes": {}}, "this is Esri JSON"),
        ({"properties": {"a": [[]] * 2}}, None),
    ],
)
def test_a_feature_that_cannot_be_read_is_named_with_its_line_and_the_reason(
    changed: dict[str, object], reason: str | None, tmp_path: Path
) -> None:
    text = collection(feature(POINT), feature(**{"geometry": POINT} | changed), feature(POINT))
    text = text.replace(b"}, {", b"},\n{")
    if reason is None:
        assert read(text, tmp_path).table.rows == 3
        return
    detail = refusal(text, tmp_path)
    assert detail.startswith("feature 2 (line 2) cannot be read: ")
    assert reason in detail


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[]", "line 1 (byte 1): a FeatureCollection, which begins with '{', is expected"),
        (b"{}", "has no type"),
        (b'{"type":"Feature","properties":{}}', "the type 'Feature'"),
        (b'{"type":"Topology","features":[]}', "the type 'Topology'"),
        (b'{"type":"FeatureCollection"}', "no list of features"),
        (b'{"type":"FeatureCollection","features":{}}', "one list of features is expected"),
        (b'{"type":"FeatureCollection","features":[],"features":[]}', "one list of features"),
        (b'{"type":"FeatureCollection","features":[5]}', "Expected `object`, got `int`"),
        (b'{"type":"FeatureCollection","features":[{"type":"Feature"},]}', "(byte 60): a value"),
        (b'{"type":"FeatureCollection","features":[{"type":"Feature"} {}]}', "']' is missing"),
        (b'{"type":"FeatureCollection","features":[]} {}', "something follows after the end"),
        (b'{"type":"FeatureCollection" "features":[]}', "line 1 (byte 29): '}' is missing"),
        (b'{"type":"FeatureCollection","features":[],"a":1.}', "the member 'a'"),
        (b'{\n"type":"FeatureCollection",\nfeatures:[]}', "line 3 (byte 31): a name in quotes"),
    ],
)
def test_a_text_that_is_no_collection_is_refused_with_the_place(
    text: bytes, reason: str, tmp_path: Path
) -> None:
    assert reason in refusal(text, tmp_path)


@pytest.mark.parametrize("fault", [b"\xff", b"\xed\xa0\x80", b"\x00", b"\n", b"\\x"])
def test_stray_bytes_fail_with_the_place_and_never_become_replacement_letters(
    fault: bytes, tmp_path: Path
) -> None:
    """Case A22, as GeoJSON."""
    text = collection(feature(), feature(properties={"a": "here"})).replace(b"here", fault)
    assert refusal(text, tmp_path).startswith("feature 2 (line 1) cannot be read: ")


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    text = collection(feature(POINT, properties={"a": "x"}), feature(POINT))
    for end in range(1, len(text)):
        assert "cut short" in refusal(text[:end], tmp_path)


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    text = collection(feature(properties={"a": 0})).replace(b"0}", b"[" * 5000 + b"]" * 5000 + b"}")
    assert "nested too deep" in refusal(text, tmp_path)


@pytest.mark.parametrize(
    ("crs", "expected"),
    [
        ({"properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}, "OGC:CRS84"),
        ({"properties": {"name": "urn:ogc:def:crs:OGC::CRS84"}}, "OGC:CRS84"),
        ({"properties": {"name": "http://www.opengis.net/def/crs/OGC/1.3/CRS84"}}, "OGC:CRS84"),
        ({"properties": {"name": "EPSG:4326"}}, "EPSG:4326"),
        ({"properties": {"name": "urn:ogc:def:crs:EPSG::2236"}}, "EPSG:2236"),
        ({"properties": {"name": "urn:ogc:def:crs:EPSG:6.9:102100"}}, "EPSG:3857"),
        ({"properties": {"code": 2236}}, "EPSG:2236"),
        (None, "EPSG:4326"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_legacy_crs_member_is_obeyed_wherever_it_stands(
    crs: object, expected: str, first: bool, tmp_path: Path
) -> None:
    whole = {"type": "FeatureCollection", "features": [feature(POINT)]}
    text = json.dumps({"crs": crs} | whole if first else whole | {"crs": crs}).encode()
    found = read(text, tmp_path).table
    assert found.geometry
    assert found.geometry.crs == expected


@pytest.mark.parametrize(
    ("crs", "reason"),
    [
        ({"properties": {"name": "urn:ogc:def:crs:EPSG::43260"}}, "EPSG:43260 is not known"),
        ({"type": "link", "properties": {"href": "http://example.com/crs/42"}}, "names no"),
        ("EPSG:3857", "names no reference system"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_crs_member_that_names_none_is_refused(
    crs: object, reason: str, first: bool, tmp_path: Path
) -> None:
    whole = {"type": "FeatureCollection", "features": [feature(POINT)]}
    text = json.dumps({"crs": crs} | whole if first else whole | {"crs": crs}).encode()
    assert reason in refusal(text, tmp_path)


def test_geometry_declared_from_columns_is_refused(tmp_path: Path) -> None:
    points = {"longitude": "lon", "latitude": "lat"}
    detail = refusal(collection(feature(POINT)), tmp_path, geometry=points)
    assert "GeoJSON brings its own geometry" in detail


def test_data_where_names_belong_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_columns, "MOST_COLUMNS", 50)
    features = [feature(properties={f"key {number}": 1}) for number in range(60)]
    assert "more than 50 columns" in refusal(collection(*features), tmp_path)


@pytest.mark.skipif(not COUNTRIES.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize("state", ["v01_1.0.0.geojson", "v05_2.0.0.geojson"])
def test_a_real_state_is_read_as_it_stands(state: str, tmp_path: Path) -> None:
    with tarfile.open(COUNTRIES) as archive:
        (name,) = [each for each in archive.getnames() if each.endswith(state)]
        file = archive.extractfile(name)
        assert file is not None
        text = file.read()
    features = json.loads(text)["features"]
    found = read(text, tmp_path)
    assert found.table.rows == len(features) == 241
    for source, row, wkb in zip(features, found.rows, found.geometries, strict=True):
        own = {name: value for name, value in row.items() if name != "id"}
        assert {k: v for k, v in own.items() if v is not None} == source["properties"]
        assert row["id"] == source.get("id")
        shape = shapely.from_geojson(json.dumps(source["geometry"]))
        assert wkb == shapely.to_wkb(shape, flavor="iso", byte_order=1)
