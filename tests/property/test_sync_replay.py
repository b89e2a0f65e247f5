"""The replay law: whatever happened and whenever sync died, idle tables equal current versions.

PostgreSQL has the same law in `tests/integration`, since here no test may open a socket.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fakes.replay import IDS, STEPS, World

from ploti.errors import InternalError


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "gpkg", "parquet"])
@settings(max_examples=25, deadline=None)
@example(history=[("release", IDS[0], 0, {}), ("sync_while_it_fails", IDS[0], InternalError)])
@given(history=st.lists(STEPS, max_size=14))
def test_after_any_history_idle_tables_equal_the_current_versions(
    kind: str, history: list[tuple[Any, ...]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        World(Path(folder) / f"feeds.{kind}").live(history)
