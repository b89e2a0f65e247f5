"""What a build tells of itself while it runs."""

from pathlib import Path

from tests.building import Dataset, declare

from ploti.model.admin import BuildProgress, BuildStage
from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.adapters.readers import READERS
from ploti.server.build.candidate import BuildOrder, BuildResult, Candidate
from ploti.server.build.progress import Telling
from ploti.server.service.build_version import build_version

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


def assert_told(told: list[BuildProgress], *, rows: int) -> None:
    assert list(dict.fromkeys(each.stage for each in told)) == STAGES
    writing = [each for each in told if each.stage is BuildStage.WRITING]
    assert {each.rows for each in writing} == {rows}
    shares = [each.share for each in writing if each.share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 1


def build(dataset: Dataset, text: str, told: list[BuildProgress]) -> BuildResult:
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
    reads = [str(source), *([dataset.base.snapshot] if dataset.base else [])]
    telling = Telling(told.append)
    with DuckEngine(str(folder), reads=reads, memory_limit=1 << 29, telling=telling) as engine:
        return build_version(order, readers=READERS, engine=engine)
