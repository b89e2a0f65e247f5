"""What every store of blobs does; so far there is one, a local folder."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from ploti.errors import Forbidden, NotFound, SourceError
from ploti.model.wire import Instant
from ploti.server.adapters.blobs import FolderBlobs, LinkSigner

T = TypeVar("T")
NAME = "datasets/ds_a/1/att_1/snapshot.parquet"
EXPIRES = Instant.parse("2026-11-30T13:00:00Z")


class Now:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.moment = Instant.parse("2026-11-30T12:00:00Z")

    def __call__(self) -> Instant:
        return self.moment


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def signer(now: Now) -> LinkSigner:
    return LinkSigner(b"s" * 32, base="http://files.example/", now=now)


@pytest.fixture
def blobs(tmp_path: Path, signer: LinkSigner) -> FolderBlobs:
    return FolderBlobs(tmp_path / "blobs", signer=signer)


def run(work: Awaitable[T]) -> T:
    async def main() -> T:
        return await work

    return asyncio.run(main())


async def read(blobs: FolderBlobs, name: str) -> bytes:
    """A blob whole."""
    async with blobs.open(name) as file:
        return await file.read(0, length=file.size)


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def broken_stream() -> AsyncIterator[bytes]:
    yield b"half"
    raise ConnectionError("gone")


def test_a_received_stream_is_kept_whole_with_its_size_and_sha256(blobs: FolderBlobs) -> None:
    chunks = [bytes([n]) * 70_000 for n in range(40)]
    kept = run(blobs.receive(NAME, stream(*chunks), limit=10_000_000))
    whole = b"".join(chunks)
    assert (kept.name, kept.bytes) == (NAME, len(whole))
    assert kept.sha256 == hashlib.sha256(whole).hexdigest()
    assert run(read(blobs, NAME)) == whole


def test_a_folder_that_keeps_nothing_is_found_out_and_nothing_is_left(
    blobs: FolderBlobs, tmp_path: Path
) -> None:
    run(blobs.try_out())
    assert run(blobs.names("")) == []
    assert list((tmp_path / "blobs/.unfinished").iterdir()) == []
    shutil.rmtree(tmp_path / "blobs")
    with pytest.raises(FileNotFoundError):
        run(blobs.try_out())


def test_a_stream_over_its_limit_is_refused_and_leaves_nothing(
    blobs: FolderBlobs, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match="larger than 5 bytes"):
        run(blobs.receive(NAME, stream(b"123456"), limit=5))
    assert run(blobs.names("")) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_stream_that_would_fill_the_disk_is_refused_and_leaves_nothing(
    tmp_path: Path, signer: LinkSigner
) -> None:
    more_than_there_is = shutil.disk_usage(tmp_path).total + 1
    blobs = FolderBlobs(tmp_path / "blobs", signer=signer, spare=more_than_there_is)
    with pytest.raises(SourceError, match="does not fit on the server's disk"):
        run(blobs.receive(NAME, stream(b"123456"), limit=100))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_stream_that_breaks_off_leaves_nothing(blobs: FolderBlobs, tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        run(blobs.receive(NAME, broken_stream(), limit=100))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_a_killed_process_left_unfinished_is_removed_at_the_next_start(
    blobs: FolderBlobs, tmp_path: Path, signer: LinkSigner
) -> None:
    run(blobs.receive(NAME, stream(b"kept"), limit=100))
    (tmp_path / "blobs" / ".unfinished" / "7").write_bytes(b"half")
    again = FolderBlobs(tmp_path / "blobs", signer=signer)
    assert run(again.names("")) == [NAME]
    assert list((tmp_path / "blobs" / ".unfinished").iterdir()) == []


def test_an_adopted_file_moves_in(blobs: FolderBlobs, tmp_path: Path) -> None:
    built = tmp_path / "built.parquet"
    built.write_bytes(b"PAR1")
    run(blobs.adopt(NAME, str(built)))
    assert not built.exists()
    assert run(read(blobs, NAME)) == b"PAR1"


def test_no_blob_is_written_twice(blobs: FolderBlobs, tmp_path: Path) -> None:
    run(blobs.receive(NAME, stream(b"first"), limit=100))
    with pytest.raises(FileExistsError):
        run(blobs.receive(NAME, stream(b"second"), limit=100))
    assert run(read(blobs, NAME)) == b"first"


def test_a_blob_can_be_read_at_a_path_while_the_context_is_open(blobs: FolderBlobs) -> None:
    async def main() -> bytes:
        await blobs.receive(NAME, stream(b"bytes"), limit=100)
        async with blobs.local(NAME) as path:
            return await asyncio.to_thread(Path(path).read_bytes)

    assert run(main()) == b"bytes"


def test_deleting_removes_the_blob_and_the_folders_it_leaves_empty(
    blobs: FolderBlobs, tmp_path: Path
) -> None:
    other = "datasets/ds_a/2/att_2/snapshot.parquet"
    for name in (NAME, other):
        run(blobs.receive(name, stream(b"x"), limit=100))
    for _ in range(2):
        run(blobs.delete(NAME))
    assert run(blobs.names("datasets/ds_a/")) == [other]
    assert not (tmp_path / "blobs/datasets/ds_a/1").exists()


def test_names_lists_only_what_lies_below_the_prefix(blobs: FolderBlobs) -> None:
    for name in ("states/b", "states/a", "statesmen/c"):
        run(blobs.receive(name, stream(b"x"), limit=100))
    assert run(blobs.names("states/")) == ["states/a", "states/b"]
    assert run(blobs.names("nothing/")) == []


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/.hidden", "a/b\x00", "a/", "a\n"]
)
def test_a_name_never_leads_outside_the_folder(blobs: FolderBlobs, name: str) -> None:
    with pytest.raises(ValueError, match="no name for a blob"):
        run(blobs.receive(name, stream(b"x"), limit=100))
    with pytest.raises(ValueError, match="no name for a blob"):
        run(read(blobs, name))


def test_a_blob_that_is_not_there_is_not_found(blobs: FolderBlobs) -> None:
    with pytest.raises(NotFound, match="not kept any more"):
        run(read(blobs, NAME))


def test_an_open_blob_is_read_by_place_and_outlives_its_deletion(blobs: FolderBlobs) -> None:
    async def main() -> tuple[int, bytes, bytes]:
        await blobs.receive(NAME, stream(b"0123456789"), limit=100)
        async with blobs.open(NAME) as file:
            await blobs.delete(NAME)
            return file.size, await file.read(3, length=4), await file.read(10, length=4)

    assert run(main()) == (10, b"3456", b"")


def test_as_many_streams_as_come_are_received_side_by_side(blobs: FolderBlobs) -> None:
    async def main() -> list[str]:
        bodies = [os.urandom(300_000) for _ in range(12)]
        kept = await asyncio.gather(
            *(
                blobs.receive(f"states/{n}", stream(body), limit=1_000_000)
                for n, body in enumerate(bodies)
            )
        )
        assert [hashlib.sha256(body).hexdigest() for body in bodies] == [k.sha256 for k in kept]
        return await blobs.names("states/")

    assert len(run(main())) == 12


def signed(blobs: FolderBlobs) -> tuple[str, dict[str, str]]:
    link = blobs.link(NAME, file_name="a b.parquet", sha256="ab" * 32, expires_at=EXPIRES)
    parts = urlsplit(link)
    assert link.startswith("http://files.example/files/datasets/")
    return unquote(parts.path.removeprefix("/files/")), dict(parse_qsl(parts.query))


def test_a_signed_link_says_its_blob_its_name_and_its_sha256(blobs: FolderBlobs) -> None:
    name, query = signed(blobs)
    link = blobs.check(name, query)
    assert (link.blob, link.file_name, link.sha256) == (NAME, "a b.parquet", "ab" * 32)


def test_a_link_is_refused_from_its_expiry_on(blobs: FolderBlobs, now: Now) -> None:
    name, query = signed(blobs)
    now.moment = EXPIRES
    with pytest.raises(Forbidden, match="expired"):
        blobs.check(name, query)


@pytest.mark.parametrize("field", ["expires", "file", "key", "sha256", "signature"])
def test_a_link_with_any_field_changed_or_missing_is_refused(
    blobs: FolderBlobs, field: str
) -> None:
    name, query = signed(blobs)
    for other in (str(int(EXPIRES.timestamp()) + 1), "é", ""):
        with pytest.raises(Forbidden, match="changed"):
            blobs.check(name, query | {field: other})
    with pytest.raises(Forbidden, match="whole link"):
        blobs.check(name, {key: value for key, value in query.items() if key != field})


def test_a_link_of_another_blob_or_another_secret_is_refused(
    blobs: FolderBlobs, tmp_path: Path, now: Now
) -> None:
    name, query = signed(blobs)
    with pytest.raises(Forbidden, match="changed"):
        blobs.check(name.replace("/1/", "/2/"), query)
    other = LinkSigner(b"t" * 32, base="http://files.example", now=now)
    with pytest.raises(Forbidden, match="changed"):
        other.check(name, query)


def test_a_link_of_an_older_secret_is_good_while_it_is_named(now: Now) -> None:
    def made(secret: bytes, *older: bytes) -> LinkSigner:
        return LinkSigner(secret, base="http://files.example", now=now, older=older)

    expires = Instant.of(now() + timedelta(hours=1))
    link = made(b"o" * 32).link("a", file_name="a.csv", sha256="00", expires_at=expires)
    query = dict(parse_qsl(urlsplit(link).query))
    assert made(b"n" * 32, b"o" * 32).check("a", query).file_name == "a.csv"
    with pytest.raises(Forbidden, match="changed"):
        made(b"n" * 32).check("a", query)


def test_a_copy_outlives_the_blob_that_it_was_made_of(blobs: FolderBlobs) -> None:
    run(blobs.receive(NAME, stream(b"bytes"), limit=10))
    run(blobs.copy(NAME, "states/ds_other/att_2"))
    run(blobs.delete(NAME))
    assert run(read(blobs, "states/ds_other/att_2")) == b"bytes"
    assert run(blobs.names("")) == ["states/ds_other/att_2"]


@pytest.mark.parametrize(
    ("start", "count", "lines"),
    [(0, 2, [b"a\n", b"bb\n"]), (1, 9, [b"bb\n", b"c"]), (2, 1, [b"c"]), (3, 1, []), (9, 9, [])],
)
def test_lines_are_read_from_one_on_and_no_more_than_are_asked_for(
    blobs: FolderBlobs, start: int, count: int, lines: list[bytes]
) -> None:
    run(blobs.receive(NAME, stream(b"a\nb", b"b\nc"), limit=100))
    assert run(blobs.lines(NAME, start=start, count=count)) == lines
