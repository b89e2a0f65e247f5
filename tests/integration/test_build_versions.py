"""Builds of small states: what counts as a difference, what is refused, what files there are."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.building import Dataset, check_fold, declare, full_digest, rows_of

from ploti.model.digest import Buckets
from ploti.model.schema import Level, SchemaDocument
from ploti.model.version import Counts
from ploti.model.wire import decode
from ploti.server.build.candidate import Broken, Candidate, FileRole, Unchanged

FIRST = "id,name,units,seen\nb,Bo,1,2026-01-01\na,,2,\nc,Cy,3,2026-01-03\n"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(tmp_path, declare(key=["id"]))


def records(dataset: Dataset, built: Candidate) -> dict[object, dict[str, object]]:
    return {row["id"]: row for row in rows_of(dataset.path(built, FileRole.SNAPSHOT))}


def counts(added: int = 0, changed: int = 0, removed: int = 0) -> Counts:
    return Counts(added=added, changed=changed, removed=removed)


def refused(dataset: Dataset, text: str | bytes, name: str = "state.csv") -> str:
    built = dataset.build(dataset.write(text, name=name))
    assert isinstance(built, Broken), built
    assert "\n" not in built.detail
    return built.detail


def test_a_first_version_numbers_its_records_by_key_and_has_no_changes_file(
    dataset: Dataset,
) -> None:
    """S-15: counts are the rows added, and there is nothing to apply."""
    built = dataset.release_text(FIRST)
    assert built.counts == counts(added=3)
    assert [(file.role, file.format) for file in built.files] == [
        (FileRole.SNAPSHOT, "parquet"),
        (FileRole.SNAPSHOT, "csv"),
        (FileRole.SCHEMA, "json"),
    ]
    rows = rows_of(dataset.path(built, FileRole.SNAPSHOT))
    assert [row["_ploti_record_id"] for row in rows] == [
        f"rec_00000001000000000{ordinal}" for ordinal in range(3)
    ]
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert [(column.name, column.type, column.nullable) for column in built.schema.columns] == [
        ("id", "string", False),
        ("name", "string", True),
        ("units", "int64", False),
        ("seen", "date", True),
    ]
    assert Buckets.from_wire(built.buckets) == full_digest(
        dataset.path(built, FileRole.SNAPSHOT), built
    )


def test_a_later_version_keeps_ids_and_lists_what_changed_r108_r109_r110(dataset: Dataset) -> None:
    first = dataset.release_text(FIRST)
    before = dataset.path(first, FileRole.SNAPSHOT)
    ids = {key: row["_ploti_record_id"] for key, row in records(dataset, first).items()}
    built = dataset.release_text(
        "id,name,units,seen\nd,Di,4,\nc,Cy,5,2026-01-03\nb,Bo,1,2026-01-01\n"
    )
    assert built.counts == counts(added=1, changed=1, removed=1)
    now = records(dataset, built)
    assert now["b"]["_ploti_record_id"] == ids["b"]
    assert now["c"]["_ploti_record_id"] == ids["c"]
    assert now["d"]["_ploti_record_id"] == "rec_000000020000000000"
    changes = rows_of(dataset.path(built, FileRole.CHANGES))
    assert [
        (row["_ploti_op"], row["_ploti_change"], row["id"], row["units"]) for row in changes
    ] == [
        ("delete", "removed", None, None),
        ("upsert", "changed", "c", 5),
        ("upsert", "added", "d", 4),
    ]
    assert [list(row)[:4] for row in changes[:1]] == [
        ["_ploti_record_id", "_ploti_op", "_ploti_change", "id"]
    ]
    after = dataset.path(built, FileRole.SNAPSHOT)
    check_fold(before, dataset.path(built, FileRole.CHANGES), after)
    assert Buckets.from_wire(built.buckets) == full_digest(after, built)


@pytest.mark.parametrize(
    "text",
    [
        "id,name,units,seen\nc,Cy,3,2026-01-03\nb,Bo,1,2026-01-01\na,,2,\n",
        "units,seen,id,name\n1,2026-01-01,b,Bo\n2,,a,\n3,2026-01-03,c,Cy\n",
        'id,name,units,seen\nb,"Bo",1.0,2026-01-01\na,"",2,\nc,Cy,3.00,2026-01-03\n',
        "\ufeffid,name,units,seen\r\nb,Bo,1,2026-01-01\r\n\r\na,,2,\r\nc,Cy,3,2026-01-03",
    ],
    ids=["rows reordered", "columns reordered", "values written otherwise", "line ends and blanks"],
)
def test_the_same_records_told_otherwise_are_no_version(dataset: Dataset, text: str) -> None:
    first = dataset.release_text(FIRST)
    built = dataset.build_text(text)
    assert isinstance(built, Unchanged)
    assert built.state_digest == first.state_digest


def test_the_digest_of_a_state_tells_it_from_another(dataset: Dataset) -> None:
    dataset.release_text(FIRST)
    states = [FIRST.replace("Cy", name) for name in ("Ci", "Ci", "Co")]
    built = [dataset.build_text(text) for text in states]
    assert isinstance(built[0], Candidate)
    first, again, other = (result.state_digest for result in built)
    assert first == again != other


def test_a_new_column_changes_the_records_that_have_a_value_in_it(dataset: Dataset) -> None:
    """R-056: a MINOR change is applied; a column that one side lacks reads as null there."""
    first = dataset.release_text(FIRST)
    before = dataset.path(first, FileRole.SNAPSHOT)
    built = dataset.release_text(
        "id,floors,name,units,seen\nb,,Bo,1,2026-01-01\na,7,,2,\nc,,Cy,3,2026-01-03\n"
    )
    assert built.counts == counts(changed=1)
    assert built.schema_change is not None
    assert built.schema_change.level is Level.MINOR
    assert built.schema_change.to == "1.1"
    assert [column.name for column in built.schema.columns][-1] == "floors"
    assert records(dataset, built)["a"]["floors"] == 7
    check_fold(
        before, dataset.path(built, FileRole.CHANGES), dataset.path(built, FileRole.SNAPSHOT)
    )


def test_a_minor_change_alone_is_a_version_with_a_changes_file_without_rows(
    dataset: Dataset,
) -> None:
    """S-13."""
    dataset.release_text(FIRST)
    built = dataset.release_text(
        "id,name,units,seen,note\nb,Bo,1,2026-01-01,\na,,2,,\nc,Cy,3,2026-01-03,\n"
    )
    assert built.counts == counts()
    assert rows_of(dataset.path(built, FileRole.CHANGES)) == []
    assert dataset.path(built, FileRole.CHANGES, "csv").read_text(encoding="utf-8") == (
        "_ploti_record_id,_ploti_op,_ploti_change,id,name,units,seen,note\n"
    )
    assert built.schema.column("note").type == "string"
    again = dataset.build_text(
        "id,name,units,seen,note\nb,Bo,1,2026-01-01,\na,,2,,7\nc,Cy,3,2026-01-03,\n"
    )
    assert isinstance(again, Candidate)
    assert again.schema.column("note").type == "string"


def test_a_column_that_may_be_null_now_is_a_minor_change(dataset: Dataset) -> None:
    dataset.release_text(FIRST)
    built = dataset.release_text(FIRST.replace("Bo,1,", "Bo,,"))
    assert built.schema_change is not None
    assert built.schema_change.nullable == ["units"]
    assert built.schema_change.level is Level.MINOR
    assert built.schema.column("units").type == "int64"
    back = dataset.release_text(FIRST)
    assert back.schema_change is None
    assert back.schema.column("units").nullable


def test_a_value_that_does_not_fit_retypes_the_column_and_loses_nothing(dataset: Dataset) -> None:
    """MAJOR: loaded, without a changes file, with counts against the base (S-15)."""
    dataset.release_text(FIRST)
    doubles = dataset.release_text(FIRST.replace("Cy,3,", "Cy,3.5,"))
    assert doubles.counts == counts(changed=1)
    assert doubles.schema_change is not None
    assert [(column.name, column.from_, column.to) for column in doubles.schema_change.retyped] == [
        ("units", "int64", "float64")
    ]
    assert doubles.schema_change.to == "2.0"
    assert {row["units"] for row in records(dataset, doubles).values()} == {1.0, 2.0, 3.5}
    assert not [file for file in doubles.files if file.role is FileRole.CHANGES]
    texts = dataset.release_text(FIRST.replace("Cy,3,", "Cy,many,"))
    assert texts.schema.column("units").type == "string"
    assert records(dataset, texts)["c"]["units"] == "many"
    assert texts.schema_change is not None
    assert texts.schema_change.to == "3.0"


def test_whole_numbers_that_doubles_do_not_hold_become_text(dataset: Dataset) -> None:
    dataset.release_text("id,serial\na,9007199254740993\nb,2\n")
    built = dataset.release_text("id,serial\na,9007199254740993\nb,2.5\n")
    assert built.schema.column("serial").type == "string"
    assert built.counts == counts(changed=1)


def test_a_long_whole_number_beside_fractions_is_not_bent(dataset: Dataset) -> None:
    rows = '{"id":"a","serial":9007199254740993}\n{"id":"b","serial":0.5}\n'
    mixed = dataset.release_text(rows, name="rows.ndjson")
    assert mixed.schema.column("serial").type == "string"
    assert records(dataset, mixed)["a"]["serial"] == "9007199254740993"


def test_a_long_whole_number_does_not_fit_a_column_of_doubles(dataset: Dataset) -> None:
    dataset.release_text("id,serial\na,1.5\nb,2.5\n")
    built = dataset.release_text("id,serial\na,1.5\nb,9007199254740993\n")
    assert records(dataset, built)["b"]["serial"] == "9007199254740993"


def test_a_column_that_left_changes_the_records_that_had_a_value_in_it(dataset: Dataset) -> None:
    dataset.release_text(FIRST)
    built = dataset.release_text("id,units,seen\nb,1,2026-01-01\na,2,\nc,3,2026-01-03\n")
    assert built.counts == counts(changed=2)
    assert built.schema_change is not None
    assert built.schema_change.level is Level.MAJOR
    assert "name" not in records(dataset, built)["a"]


def test_the_schema_file_is_the_schema_with_its_change_and_has_no_rows(dataset: Dataset) -> None:
    """R-099."""
    dataset.release_text(FIRST)
    built = dataset.release_text(FIRST.replace("Bo,1,", "Bo,,"))
    said = decode(dataset.path(built, FileRole.SCHEMA, "json").read_bytes(), SchemaDocument)
    assert said.schema_version == "1.1"
    assert said.change == built.schema_change
    assert said.columns == built.schema.columns
    assert [file.rows for file in built.files if file.role is FileRole.SCHEMA] == [0]


def test_the_listing_has_the_changes_as_lines_of_json(tmp_path: Path) -> None:
    dataset = Dataset(
        tmp_path,
        declare(
            key=["id"],
            geometry={"longitude": "x", "latitude": "y"},
            columns={"fee": "decimal(8,2)", "tags": "json"},
        ),
    )
    dataset.release_text(
        "id,x,y,n,fee,at,tags\na,1.0,2.5,9007199254740993,0.50,2026-01-01T00:00:00Z,{}\nz,,,1,1,,\n"
    )
    built = dataset.release_text(
        "id,x,y,n,fee,at,tags\na,1.5,2,9007199254740993,0.5,2026-01-01T01:00:00.25+01:00,"
        '"{""b"": 1.0, ""a"": [1e400]}"\n'
    )
    text = dataset.path(built, FileRole.LISTING, "jsonl").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines == [
        '{"op":"delete","change":"removed","recordId":"rec_000000010000000001","record":null}',
        (
            '{"op":"upsert","change":"changed","recordId":"rec_000000010000000000","record":'
            '{"id":"a","x":1.5,"y":2.0,"n":9007199254740993,"fee":0.50,'
            '"at":"2026-01-01T00:00:00.250Z","tags":{"a":[1e400],"b":1.0},'
            '"geometry":{"type":"Point","coordinates":[1.5,2.0]}}}'
        ),
    ]
    assert all(json.loads(line) for line in lines)


def test_csv_has_nothing_for_null_and_quotes_for_empty_text(tmp_path: Path) -> None:
    """F08; a CSV source has no empty text, GeoJSON has."""
    dataset = Dataset(tmp_path, declare(key=["id"]))
    features = [
        {"type": "Feature", "properties": {"id": key, "t": text}, "geometry": None}
        for key, text in (("1", None), ("2", ""), ("3", "NULL"), ("4", " x "), ("5", 'a"b,\nc'))
    ]
    built = dataset.release_text(
        json.dumps({"type": "FeatureCollection", "features": features}), name="f.geojson"
    )
    text = dataset.path(built, FileRole.SNAPSHOT, "csv").read_text(encoding="utf-8")
    body = text.replace("rec_00000001000000000", "").splitlines()
    assert body[0] == "_ploti_record_id,id,t,geometry"
    assert "\n".join(body[1:]) == '0,1,,\n1,2,"",\n2,3,NULL,\n3,4, x ,\n4,5,"a""b,\nc",'


def test_a_key_with_nulls_or_repeats_gives_a_fault_with_examples(dataset: Dataset) -> None:
    built = dataset.build_text("id,n\na,1\nb,2\na,3\n,4\n,5\na,6\nb,2\n")
    assert isinstance(built, Candidate)
    assert built.key_fault is not None
    assert (built.key_fault.null_rows, built.key_fault.repeated_keys) == (2, 2)
    assert built.key_fault.examples == ["rows without id: 2", "a: 3 rows", "b: 2 rows"]
    assert built.row_count == 7


def test_without_a_key_every_row_is_a_record_and_goes_on_by_what_it_has(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, declare())
    built = dataset.release_text("a,b\n1,2\n1,2\n0,3\n")
    assert built.row_count == 3
    assert (
        len({row["_ploti_record_id"] for row in rows_of(dataset.path(built, FileRole.SNAPSHOT))})
        == 3
    )
    assert isinstance(dataset.build_text("b,a\n3,0\n2,1\n2,1\n"), Unchanged)
    before = Path(dataset.base.snapshot) if dataset.base else Path()
    built = dataset.release_text("a,b\n5,5\n1,2\n0,3\n")
    assert built.counts == Counts(added=1, changed=0, removed=1)
    check_fold(
        before,
        dataset.path(built, FileRole.CHANGES),
        dataset.path(built, FileRole.SNAPSHOT),
    )


def test_under_another_key_records_go_on_and_the_change_is_major(dataset: Dataset) -> None:
    dataset.release_text(FIRST)
    assert dataset.base is not None
    before = ids_by(dataset, "id")
    dataset.declaration = declare(key=["name"])
    built = dataset.release_text(FIRST)
    assert built.counts == Counts(added=0, changed=0, removed=0)
    assert built.schema_change is not None
    assert (built.schema_change.level, built.schema_change.to) == (Level.MAJOR, "2.0")
    assert ids_by(dataset, "id") == before


def ids_by(dataset: Dataset, name: str) -> dict[object, object]:
    assert dataset.base is not None
    rows = rows_of(Path(dataset.base.snapshot))
    return {row[name]: row["_ploti_record_id"] for row in rows}


@pytest.mark.parametrize(
    ("settings", "text", "reason"),
    [
        ({"key": ["nr"]}, FIRST, "no column nr, which is the key; it has id, name, units, seen"),
        ({"columns": {"nr": "int64"}}, FIRST, "no column nr, as declared; it has id, name"),
        (
            {"geometry": {"longitude": "lon", "latitude": "lat"}},
            FIRST,
            "no column lon; it has id, name, units, seen",
        ),
        (
            {"columns": {"name": "int64"}},
            FIRST,
            "the column name is declared int64, which 2 of its values are not, such as 'Bo'",
        ),
        ({}, "id,n\na,1\nb\n", "line 3: 1 values where the header has 2"),
        ({}, "id,n\na,1\nb,2,3\n", "line 3: 3 values where the header has 2"),
        ({}, "id,n\na,1\nb,2,\n", "line 3: 3 values where the header has 2"),
        ({}, 'id,n\na,"1\n2"\nb,2,3\n', "line 4: 3 values where the header has 2"),
        ({}, 'id,n\na,b"c\n', "line 2: a quote inside a value that is not quoted"),
        ({}, 'id,n\na, "c"\n', "line 2: a quote inside a value that is not quoted"),
        ({}, 'id,n\na,"b" \n', "line 2: text after the quotes around a value"),
        ({}, 'id,n\na,b\nc,"d\ne,f\n', "line 3: a quote there is never closed"),
        ({}, b"id,n\na,ok\nb,caf\xe9\n", "line 3: the byte 0xe9 there is not UTF-8"),
        (
            {},
            b"id\ncaf\xe9\n",
            "declare its encoding, such as source: {format: csv, encoding: cp1252}",
        ),
        ({}, "", "the source is empty"),
        ({}, "\n\n", "the source is empty"),
        ({}, "<!DOCTYPE html><html><body>Sorry</body></html>", "HTML"),
        ({}, "id;n\na;1\n", "semicolons: declare source: {format: csv, delimiter: ';'}"),
        ({}, "id\tn\na\t1\n", r'tabs: declare source: {format: csv, delimiter: "\t"}'),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line_that_says_where(
    tmp_path: Path, settings: dict[str, object], text: str | bytes, reason: str
) -> None:
    assert reason in refused(Dataset(tmp_path, declare(**settings)), text)


def test_zero_bytes_are_taken_out_and_told(dataset: Dataset) -> None:
    """A27."""
    built = dataset.release_text('id,note\na,ab\0cd\nb,"x\0"\nc,fine\n' + "\0" * 64)
    assert {key: row["note"] for key, row in records(dataset, built).items()} == {
        "a": "abcd",
        "b": "x",
        "c": "fine",
    }
    assert [finding.message for finding in built.findings] == [
        "66 zero bytes were taken out of the source"
    ]


def test_line_breaks_in_values_stay_as_they_are(dataset: Dataset) -> None:
    """A26: CRLF line ends, breaks of both kinds inside values, no end after the last line."""
    built = dataset.release_text('id,note\r\na,"x\ny"\r\nb,"x\r\ny"\r\nc,"said ""ok"""\r\nd,last')
    assert {key: row["note"] for key, row in records(dataset, built).items()} == {
        "a": "x\ny",
        "b": "x\r\ny",
        "c": 'said "ok"',
        "d": "last",
    }


