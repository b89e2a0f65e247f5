"""Declarations: what is taken, what is refused and how, and when two of them are the same."""

import json
from contextlib import nullcontext

import pytest
import yaml

from ploti.errors import InvalidInput, SourceError
from ploti.server.sources.declaration import (
    Declaration,
    Holds,
    Points,
    check_format,
    parse_declaration,
)
from ploti.server.sources.source import Source, gives_rows, resource_call
from ploti.server.sources.written import as_written, canonical, changed_settings, reading_key

WHOLE = """
id: ds_orange_fl_building_permits
title: Building permits, Orange County, Florida
place: us/fl/orange
topic: permits/building
license: CC-BY-4.0
attribution: Orange County, Florida
source: {kind: http, url: "https://data.example.org/permits.csv", format: csv}
key: [permit_number]
geometry: {longitude: lon, latitude: lat, crs: "EPSG:4326", precision: 1e-6}
columns: {parcel_id: string, fee: "decimal(8,2)"}
holds: {min_row_ratio: 0.5}
continuation: off
"""
LEAST = {"id": "ds_a", "title": "A", "place": "us", "topic": "roads"}


def whole(**changed: object) -> dict[str, object]:
    return yaml.safe_load(WHOLE) | changed


def faults(raw: dict[str, object]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        parse_declaration(raw)
    assert "\n" not in caught.value.detail
    return {fault.field: fault.message for fault in caught.value.errors}


def test_a_declaration_as_operators_write_it_is_taken_with_every_setting() -> None:
    parsed = parse_declaration(whole())
    assert parsed.source == Source(
        kind="http", url="https://data.example.org/permits.csv", format="csv"
    )
    assert parsed.geometry == Points(longitude="lon", latitude="lat")
    assert parsed.precision == 1e-6
    assert parsed.columns == {"parcel_id": "string", "fee": "decimal(8,2)"}
    assert (parsed.key, parsed.holds.min_row_ratio) == (["permit_number"], 0.5)
    assert parsed.continuation == "off"


def test_only_id_title_place_and_topic_are_needed() -> None:
    parsed = parse_declaration(LEAST)
    assert parsed == Declaration(id=parsed.id, title="A", place="us", topic="roads")
    assert faults({}) == dict.fromkeys(("id", "title", "place", "topic"), "is missing")


@pytest.mark.parametrize("raw", [whole(), LEAST, whole(holds="off"), whole(geometry=None)])
def test_what_is_written_back_is_the_same_declaration(raw: dict[str, object]) -> None:
    parsed = parse_declaration(raw)
    assert parse_declaration(as_written(parsed)) == parsed
    assert parse_declaration(json.loads(canonical(parsed))) == parsed


def test_off_is_taken_as_yaml_reads_it_and_as_a_text() -> None:
    for off in (False, "off"):
        parsed = parse_declaration(whole(holds=off, geometry={"precision": off}))
        assert (parsed.holds.min_row_ratio, parsed.geometry, parsed.precision) == (None, None, None)
        each = dict.fromkeys(Holds.__struct_fields__, off)
        assert parse_declaration(whole(holds=each)).holds == parsed.holds
        one = parse_declaration(whole(holds={"max_extent_shift": off})).holds
        assert one == Holds(max_extent_shift=None)


def test_every_fault_is_named_with_its_setting() -> None:
    found = faults(whole(title=" ", place="US/FL", keys=["a"], source={"kind": "ftp"}))
    assert found == {
        "title": "must not be empty",
        "place": "'US/FL' must be lower-case words joined by slashes, such as us/fl/orange",
        "keys": "is not a setting: did you mean key?",
        "source.kind": "'ftp' is not a kind: file or http or arcgis or socrata or ckan",
        "source.url": "is missing, beside kind",
    }


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"id": "permits"}, "id", "'permits' is no dataset id"),
        ({"title": 5}, "title", "must be a text, not 5: put it in quotes"),
        ({"title": "a\nb"}, "title", "must be one line"),
        ({"key": "permit"}, "key", "must be a list of texts"),
        ({"key": ["a", False]}, "key", "must be a text, not False"),
        ({"key": ["a", "a "]}, "key", "names a twice"),
        ({"columns": {"a": "integer"}}, "columns.a", "'integer' is not a type of column"),
        ({"columns": {"a": "geometry"}}, "columns.a", "'geometry' is not a type of column"),
        ({"columns": {"a": "decimal(39,0)"}}, "columns.a", "is not a type of column"),
        ({"columns": {" a": "string"}}, "columns. a", "outer blanks"),
        ({"columns": ["a"]}, "columns", "must be a mapping"),
        ({"holds": {"min_row_ratio": 1.1}}, "holds.min_row_ratio", "from 0 to 1"),
        ({"holds": {"min_row_ratio": True}}, "holds.min_row_ratio", "must be a number"),
        ({"holds": True}, "holds", "must be a mapping"),
        ({"check_every": "1 day"}, "check_every", "with d, h, m or s, such as 24h"),
        ({"check_every": "0h"}, "check_every", "must be a whole number"),
        ({"check_every": "367d"}, "check_every", "over a year"),
        ({"check_every": 24}, "check_every", "must be a text"),
        ({"rename": {"a": ""}}, "rename.a", "must not be empty"),
        ({"rename": {" a": "b"}}, "rename. a", "outer blanks"),
        ({"null_values": "-"}, "null_values", "must be a list of texts"),
        ({"null_values": [0]}, "null_values", "put each in quotes"),
        ({"trim": "yes"}, "trim", "must be true or false"),
        ({"timezone": "New York"}, "timezone", "is not a time zone"),
        ({"timezone": "../x"}, "timezone", "is not a time zone"),
        ({"compare": {"x": 0}}, "compare.x", "above 0"),
        ({"ignore_changes": ["a", "a"]}, "ignore_changes", "names a twice"),
        ({"key": ["a"], "ignore_changes": ["a"]}, "ignore_changes", "in the key"),
        ({"key": ["a"], "compare": {"a": 1}}, "compare", "in the key"),
        ({"bad_rows": "drop"}, "bad_rows", "fail or set_aside"),
        ({"source": {"format": "json"}, "bad_rows": "set_aside"}, "bad_rows", "not for json"),
        ({"repeated_keys": "drop"}, "repeated_keys", "hold or number"),
        ({"continuation": "maybe"}, "continuation", "review or auto or off"),
        ({"paused": "yes"}, "paused", "must be true or false"),
        ({"holds": {"max_extent_shift": -1}}, "holds.max_extent_shift", "a number from 0 on"),
        ({"holds": {"max_id_turnover": 2}}, "holds.max_id_turnover", "from 0 to 1"),
        ({"geometry": {"longitude": "x"}}, "geometry.latitude", "is missing, beside longitude"),
        ({"geometry": {"longitude": "x", "latitude": "x"}}, "geometry.latitude", "so is longitude"),
        ({"geometry": {"precision": 5e-9}}, "geometry.precision", "power of ten"),
        ({"geometry": {"crs": "EPSG:99999"}}, "geometry.crs", "not a known reference system"),
        ({"geometry": {"crs": "EPSG:4978"}}, "geometry.crs", "not a system of two coordinates"),
        ({"geometry": {"crs": "florida"}}, "geometry.crs", "not the name of a reference system"),
        ({"source": {"url": "/a.csv"}}, "source.kind", "is missing, beside url"),
        ({"source": {"kind": "file", "url": "a.csv"}}, "source.url", "must be an absolute path"),
        ({"source": {"kind": "file", "url": "file://x/a"}}, "source.url", "another machine"),
        ({"source": {"kind": "http", "url": "ftp://a.org/b"}}, "source.url", "such as https://"),
        ({"source": {"kind": "http", "url": "https://u:p@a.org"}}, "source.url", "a password"),
        ({"source": {"kind": "http", "url": "https://a.org/#b"}}, "source.url", "no fragment"),
        ({"source": {"kind": "http", "url": "https://a.org:x/"}}, "source.url", "not an address"),
        (
            {"source": {"format": "doc"}},
            "source.format",
            "'doc' is not a format: csv or tsv",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(
    changed: dict[str, object], field: str, message: str
) -> None:
    found = faults(whole(**changed))
    assert list(found) == [field]
    assert message in found[field]


@pytest.mark.parametrize(
    ("source", "field", "message"),
    [
        (
            {"kind": "arcgis", "url": "https://a.org/arcgis/rest/services/P/FeatureServer"},
            "source.url",
            "must be a layer's address",
        ),
        (
            {"kind": "ckan", "url": "https://a.org/dataset/permits"},
            "source.url",
            "must be a CKAN's",
        ),
        (
            {"kind": "socrata", "url": "https://a.org/resource/a.json", "format": "json"},
            "source.format",
            "is not for socrata, which gives rows",
        ),
        (
            {"kind": "http", "url": "https://a.org/a", "length_check": "on"},
            "source.length_check",
            "can only be off",
        ),
        ({"kind": "file", "url": "/a", "length_check": "off"}, "source.length_check", "on the web"),
        ({"kind": "file", "url": "/a", "credential": "A"}, "source.credential", "on the web"),
        (
            {"kind": "http", "url": "https://a.org/a", "credential": "PLOTI_API_KEY_HOSTS"},
            "source.credential",
            "is not the name of a credential",
        ),
        (
            {"kind": "http", "url": "https://a.org/a", "credential": "../home"},
            "source.credential",
            "is not the name of a credential",
        ),
    ],
)
def test_a_source_that_cannot_be_asked_so_is_a_fault(
    source: dict[str, object], field: str, message: str
) -> None:
    found = faults(whole(source=source))
    assert list(found) == [field]
    assert message in found[field]


@pytest.mark.parametrize(
    ("kind", "url", "rows"),
    [
        ("arcgis", "https://a.org/arcgis/rest/services/P/MapServer/12/", True),
        ("arcgis", "https://a.org/s/FeatureServer/0/query?where=A%3D1", True),
        ("ckan", "https://a.org/api/3/action/datastore_search?resource_id=1", True),
        ("ckan", "https://a.org/api/3/action/resource_show?id=1", False),
        ("ckan", "https://a.org/en/dataset/permits/resource/0a-1", False),
        ("http", "https://a.org/a.csv", False),
    ],
)
def test_the_kind_and_the_address_tell_rows_from_files(kind: str, url: str, rows: bool) -> None:
    source = parse_declaration(whole(source={"kind": kind, "url": url})).source
    assert gives_rows(source.kind, source.url) is rows


def test_a_page_of_a_resource_leads_to_what_its_ckan_tells_of_it() -> None:
    call = "https://a.org/data/api/3/action/resource_show?id=0a-1"
    assert resource_call("https://a.org/data/en/dataset/permits/resource/0a-1") == call
    assert resource_call("https://a.org/data/dataset/permits/resource/0a-1/") == call
    assert resource_call(call) == call


def test_how_a_source_is_asked_is_no_part_of_how_its_bytes_are_read() -> None:
    url = {"kind": "http", "url": "https://a.org/a.csv"}
    asked = parse_declaration(whole(source=url | {"length_check": False, "credential": "A"}))
    assert reading_key(asked) == reading_key(parse_declaration(whole(source=url)))
    assert parse_declaration(as_written(asked)) == asked
    assert as_written(asked)["source"] == url | {"length_check": "off", "credential": "A"}


def test_the_precision_left_out_is_that_of_the_reference_system() -> None:
    assert parse_declaration(whole(geometry={})).precision == 1e-9
    projected = parse_declaration(whole(geometry={"crs": "epsg:2881"}))
    assert (projected.system, projected.precision) == ("EPSG:2881", 1e-4)
    own = parse_declaration(whole(geometry={"crs": "OGC:CRS84", "precision": "off"}))
    assert (own.system, own.precision) == ("EPSG:4326", None)


@pytest.mark.parametrize(
    ("format", "settings"),
    [
        ("gpkg", {"layer": "roads"}),
        ("json", {"layer": "data", "member": "a/b.json"}),
        ("xlsx", {"sheet": "Permits 2024", "header_row": 3}),
        ("csv", {"encoding": "cp1252", "delimiter": ";", "header_row": 2}),
        ("csv", {"delimiter": "\t"}),
        ("shapefile", {"encoding": "latin-1", "member": "roads.shp"}),
    ],
)
def test_what_a_format_leaves_open_is_declared_and_written_back(
    format: str, settings: dict[str, object]
) -> None:
    parsed = parse_declaration(LEAST | {"source": {"format": format, **settings}})
    assert {name: getattr(parsed.source, name) for name in settings} == settings
    assert parse_declaration(as_written(parsed)) == parsed
    plain = parse_declaration(LEAST | {"source": {"format": format}})
    assert reading_key(plain) != reading_key(parsed)


@pytest.mark.parametrize(
    ("source", "field", "message"),
    [
        (
            {"format": "csv", "layer": "a"},
            "source.layer",
            "is not for csv, but for gpkg, shapefile",
        ),
        ({"format": "csv", "sheet": "a"}, "source.sheet", "is not for csv, but for xlsx"),
        ({"format": "csv", "header_row": 0}, "source.header_row", "a whole number from 1 on"),
        ({"format": "csv", "header_row": True}, "source.header_row", "a whole number from 1 on"),
        ({"format": "csv", "encoding": "utf-9"}, "source.encoding", "'utf-9' is not an encoding"),
        ({"format": "csv", "encoding": "hex"}, "source.encoding", "'hex' is not an encoding"),
        ({"format": "csv", "delimiter": ";;"}, "source.delimiter", "must be one character"),
        ({"format": "csv", "delimiter": '"'}, "source.delimiter", "must be one character"),
    ],
)
def test_a_setting_that_the_format_does_not_obey_is_refused(
    source: dict[str, object], field: str, message: str
) -> None:
    found = faults(LEAST | {"source": source})
    assert list(found) == [field]
    assert message in found[field]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"source": {"layer": "a"}}, "source.layer is not for csv, but for gpkg"),
        ({"source": {"header_row": 2}}, None),
        ({"bad_rows": "set_aside"}, None),
    ],
)
def test_a_setting_may_stand_without_a_format_and_is_held_against_the_one_that_the_bytes_tell(
    settings: dict[str, object], reason: str | None
) -> None:
    declared = parse_declaration(LEAST | settings)
    with pytest.raises(SourceError, match=reason) if reason else nullcontext():
        check_format(declared, "csv")
    with pytest.raises(SourceError, match="is not for geojson, but for"):
        check_format(declared, "geojson")


