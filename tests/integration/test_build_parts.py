"""A large base is joined by its keys in parts, which find what one join finds."""

from pathlib import Path

import pytest
from tests.building import Dataset, declare

from ploti.model.version import Counts
from ploti.server.build.candidate import Candidate
from ploti.server.service import match_state


def later(folder: Path) -> tuple[Candidate, dict[str, str]]:
    """A state in which of a hundred records ten change, ten go and five come."""
    dataset = Dataset(folder, declare(key=["id"], continuation="off"))
    dataset.release_text("id,v\n" + "".join(f"k{n},{n}\n" for n in range(100)))
    rows = [(n, n + 1000 * (n % 10 == 3)) for n in range(105) if n >= 100 or n % 10 != 7]
    built = dataset.release_text("id,v\n" + "".join(f"k{n},{v}\n" for n, v in rows))
    return built, {file.name: file.sha256 for file in built.files}


def test_a_base_of_several_parts_gives_the_same_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, files = later(tmp_path / "whole")
    assert whole.counts == Counts(added=5, changed=10, removed=10)
    monkeypatch.setattr(match_state, "_JOINED", 30)
    in_parts, files_in_parts = later(tmp_path / "parts")
    assert list((tmp_path / "parts").rglob("narrow.parquet"))
    assert in_parts.counts == whole.counts
    assert files_in_parts == files