@pytest.mark.parametrize(
    "text",
    ["id,n\ra,1\rb,\r", "id,n\r\na,1\nb,\r\n", "\n\nid,n\na,1\n\nb,\n\n\n"],
    ids=["old line ends", "mixed line ends", "blank lines"],
)
def test_line_ends_of_any_kind_are_read(dataset: Dataset, text: str) -> None:
    built = dataset.release_text(text)
    assert {key: row["n"] for key, row in records(dataset, built).items()} == {"a": 1, "b": None}


def test_a_field_of_megabytes_is_read(dataset: Dataset) -> None:
    """A28."""
    long = "x" * (5 << 20)
    built = dataset.release_text(f'id,note\na,"{long}"\nb,y\n')
    assert records(dataset, built)["a"]["note"] == long


def test_one_late_value_decides_the_type_of_a_column(dataset: Dataset) -> None:
    """A24, A74: types are decided over all rows, and nothing is bent."""
    rows = "".join(f"{number},{number},2026-01-{number % 28 + 1:02d}\n" for number in range(30_000))
    built = dataset.release_text(f"id,units,seen\n{rows}A-17,3.9,2026-02-30\n007,1_000,N/A\n")
    assert [column.type for column in built.schema.columns] == ["string", "string", "string"]
    found = records(dataset, built)
    assert (found["A-17"]["units"], found["A-17"]["seen"]) == ("3.9", "2026-02-30")
    assert found["007"]["units"] == "1_000"
    assert len(found) == 30_002


