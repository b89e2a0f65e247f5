"""ZIP archives, opened without trust in their names, counts and sizes."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from ploti.errors import SourceError

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_MOST_MEMBERS = 20_000
_ALWAYS_ALLOWED = 1 << 30
_MOST_UNPACKED = 32 << 30
_HIGHEST_RATIO = 100
_BLOCK = 1 << 20
_SHOWN = 10


class Archive:
    """An open archive: its members' names, and their bytes within one limit for all of them.

    The limit is a hundred times the archive's size, but 1 GiB at least and 32 GiB at most.
    """

    def __init__(self, file: zipfile.ZipFile, *, size: int) -> None:
        self._file = file
        self._left = min(max(_HIGHEST_RATIO * size, _ALWAYS_ALLOWED), _MOST_UNPACKED)
        self._members = {
            info.filename: info for info in file.infolist() if not info.is_dir() and _is_data(info)
        }

    @property
    def names(self) -> list[str]:
        """The names of the files in it, as it orders them."""
        return list(self._members)

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A member's bytes as they unpack; raises SourceError for none, broken ones, too many."""
        info = self._members.get(name)
        if info is None:
            raise SourceError(f"the archive has no '{name}'")
        self._left -= info.file_size
        if self._left < 0:
            raise SourceError(f"the archive unpacks to far more than its size, at '{name}'")
        try:
            with self._file.open(info) as member:
                yield member
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
            raise SourceError(f"'{name}' in the archive cannot be unpacked: {error}") from None

    def unpack(self, name: str, path: Path) -> None:
        """Write a member's bytes to a new file."""
        with self.open(name) as member, path.open("xb") as file:
            while block := member.read(_BLOCK):
                file.write(block)


@contextmanager
def open_archive(path: str) -> Iterator[Archive]:
    """The archive at `path`.

    Raises SourceError where it is none, or holds paths that lead out of it, links, members that
    are encrypted, or too many of them.
    """
    try:
        file = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise SourceError(f"the ZIP archive cannot be read: {error}") from None
    with file:
        for info in file.infolist():
            _check(info)
        if len(file.infolist()) > _MOST_MEMBERS:
            raise SourceError(f"the archive has more than {_MOST_MEMBERS:,} members")
        yield Archive(file, size=Path(path).stat().st_size)


def choose_member(names: Sequence[str], *, suffixes: tuple[str, ...], member: str | None) -> str:
    """The one name that ends in one of the suffixes, or the one that was declared.

    A declared member is named by its whole path or by its last part. Raises SourceError that
    lists the names where there is none, or more than one.
    """
    fitting = [name for name in names if name.lower().endswith(suffixes)]
    if member is not None:
        fitting = [name for name in fitting if member in {name, PurePosixPath(name).name}]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise SourceError(f"the archive has {_listed(fitting)}: declare source.member")
    wanted = f"'{member}'" if member else "data file" if len(suffixes) > 1 else suffixes[0]
    raise SourceError(f"the archive has no {wanted}; it has {_listed(names) or 'no files'}")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _is_data(info: zipfile.ZipInfo) -> bool:
    """What an archiver or a file manager adds by itself is none."""
    parts = PurePosixPath(info.filename).parts
    return "__MACOSX" not in parts and not parts[-1].startswith(".")


def _check(info: zipfile.ZipInfo) -> None:
    path = PurePosixPath(info.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise SourceError(f"the archive has a path that leads out of it: '{info.filename}'")
    if stat.S_ISLNK(info.external_attr >> 16):
        raise SourceError(f"the archive has a link, and only files are read: '{info.filename}'")
    if info.flag_bits & 1:
        raise SourceError(f"the archive is encrypted, at '{info.filename}'")
