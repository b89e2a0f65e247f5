"""What a build tells of itself while it runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.building import Dataset, declare

from ploti.model.admin import BuildProgress, BuildStage
from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.adapters.readers import READERS
from ploti.server.build.candidate import Base, BuildOrder, BuildResult, Candidate, Replacement
from ploti.server.build.progress import Telling
from ploti.server.service.build_version import build_version
from ploti.server.service.replace_content import replace_content
from ploti.server.service.restore_content import restore_content

STAGES = [BuildStage.READING, BuildStage.TYPING, BuildStage.MATCHING, BuildStage.WRITING]


def test_a_build_tells_its_stages_and_how_many_rows_are_written(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, declare(key=["id"]))
    rows = [f"{number},a" for number in range(130_000)]
    first = build(dataset, "id,name\n" + "\n".join(rows), told := [])
    assert isinstance(first, Candidate)
    assert_told(told, rows=130_000)
    dataset.release_text("id,name\n" + "\n".join(rows))
    rows[5] = "5,b"
    second = build(dataset, "id,name\n" + "\n".join(rows), told := [])
    assert isinstance(second, Candidate)
    assert_told(told, rows=130_000)


def test_a_restored_version_and_replaced_ids_tell_it_too(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, declare(key=["id"]))
    rows = [f"{number},a" for number in range(130_000)]
    dataset.release_text("id,name\n" + "\n".join(rows))
    older = dataset.base
    dataset.release_text("id,name\n" + "\n".join(rows[1:]))
    base = dataset.base
    assert older is not None
    assert base is not None
    with engine(dataset, told := [], reads=(older, base)) as (order, restoring):
        restore_content(order, older, base, engine=restoring)
    assert_told(told, rows=130_000, stages=STAGES[2:])
    with engine(dataset, told := [], reads=(base,)) as (order, replacing):
        replace_content(order, Replacement(version=2), base, engine=replacing)
    assert_told(told, rows=129_999, stages=STAGES[2:])


def assert_told(
    told: list[BuildProgress], *, rows: int, stages: Sequence[BuildStage] = STAGES
) -> None:
    assert list(dict.fromkeys(each.stage for each in told)) == stages
    writing = [each for each in told if each.stage is BuildStage.WRITING]
    assert {each.rows for each in writing} == {rows}
    shares = [each.share for each in writing if each.share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 1


def build(dataset: Dataset, text: str, told: list[BuildProgress]) -> BuildResult:
    bases = [dataset.base] if dataset.base else []
    with engine(dataset, told, reads=bases, text=text) as (order, building):
        return build_version(order, readers=READERS, engine=building)


@contextmanager
def engine(
    dataset: Dataset, told: list[BuildProgress], *, reads: Sequence[Base], text: str = ""
) -> Iterator[tuple[BuildOrder, DuckEngine]]:
    """An order for a build of the dataset, and the engine for it, which tells what it does."""
    source = dataset.write(text)
    folder = source.parent / "built"
    folder.mkdir()
    order = BuildOrder(
        dataset_id=dataset.declaration.id,
        declaration=dataset.declaration,
        version=dataset.number + 1,
        base=dataset.base,
        source=str(source),
        source_name=source.name,
        folder=str(folder),
    )
    files = [str(source), *(path for base in reads for path in base.files)]
    telling = Telling(told.append)
    with DuckEngine(str(folder), reads=files, memory_limit=1 << 29, telling=telling) as made:
        yield order, made
