"""A check or a push under way, in words and as a bar."""

import io
import threading

import pytest
from rich.console import Console

from ploti.cli.building import drawn, following, say_progress
from ploti.errors import TransportError
from ploti.model.admin import BuildProgress, BuildStage, BuildUnderWay
from ploti.model.ids import DatasetId
from ploti.model.wire import Instant

WRITING = BuildProgress(stage=BuildStage.WRITING, rows=1_692_730, share=0.45)


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (None, None),
        (BuildProgress(stage=BuildStage.READING), "reading"),
        (BuildProgress(stage=BuildStage.TYPING, rows=0), "typing, 0 rows"),
        (WRITING, "writing 45%, 1,692,730 rows"),
    ],
)
def test_progress_is_few_words(progress: BuildProgress | None, words: str | None) -> None:
    assert say_progress(progress) == words


def test_there_is_no_bar_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with following("ds_a", quiet=False) as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


def test_the_bar_says_what_the_server_tells_once_the_file_is_sent() -> None:
    looks = 0
    looked = threading.Event()

    def look() -> BuildUnderWay:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise TransportError("gone for a moment")
        if looks > 20:
            looked.set()
        return BuildUnderWay(
            dataset_id=DatasetId("ds_a"),
            version=2,
            since=Instant.parse("2026-10-18T06:13:02.000Z"),
            progress=WRITING,
        )

    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    with drawn(look, sending="a.csv", console=console, look_every=0.02) as progress:
        progress(1, 2)
        assert looks == 0
        progress(2, 2)
        assert looked.wait(60)
    assert "sending a.csv" in out.getvalue()
    assert "writing 45%, 1,692,730 rows" in out.getvalue()
