"""A type that a sample suggests and a few of all texts break: the column is retyped, once read."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.builds import Builds, declare

from ploti.server.build import retyping, shape
from ploti.server.build.candidate import Candidate

WHOLE, DAYS, SWITCHES = ("1", "", "2", "30"), ("2024-01-31", "", "2024-02-29"), ("true", "false")


def state(values: tuple[str, ...]) -> bytes:
    """Rows of a key, such values, whole numbers without a fault, and text."""
    rows = [f"k{n},{value},{n},'{value}'" for n, value in enumerate(values)]
    return "\n".join(["id,v,n,said", *rows, ""]).encode()


@pytest.fixture(autouse=True)
def _few_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape, "SAMPLES", (4,))


def build(folder: Path, *states: bytes) -> tuple[Candidate, bool]:
    """The last version, and whether its source was read again to be retyped."""
    folder.mkdir()
    builds = Builds(folder, declare(key=["id"]))
    built = [builds.build(each) for each in states][-1]
    assert isinstance(built, Candidate)
    return built, (folder / f"order-{len(states)}" / "retyped.parquet").exists()


@pytest.mark.parametrize(
    ("states", "type_", "again"),
    [
        pytest.param([(*WHOLE, "18.3", "", "4")], "float64", False, id="a fraction"),
        pytest.param([(*WHOLE, "18.3", "n/a")], "string", False, id="a fraction and a word"),
        pytest.param([(*WHOLE, "007")], "string", False, id="leading zeros"),
        pytest.param([(*DAYS, "", "soon")], "string", False, id="no day"),
        pytest.param([(*SWITCHES * 2, "TRUE")], "string", False, id="no switch"),
        pytest.param([(*WHOLE, "1.50", *["9" * 16])], "string", True, id="too many digits"),
        pytest.param([("1.5", "", "2", "", "x")], "string", True, id="doubles"),
        pytest.param([("", "", "", "", "7", "2024-01-31")], "string", True, id="none sampled"),
        pytest.param([("", "", "", "", "2024-01-31")], "date", True, id="only days"),
        pytest.param([WHOLE, ("1.0", "", "2.5")], "float64", False, id="of a base"),
        pytest.param([WHOLE, ("1.0", "", "many")], "string", True, id="of a base, otherwise"),
    ],
)
def test_values_and_the_texts_that_did_not_fit_tell_what_a_second_reading_does(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    states: list[tuple[str, ...]],
    type_: str,
    *,
    again: bool,
) -> None:
    sources = [state(values) for values in states]
    built, read_again = build(tmp_path / "mended", *sources)
    assert (built.schema.column("v").type, read_again) == (type_, again)
    monkeypatch.setattr(retyping, "plan_mending", lambda *_: None)
    expected, read_again = build(tmp_path / "read", *sources)
    assert read_again
    assert (built.schema, built.counts, built.state_digest, built.files, built.findings) == (
        expected.schema,
        expected.counts,
        expected.state_digest,
        expected.files,
        expected.findings,
    )
