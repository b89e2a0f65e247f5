"""Reads FlatGeobuf feature by feature: GDAL would bend its unsigned numbers and cut its times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct, error, unpack_from
from typing import BinaryIO, NamedTuple

from ploti.errors import SourceError
from ploti.server.adapters.readers.crs_names import from_code, from_wkt
from ploti.server.adapters.readers.flatbuffer import Table
from ploti.server.adapters.readers.flatgeobuf_geometry import to_wkb
from ploti.server.adapters.readers.raw_file import RawFile, RawRows, Stated, refuse_points
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawKind, RawTable

_MAGIC = b"fgb\x03fgb"
_HEAD = 8
_LARGEST_HEAD = 10 << 20
_LARGEST_FEATURE = 1 << 30
_NODE = 40


class _Type(NamedTuple):
    """A column's type: how its values are stored (None: a length and so many bytes), and said."""

    stored: Struct | None
    stated: RawKind
    type: str | None
    text: Callable[..., str]


def _text(value: bytes) -> str:
    return value.decode("utf-8")


def _truth(value: bool) -> str:  # noqa: FBT001 - the value itself
    return "true" if value else "false"


_INTEGERS = [_Type(Struct("<" + kind), RawKind.INTEGER, None, str) for kind in "bBhHiIqQ"]
_TYPES = [
    *_INTEGERS[:2],
    _Type(Struct("<?"), RawKind.BOOLEAN, None, _truth),
    *_INTEGERS[2:],
    _Type(Struct("<f"), RawKind.NUMBER, "float64", repr),
    _Type(Struct("<d"), RawKind.NUMBER, "float64", repr),
    _Type(None, RawKind.STRING, None, _text),
    _Type(None, RawKind.JSON, None, _text),
    _Type(None, RawKind.STRING, None, _text),
    _Type(None, RawKind.STRING, None, bytes.hex),
]


class _Header(NamedTuple):
    """What stands before the features."""

    columns: list[tuple[str, _Type]]
    geometry_type: int
    features: int
    index_bytes: int
    crs: str | None


class FlatGeobufReader:
    """FlatGeobuf; date-times are the texts that it holds, JSON likewise."""

    format = "flatgeobuf"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the head is FlatGeobuf's."""
        del name
        return head.startswith(_MAGIC)

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the features into `folder`."""
        refuse_points(declaration)
        with Path(path).open("rb") as file:
            try:
                header = _header(file)
            except (IndexError, ValueError, error) as reason:
                raise SourceError(f"the FlatGeobuf header cannot be read: {reason}") from None
            return _read(file, header, folder=folder)


def _read(file: BinaryIO, header: _Header, *, folder: str) -> RawTable:
    width = len(header.columns)
    with RawFile(folder, width=width, spatial=True) as raw:
        rows = RawRows(raw, width=width, spatial=True)
        count = 0
        for count, buffer in enumerate(_features(file, header), 1):
            try:
                values, wkb = _feature(buffer, header)
            except (IndexError, ValueError, error) as reason:
                raise SourceError(f"feature {count:,} cannot be read: {reason}") from None
            rows.add(values, geometry=wkb)
        rows.flush()
    if header.features and count != header.features:
        raise SourceError(f"the file holds {count:,} features and says {header.features:,}")
    columns = [Stated(name, type_.stated, type_.type) for name, type_ in header.columns]
    return raw.table(columns, crs=header.crs)


def _header(file: BinaryIO) -> _Header:
    if not file.read(_HEAD).startswith(_MAGIC):
        raise ValueError("the file is no FlatGeobuf of version 3")
    (size,) = unpack_from("<I", file.read(4), 0)
    if size > _LARGEST_HEAD:
        raise ValueError("it is larger than 10 MiB")
    table = Table.root(file.read(size))
    columns = [_column(each) for each in table.tables(7)]
    if not columns and not table.number(8, "Q"):
        raise ValueError("it has no columns")
    return _Header(
        columns=columns,
        geometry_type=table.number(2, "B"),
        features=table.number(8, "Q"),
        index_bytes=_index_size(table.number(8, "Q"), table.number(9, "H", default=16)),
        crs=_crs(table.table(10)),
    )


def _column(table: Table) -> tuple[str, _Type]:
    number = table.number(1, "B")
    if number >= len(_TYPES):
        raise ValueError(f"column '{table.text(0)}' has the type {number}, which is unknown")
    return table.text(0) or "", _TYPES[number]


def _crs(table: Table | None) -> str | None:
    if table is None:
        return None
    code = table.text(5) or table.number(1, "i")
    if code and (authority := table.text(0) or "EPSG").upper() in {"EPSG", "ESRI", "OGC"}:
        return from_code(authority, code)
    return from_wkt(table.text(4))


def _index_size(features: int, node_size: int) -> int:
    """The bytes of the packed tree over so many features, whose nodes hold `node_size` others."""
    if not features or not node_size:
        return 0
    if node_size < 2:
        raise ValueError("its index has nodes of one")
    level = -(-features // node_size)
    nodes = features + level
    while level > 1:
        level = -(-level // node_size)
        nodes += level
    return nodes * _NODE


def _features(file: BinaryIO, header: _Header) -> Iterator[bytes]:
    file.seek(header.index_bytes, 1)
    while size := file.read(4):
        length = unpack_from("<I", size.ljust(4, b"\0"))[0]
        if length > _LARGEST_FEATURE:
            raise SourceError("a feature says that it is larger than 1 GiB")
        buffer = file.read(length)
        if len(buffer) < length or len(size) < 4:
            raise SourceError("the file ends inside a feature: it is cut short")
        yield buffer


def _feature(buffer: bytes, header: _Header) -> tuple[list[str | None], bytes | None]:
    table = Table.root(buffer)
    own = [_column(each) for each in table.tables(2)]
    if own and own != header.columns:
        raise ValueError("it has columns of its own, other than the file's")
    geometry = table.table(0)
    wkb = to_wkb(geometry, header.geometry_type) if geometry else None
    values = _values(table.bytes_(1) or b"", header.columns)
    if not own:
        table.check_read()
    return values, wkb


def _values(data: bytes, columns: list[tuple[str, _Type]]) -> list[str | None]:
    values: list[str | None] = [None] * len(columns)
    at = 0
    while at < len(data):
        (place,) = unpack_from("<H", data, at)
        name, (stored, _, _, text) = columns[place]
        if values[place] is not None:
            raise ValueError(f"it has two values of the column '{name}'")
        at += 2
        if stored:
            values[place] = text(*stored.unpack_from(data, at))
            at += stored.size
        else:
            (length,) = unpack_from("<I", data, at)
            at += 4 + length
            if at > len(data):
                raise IndexError("its values are cut short")
            values[place] = text(data[at - length : at])
    return values