def test_points_are_made_of_two_columns_and_half_a_pair_is_none(tmp_path: Path) -> None:
    """A69; coordinates are rounded to the dataset's precision."""
    dataset = Dataset(
        tmp_path,
        declare(key=["id"], geometry={"longitude": "x", "latitude": "y", "precision": 1e-3}),
    )
    built = dataset.release_text("id,x,y\na,-81.30049,28.5\nb,,28.6\nc,0,0\nd,west,1\n")
    rows = records(dataset, built)
    points = {key: row["geometry"] for key, row in rows.items()}
    assert points["b"] is None
    assert points["d"] is None
    assert bytes.fromhex("0101000000") + b"\0" * 16 == points["c"]
    boxes = {key: row["_ploti_bbox"] for key, row in rows.items()}
    assert boxes["b"] is None
    assert boxes["a"]["xmin"] <= -81.3 <= boxes["a"]["xmax"]
    assert [finding.kind for finding in built.findings] == ["coordinates"]
    assert built.schema.geometry is not None
    assert built.schema.geometry.types == ["Point"]
    assert list(rows["a"])[-2:] == ["geometry", "_ploti_bbox"]


def test_the_same_order_gives_the_same_bytes_with_any_number_of_threads(tmp_path: Path) -> None:
    text = "id,x,y,n\n" + "".join(
        f"{number * 7919 % 40_000},{number % 360 - 180},{number % 180 - 90},{number % 11}\n"
        for number in range(40_000)
    )
    later = text.replace(",5\n", ",6\n", 900) + "x1,1,1,1\nx2,,,2\n"
    seen = set()
    for threads in (1, 2, 4):
        dataset = Dataset(
            tmp_path / str(threads),
            declare(key=["id"], geometry={"longitude": "x", "latitude": "y"}),
            threads=threads,
        )
        built = [dataset.release_text(state) for state in (text, later)]
        seen.add(tuple(file.sha256 for one in built for file in one.files))
    assert len(seen) == 1


