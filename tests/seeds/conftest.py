"""A world for each sentence of the references, and an API."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from tests.fakes.world import World, play
from tests.integration.running import Running, running

Play = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as server:
        yield server
