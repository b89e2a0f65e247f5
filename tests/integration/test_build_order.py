"""The order of new records: place, key as text, columns; the same however rows are divided."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from tests.building import Dataset, declare, rows_of

from ploti.model.columns import RECORD_ID
from ploti.model.sql import listed, literal
from ploti.server.adapters.engine import ordering
from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.build.candidate import FileRole
from ploti.server.build.columns import PlannedColumn
from ploti.server.build.diff import (
    Box,
    NewRows,
    geometries_sql,
    named_fields,
    new_rows,
    numbered_sql,
)
from ploti.server.build.shape import Shape, ShapedGeometry, make_schema
from ploti.server.sources.raw import RawKind

ROWS = 3_000

VALUES = {
    "string": "['a', 'B', 'ä', '', NULL, 'aa', '10', '9'][1 + h % 8]",
    "int64": "[10, 9, -1, NULL, 4611686018427387904][1 + h // 8 % 5]",
    "float64": "[0.5, -0.25, 1e300, NULL, 'infinity'::DOUBLE][1 + h // 64 % 5]",
    "decimal(9,2)": "[1.5, -20.25, NULL, 3][1 + h // 512 % 4]::DECIMAL(9, 2)",
    "boolean": "[true, false, NULL][1 + h // 4096 % 3]",
    "date": "[DATE '0001-01-01', DATE '1970-01-02', NULL][1 + h // 16384 % 3]",
    "timestamp": "[TIMESTAMPTZ '1969-12-31 23:59:59.999999+00', NULL][1 + h // 65536 % 2]",
    "datetime": "[TIMESTAMP '2026-01-01 00:00:00', TIMESTAMP '1900-01-01', NULL][1 + h // 9 % 3]",
    "json": "['{}', '[1]', NULL][1 + h // 11 % 3]",
}
"""SQL of values of each type, few enough that rows differ in the last of them alone."""

POINT = "CASE WHEN h % 7 > 0 THEN ploti_point(h // 7 % 9 / 8, h // 77 % 9 / 8, 0) END"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckEngine]:
    with DuckEngine(str(tmp_path), reads=[], memory_limit=256 << 20) as opened:
        yield opened


def shaped(*key: str) -> Shape:
    """Columns called as their types are, and points."""
    columns = tuple(
        PlannedColumn(
            name=type_,
            source_name=type_,
            kind=RawKind.TEXT,
            field=type_,
            types=(type_,),
            settled=True,
            fixed=True,
        )
        for type_ in VALUES
    )
    geometry = ShapedGeometry(wkb="g", faulty="false", crs="EPSG:4326")
    return Shape(columns=columns, geometry=geometry, key=key)


def kept(engine: DuckEngine, shape: Shape, *, point: str = POINT) -> str:
    """A relation of rows of that shape."""
    fields = [f"{sql} AS {shape.field(type_)}" for type_, sql in VALUES.items()]
    numbers = f"SELECT (hash(i) >> 1)::BIGINT AS h FROM range({ROWS}) AS numbers(i)"
    sql = f"SELECT {', '.join(fields)}, {point} AS g FROM ({numbers})"
    return engine.keep(sql, name="shaped").relation


def written(engine: DuckEngine, new: NewRows, shape: Shape) -> list[tuple[object, ...]]:
    """The rows of a first version, as it has them."""
    schema = make_schema(shape, base=None, nulls=dict.fromkeys(shape.fields.values(), 1), types=[])
    file = engine.write_first(new, schema=schema, version=1).snapshot
    names = listed([RECORD_ID, *shape.fields])
    path = literal(f"{engine.folder}/{file.name}")
    return engine.rows(
        f"SELECT {names} FROM read_parquet({path}, file_row_number=true) ORDER BY file_row_number"
    )


def numbered(
    engine: DuckEngine, relation: str, shape: Shape, *, box: Box | None, unique: bool
) -> list[tuple[object, ...]]:
    """The rows as DuckDB alone orders them, with the ids of those numbers."""
    order = numbered_sql(relation, shape, box=box, unique=unique)
    return engine.rows(
        f"SELECT printf('rec_00000001%010d', ordinal), {named_fields(shape)}"
        f" FROM {relation} AS made JOIN ({order}) ON position = made.file_row_number"
        " ORDER BY ordinal"
    )


def in_parts(monkeypatch: pytest.MonkeyPatch, part: int, large: int) -> None:
    monkeypatch.setattr(ordering, "PART", part)
    monkeypatch.setattr(ordering, "_LARGE", large)
    monkeypatch.setattr(ordering, "_DRAWN", 20)


def test_a_part_of_large_values_is_not_sorted_in_memory(
    engine: DuckEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_parts(monkeypatch, 50, ROWS + 1)
    in_memory: list[int] = []
    sort = ordering._sorted

    def told(part: pa.Table, by: Sequence[str]) -> pa.Table:
        in_memory.append(part.num_rows)
        return sort(part, by)

    monkeypatch.setattr(ordering, "_sorted", told)
    shape = shaped("string")
    relation = kept(engine, shape)
    box = engine.box(geometries_sql(relation))
    new = new_rows(relation, shape, rows=ROWS, box=box, unique=False)
    whole = written(engine, new, shape)
    assert sum(in_memory) == ROWS
    in_memory.clear()
    monkeypatch.setattr(ordering, "_HEAVY", 5_000)
    assert written(engine, new, shape) == whole
    assert 0 < sum(in_memory) < ROWS


@pytest.mark.parametrize("key", [(), ("string",), ("int64",), ("date", "string"), ("float64",)])
@pytest.mark.parametrize(
    ("part", "large"),
    [(ROWS, ROWS + 1), (50, ROWS + 1), (50, 1), (50, 60)],
    ids=["one part", "many parts", "all by DuckDB", "some by DuckDB"],
)
def test_new_rows_come_in_the_order_in_which_they_are_numbered(
    engine: DuckEngine,
    monkeypatch: pytest.MonkeyPatch,
    key: tuple[str, ...],
    part: int,
    large: int,
) -> None:
    in_parts(monkeypatch, part, large)
    shape = shaped(*key)
    relation = kept(engine, shape)
    box = engine.box(geometries_sql(relation))
    new = new_rows(relation, shape, rows=ROWS, box=box, unique=False)
    assert written(engine, new, shape) == numbered(engine, relation, shape, box=box, unique=False)


def test_rows_without_any_place_are_ordered_by_their_columns(engine: DuckEngine) -> None:
    shape = shaped("string")
    relation = kept(engine, shape, point="NULL::BLOB")
    assert engine.box(geometries_sql(relation)) is None
    new = new_rows(relation, shape, rows=ROWS, box=None, unique=False)
    assert written(engine, new, shape) == numbered(engine, relation, shape, box=None, unique=False)


def points_of(*, later: bool) -> str:
    """Records with points, of which the later state has some less, some more and some changed."""
    keys = [key + 10_000 * (later and key % 5 == 0) for key in range(600)]
    rows = [f"{key},{key * (7 + later) % 11},{key * 31 % 97},{key * 17 % 89}" for key in keys]
    return "\n".join(["id,value,lng,lat", *rows])


def of_points(folder: Path, **settings: object) -> Dataset:
    points = {"longitude": "lng", "latitude": "lat"}
    return Dataset(folder, declare(geometry=points, continuation="off", **settings))


@pytest.mark.parametrize(
    ("part", "heavy"), [(100_000, 1 << 30), (7, 1 << 30), (100, 1 << 30), (100_000, 1), (100, 1)]
)
def test_a_later_version_is_the_same_however_its_rows_are_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int, heavy: int
) -> None:
    def files(folder: str) -> list[bytes]:
        dataset = of_points(tmp_path / folder, key=["id"])
        dataset.release_text(points_of(later=False))
        built = dataset.release_text(points_of(later=True))
        assert built.counts
        assert min(built.counts.added, built.counts.changed, built.counts.removed) > 100
        roles = (FileRole.SNAPSHOT, FileRole.CHANGES)
        return [dataset.path(built, role).read_bytes() for role in roles]

    whole = files("whole")
    in_parts(monkeypatch, part, part * 2)
    monkeypatch.setattr(ordering, "_HEAVY", heavy)
    assert files("divided") == whole


@pytest.mark.parametrize("changed", [False, True])
def test_what_rows_came_in_order_through_is_gone_after_a_build(
    tmp_path: Path, changed: bool
) -> None:
    dataset = of_points(tmp_path, key=["id"])
    states = [points_of(later=False), points_of(later=changed) + "\n-1,0,1,1"]
    for state in states:
        built = dataset.release_text(state)
        assert {path.name for path in dataset.built_in.glob("*.arrow")} == set()
    assert built.counts
    assert built.counts.added
    assert bool(built.counts.changed) == changed


@pytest.mark.parametrize("name", [".value", "..", ".", "[0]", ".lng", "a.b", "_ploti_place", "g"])
def test_rows_of_one_place_are_ordered_by_columns_of_any_name(tmp_path: Path, name: str) -> None:
    dataset = of_points(tmp_path)
    rows = [f"{row * 7 % 40},{row * 3 % 40},1,1" for row in range(40)]
    built = dataset.release_text("\n".join([f"{name},value,lng,lat", *rows]))
    snapshot = rows_of(dataset.path(built, FileRole.SNAPSHOT))
    column = built.schema.columns[0].name
    assert [row[column] for row in snapshot] == list(range(40))
