"""`ploti demo`: it plays to the end, stops at a wrong count, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.serving import PLOTI, environment

from ploti.cli import run
from ploti.demo import story
from ploti.demo.history import State, read_states
from ploti.model.version import Counts


@contextmanager
def playing(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo in a group of its own, as a terminal starts it; the group is killed at the end."""
    with subprocess.Popen(
        [*PLOTI, "demo", "--data", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            if runs(process):
                os.killpg(process.pid, signal.SIGKILL)


def runs(process: subprocess.Popen[str]) -> bool:
    """Whether any process of the demo is left."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_plays_all_states_and_proves_the_copy(tmp_path: Path) -> None:
    with playing(tmp_path / "demo") as demo:
        told, complaints = demo.communicate(timeout=300)
        assert (demo.returncode, complaints) == (0, "")
        assert not runs(demo)
    for number, state in enumerate(read_states(), start=1):
        assert f"version {number}: {state.rows:,} airports" in told
    assert told.count("HELD for review") == 1
    assert "world_airports  8        equal" in told
    assert "every count was the true one" in told


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_whoever_stops_it_stops_its_server_and_its_sync(tmp_path: Path, by: signal.Signals) -> None:
    """Ctrl-C reaches the whole group, SIGTERM the demo alone."""
    with playing(tmp_path / "demo") as demo:
        assert demo.stdout is not None
        assert any("pushed in turn" in line for line in demo.stdout)
        (os.killpg if by is signal.SIGINT else os.kill)(demo.pid, by)
        told, complaints = demo.communicate(timeout=60)
        assert (demo.returncode, complaints) == (128 + by, ""), told
        assert not runs(demo)


def test_a_count_that_is_not_the_true_one_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = read_states()
    wrong = State(first.name, first.rows, Counts(added=first.rows - 1, changed=0, removed=0))
    monkeypatch.setattr(story, "read_states", lambda: [wrong, *others])
    assert run(["demo", "--data", str(tmp_path / "demo")]) == 1
    said = capsys.readouterr()
    assert said.err.startswith(f"Error: the counts of {first.name}: found ")
    assert f"added={first.rows}" in said.err
    assert said.err.count("\n") == 1
    assert "every count was the true one" not in said.out
