"""What becomes of bytes that an earlier try left."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ploti.client.partial import Partial, check_room, is_there
from ploti.errors import SyncError
from ploti.model.version import File

BODY = b"0123456789" * 1000
MakePartial = Callable[[bytes], Partial]


def file_of(body: bytes, url: str = "http://127.0.0.1/f") -> File:
    return File(
        url=url,
        format="csv",
        rows=1,
        bytes=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.part"


@pytest.fixture
def partial_of(path: Path) -> Iterator[MakePartial]:
    with ExitStack() as stack:

        def make(left: bytes) -> Partial:
            path.write_bytes(left)
            opened = stack.enter_context(path.open("a+b", buffering=0))
            return Partial(opened, file_of(BODY), None)

        yield make


def test_what_is_left_is_counted_and_hashed_and_the_rest_is_added(
    path: Path, partial_of: MakePartial
) -> None:
    partial = partial_of(BODY[:4000])
    partial.take_up()
    assert partial.done == 4000
    partial.append(BODY[4000:])
    assert partial.is_whole()
    assert partial.is_right()
    assert path.read_bytes() == BODY


def test_more_than_the_file_has_is_dropped_and_never_added(
    path: Path, partial_of: MakePartial
) -> None:
    partial = partial_of(BODY + b"x")
    partial.take_up()
    assert (partial.done, path.read_bytes()) == (0, b"")
    with pytest.raises(SyncError, match="more bytes"):
        partial.append(BODY + b"x")


def test_wrong_bytes_are_whole_and_not_right(partial_of: MakePartial) -> None:
    partial = partial_of(b"")
    partial.append(b"x" * len(BODY))
    assert partial.is_whole()
    assert not partial.is_right()


def test_a_fresh_link_must_lead_to_the_same_file(partial_of: MakePartial) -> None:
    partial = partial_of(b"")
    partial.renew(file_of(BODY, "http://127.0.0.1/fresh"))
    assert partial.file.url == "http://127.0.0.1/fresh"
    with pytest.raises(SyncError, match="another file"):
        partial.renew(file_of(b"other"))


def test_a_file_is_there_only_with_its_sum(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert not is_there(path, file_of(BODY))
    path.write_bytes(b"x" * len(BODY))
    assert not is_there(path, file_of(BODY))
    path.write_bytes(BODY)
    assert is_there(path, file_of(BODY))


def test_a_disk_without_room_is_told_before_the_first_byte(tmp_path: Path) -> None:
    check_room(tmp_path, 1)
    with pytest.raises(SyncError, match="make room"):
        check_room(tmp_path, 2**62)
