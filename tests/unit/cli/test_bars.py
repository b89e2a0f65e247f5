"""The bar on a terminal says what goes on, and there is none elsewhere."""

from __future__ import annotations

import io

from rich.console import Console

from ploti.cli.bars import watching
from ploti.model.ids import DatasetId
from ploti.sync.progress import Moment, Progress


def moment(kind: Moment, detail: str = "") -> Progress:
    return Progress(moment=kind, detail=detail, dataset_id=DatasetId("ds_permits"))


def test_it_tells_bytes_and_what_goes_on_and_keeps_the_lines_that_stay() -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=120)
    with watching(quiet=False, console=console) as bars:
        assert bars is not None
        bars.show(moment(Moment.LOADING))
        bars.transferred(5_000_000, 10_000_000)
        bars._bar.refresh()
        bars.show(moment(Moment.CHECKING, "table permits, 1 of 2"))
        bars._bar.refresh()
        bars.say("ds_permits: [bold] version 2")
    told = shown.getvalue()
    assert "ds_permits: fetching" in told
    assert "5.0/10.0 MB" in told
    assert "ds_permits: verifying table permits, 1 of 2" in told
    assert "ds_permits: [bold] version 2" in told


def test_there_is_none_where_nobody_looks() -> None:
    with watching(quiet=False) as bars:
        assert bars is None
    with watching(quiet=True, console=Console(file=io.StringIO())) as bars:
        assert bars is None
