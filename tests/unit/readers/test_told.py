"""A long read tells how much of its source is read."""

import gzip
import threading
from pathlib import Path

import pytest
from tests.unit.readers.reading import declare

from ploti.model.admin import BuildProgress, BuildStage
from ploti.server.adapters.readers import READERS
from ploti.server.adapters.readers.told import told
from ploti.server.build.progress import Telling
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.formats import PACKED
from ploti.server.sources.raw import RawTable

SIZE = 32 << 20


class Halfway:
    """A reader that reads half of a file, and waits until that is told."""

    format = "csv"

    def __init__(self, seen: threading.Event) -> None:
        self._seen = seen

    def matches(self, name: str, head: bytes) -> bool:
        return not name and not head

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        with Path(path).open("rb", buffering=0) as file:
            for _ in range(SIZE >> 21):
                file.read(1 << 20)
            assert self._seen.wait(60)
        return RawTable(relation=folder, columns=[], geometry=None, findings=[], rows=0)


def test_a_share_is_told_while_the_reader_reads_and_none_afterwards(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_bytes(b"a" * SIZE)
    seen, shares = threading.Event(), list[float]()

    def take(progress: BuildProgress) -> None:
        if progress.share:
            shares.append(progress.share)
            seen.set()

    telling = Telling(take)
    telling.begin(BuildStage.READING)
    (reader,) = told([Halfway(seen)], telling, look_every=0.01)
    assert reader.matches("", b"")
    reader.read(str(source), declaration=declare(), folder=str(tmp_path / "none"))
    assert shares[-1] == pytest.approx(0.5, abs=0.1)


def test_what_is_unpacked_counts_as_to_be_read(tmp_path: Path) -> None:
    source = tmp_path / "a.csv.gz"
    source.write_bytes(gzip.compress(b"id,t\n" + b"1,a\n" * 2_000_000))
    folder = tmp_path / "folder"
    folder.mkdir()
    shares: list[float | None] = []
    telling = Telling(lambda progress: shares.append(progress.share))
    telling.begin(BuildStage.READING)
    packed = [reader for reader in READERS if reader.format == PACKED]
    (reader,) = told(packed, telling, look_every=0.001)
    table = reader.read(str(source), declaration=declare(), folder=str(folder))
    assert table.rows == 2_000_000
    told_shares = [share for share in shares if share]
    assert told_shares == sorted(told_shares)
    assert any(0.1 < share < 0.9 for share in told_shares)
