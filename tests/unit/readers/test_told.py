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


class Halting:
    """A reader that reads so much of a file, unpacks so much, and waits until that is told."""

    format = "csv"

    def __init__(self, seen: threading.Event, *, reads: int, unpacks: int = 0) -> None:
        self._seen = seen
        self._reads = reads
        self._unpacks = unpacks

    def matches(self, name: str, head: bytes) -> bool:
        return not name and not head

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        Path(folder, "unpacked.csv").write_bytes(b"a" * self._unpacks)
        with Path(path).open("rb", buffering=0) as file:
            for _ in range(self._reads >> 20):
                file.read(1 << 20)
            assert self._seen.wait(60)
        return RawTable(relation=folder, columns=[], geometry=None, findings=[], rows=0)


def last_share(folder: Path, least: float, *, reads: int, unpacks: int = 0) -> float:
    """The last share told of a reader that reads so much of `SIZE` bytes; it waits for `least`."""
    source = folder / "a.csv"
    source.write_bytes(b"a" * SIZE)
    seen, shares = threading.Event(), list[float]()

    def take(progress: BuildProgress) -> None:
        shares.append(progress.share or 0)
        if shares[-1] >= least:
            seen.set()

    telling = Telling(take)
    telling.begin(BuildStage.READING)
    (reader,) = told([Halting(seen, reads=reads, unpacks=unpacks)], telling, look_every=0.01)
    assert reader.matches("", b"")
    (folder / "left").mkdir()
    reader.read(str(source), declaration=declare(), folder=str(folder / "left"))
    return shares[-1]


def test_a_share_is_told_while_the_reader_reads_and_none_afterwards(tmp_path: Path) -> None:
    assert last_share(tmp_path, 0.45, reads=SIZE // 2) == pytest.approx(0.5, abs=0.1)


def test_what_is_unpacked_counts_as_to_be_read(tmp_path: Path) -> None:
    share = last_share(tmp_path, 0.2, reads=SIZE, unpacks=3 * SIZE)
    assert share == pytest.approx(0.25, abs=0.05)


def test_of_a_packed_file_shares_are_told_that_only_grow(tmp_path: Path) -> None:
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
