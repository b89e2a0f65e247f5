"""A world for each sentence of the references."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.fakes.world import World, play

Play = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)