def test_ids_do_not_depend_on_the_order_of_the_sources_rows(tmp_path: Path) -> None:
    lines = [f"{number * 37 % 101},{number % 7},{number % 5}\n" for number in range(100)]
    found = []
    for order in (lines, sorted(lines), lines[::-1]):
        dataset = Dataset(
            tmp_path / str(len(found)),
            declare(geometry={"longitude": "x", "latitude": "y"}),
        )
        built = dataset.release_text("n,x,y\n" + "".join(order))
        found.append(rows_of(dataset.path(built, FileRole.SNAPSHOT)))
    assert found[0] == found[1] == found[2]


def test_a_removed_id_is_its_own_records_again_and_never_anothers(dataset: Dataset) -> None:
    dataset.release_text("id\na\nb\n")
    dataset.release_text("id\na\n")
    dataset.release_text("id\na\nc\n")
    built = dataset.release_text("id\na\nb\nc\n")
    ids = {key: row["_ploti_record_id"] for key, row in records(dataset, built).items()}
    assert ids == {
        "a": "rec_000000010000000000",
        "b": "rec_000000010000000001",
        "c": "rec_000000030000000000",
    }


def test_a_dataset_may_be_emptied_and_filled_again(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, declare(key=["id"], geometry={"longitude": "x", "latitude": "y"}))
    dataset.release_text("id,x,y\na,1,2\n")
    emptied = dataset.release_text("id,x,y\n")
    assert emptied.counts == counts(removed=1)
    assert emptied.content_digest == "d1:" + "0" * 32
    snapshot = pq.read_table(dataset.path(emptied, FileRole.SNAPSHOT))
    assert snapshot.num_rows == 0
    said = json.loads(snapshot.schema.metadata[b"geo"])["columns"]["geometry"]
    assert (said["geometry_types"], "bbox" in said) == ([], False)
    built = dataset.release_text("id,x,y\nb,1,2\n")
    assert built.counts == counts(added=1)


