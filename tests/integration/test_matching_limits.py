"""The limits of a matching inside the engine: of time, of memory, and what fails otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.build.limits import Limit
from ploti.server.build.matching.question import OverBudget

ENDLESS = "SELECT sum(a.range * b.range % 7) FROM range(10000000) AS a, range(10000000) AS b"


def engine(folder: Path, *, seconds: float | None = None, memory: int = 512 << 20) -> DuckEngine:
    return DuckEngine(str(folder), reads=[], memory_limit=memory, threads=1, match_seconds=seconds)


def test_a_matching_that_takes_too_long_is_interrupted_and_the_engine_goes_on_r075(
    tmp_path: Path,
) -> None:
    with engine(tmp_path, seconds=0.2) as duck:
        with duck.matching() as run:
            assert run("SELECT 1") == [(1,)]
            with pytest.raises(OverBudget, match=r"longer than the 0\.2 s") as late:
                run(ENDLESS)
            with pytest.raises(OverBudget):
                run("SELECT 1")
        assert late.value.limit is Limit.SECONDS
        assert duck.rows("SELECT 2") == [(2,)]


def test_a_matching_that_needs_more_memory_than_there_is_is_over_its_budget_r075(
    tmp_path: Path,
) -> None:
    with engine(tmp_path, memory=32 << 20) as duck, duck.matching() as run:
        with pytest.raises(OverBudget, match="more memory") as full:
            run("SELECT length(string_agg(repeat('x', 1000), '')) FROM range(1000000)")
        assert full.value.limit is Limit.MEMORY
        assert run("SELECT 1") == [(1,)]


def test_a_matching_that_fails_otherwise_breaks_no_limit_r075(tmp_path: Path) -> None:
    with engine(tmp_path) as duck, duck.matching() as run:
        with pytest.raises(OverBudget, match="the matching failed: ") as failed:
            run("SELECT * FROM there_is_none_such")
        assert failed.value.limit is None