def test_geojson_brings_its_own_geometry() -> None:
    found = faults(whole(source={"format": "geojson"}))
    assert "brings its own geometry" in found["geometry"]
    parsed = parse_declaration(whole(source={"format": "geojson"}, geometry={"precision": "1e-7"}))
    assert (parsed.geometry, parsed.precision) == (None, 1e-7)


def test_changes_are_named_by_their_settings() -> None:
    before = parse_declaration(whole())
    after = parse_declaration(whole(title="Permits", columns={"fee": "decimal(8,2)"}, key=None))
    assert changed_settings(before, before) == []
    assert changed_settings(before, after) == ["columns.parcel_id", "key", "title"]
    assert changed_settings(None, parse_declaration(LEAST)) == ["id", "place", "title", "topic"]


def test_a_default_that_is_written_out_is_no_change() -> None:
    written_out = LEAST | {"holds": {"min_row_ratio": 0.7}, "geometry": {"precision": 1e-9}}
    assert canonical(parse_declaration(written_out)) == canonical(parse_declaration(LEAST))


@pytest.mark.parametrize(
    "changed",
    [
        {"title": "Permits"},
        {"place": "us/fl"},
        {"license": None},
        {"holds": "off"},
        {"source": {"kind": "file", "url": "/data/a.csv", "format": "csv"}},
    ],
)
def test_filing_review_and_where_the_bytes_come_from_do_not_change_how_they_are_read(
    changed: dict[str, object],
) -> None:
    assert reading_key(parse_declaration(whole(**changed))) == reading_key(
        parse_declaration(whole())
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"key": ["permit_number", "year"]},
        {"geometry": None},
        {"geometry": {"longitude": "lon", "latitude": "lat", "precision": "off"}},
        {"columns": {}},
        {"continuation": None},
        {"continuation": "auto"},
        {"repeated_keys": "number"},
        {"rename": {"lng": "lon"}},
        {"null_values": [""]},
        {"trim": True},
        {"timezone": "Europe/Vienna"},
        {"ignore_changes": ["seen"]},
        {"compare": {"lat": 1e-6}},
        {"source": {"kind": "http", "url": "https://data.example.org/permits.csv"}},
    ],
)
def test_what_a_build_obeys_changes_how_the_same_bytes_are_read(changed: dict[str, object]) -> None:
    assert reading_key(parse_declaration(whole(**changed))) != reading_key(
        parse_declaration(whole())
    )