def test_odd_names_of_columns_go_through_unharmed(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, declare(key=["a.b"]))
    header = 'a.b,"say ""hi""",it\'s,Größe,name,NAME,,_ploti_op'
    built = dataset.release_text(f"{header}\n1,2,3,4,5,6,7,8\n")
    assert [column.name for column in built.schema.columns] == [
        "a.b",
        'say "hi"',
        "it's",
        "Größe",
        "name",
        "NAME_2",
        "unnamed",
        "source_ploti_op",
    ]
    later = dataset.release_text(f"{header}\n1,2,3,4,5,6,7,9\n2,2,3,4,5,6,7,8\n")
    assert later.counts == counts(added=1, changed=1)
    assert Buckets.from_wire(later.buckets) == full_digest(
        dataset.path(later, FileRole.SNAPSHOT), later
    )


def test_a_mark_of_utf_8_that_was_written_twice_is_no_part_of_a_name(dataset: Dataset) -> None:
    built = dataset.release_text(f"\ufeff\ufeff{FIRST}")
    assert built.counts == counts(added=3)


def test_more_columns_than_can_be_meant_are_refused(dataset: Dataset) -> None:
    text = ",".join(f"c{number}" for number in range(2_001)) + "\n"
    assert refused(dataset, text) == "the source has 2,001 columns, and may have 2,000"


def test_a_header_that_is_no_header_is_refused(dataset: Dataset) -> None:
    said = refused(dataset, f"id,{'n' * 200_000}\n1,2\n")
    assert said.startswith("the header cannot be names of columns: field larger than")


def test_nan_reads_as_null_and_is_told_and_infinities_stay(tmp_path: Path) -> None:
    """Snapshots hold no NaN; in JSON and CSV infinities are words."""
    table = pa.table({"id": ["a", "b", "c", "d"], "x": [1.5, float("nan"), float("-inf"), -0.0]})
    pq.write_table(table, tmp_path / "state.parquet")
    dataset = Dataset(tmp_path / "built", declare(key=["id"]))
    built = dataset.release(tmp_path / "state.parquet")
    values = {key: row["x"] for key, row in records(dataset, built).items()}
    assert values == {"a": 1.5, "b": None, "c": float("-inf"), "d": 0.0}
    assert built.schema.column("x").type == "float64"
    assert [finding.message for finding in built.findings] == [
        "NaN stood in place of a number and reads as null: 1 of them"
    ]
    text = dataset.path(built, FileRole.SNAPSHOT, "csv").read_text(encoding="utf-8")
    assert text.splitlines()[3].endswith(",c,-Infinity")
    pq.write_table(table.slice(0, 3), tmp_path / "later.parquet")
    later = dataset.release(tmp_path / "later.parquet")
    assert later.counts == counts(removed=1)


def test_a_column_that_came_is_not_told_as_the_one_that_explains_the_changes(
    dataset: Dataset,
) -> None:
    """To leave its changes out of account would be no help: the schema says that it came."""
    rows = [f"{number},a,{number}" for number in range(30)]
    dataset.release_text("\n".join(["id,name,units", *rows]))
    built = dataset.release_text("\n".join(["id,name,units,sort", *(f"{row},x" for row in rows)]))
    assert built.counts == counts(changed=30)
    assert [each.kind for each in built.findings] == []
    rows = [f"{number},b,{number},x" for number in range(30)]
    built = dataset.release_text("\n".join(["id,name,units,sort", *rows]))
    assert [(each.kind, each.subject) for each in built.findings] == [("one_column", "name")]
