"""The state of a source that gives rows in pages: what it says of its columns, then its rows.

The first line of such a state is its description, each other line a row as the source gave it.
"""

from __future__ import annotations

import msgspec

from ploti.errors import SourceError
from ploti.model.wire import Value

FORMAT = "pages"
"""The format's name; no declaration has it, since its kind of source tells it."""

_MARK = b'{"ploti_pages":1,'


class PageField(Value, kw_only=True):
    """A column as the source states it: its name, its type in the source's own word, its texts."""

    name: str
    type: str = ""
    description: str | None = None


class Shapes(Value, kw_only=True):
    """The geometry of an ArcGIS layer's rows: its type, its reference system, Z and M."""

    type: str
    reference: dict[str, object] | None = None
    z: bool = False
    m: bool = False


class Pages(Value, kw_only=True):
    """What a source says of its rows; `system` are columns that its software makes up.

    `local_times` says that dates are of no known zone.
    """

    kind: str
    fields: list[PageField] = []
    system: list[str] = []
    shapes: Shapes | None = None
    local_times: bool = False


def described(pages: Pages) -> bytes:
    """The first line of a state."""
    return _MARK + msgspec.json.encode(pages)[1:] + b"\n"


def is_pages(head: bytes) -> bool:
    """Whether a file that begins so is such a state."""
    return head.startswith(_MARK)


def description(line: bytes) -> Pages:
    """What a first line says; raises SourceError where it is none."""
    try:
        return msgspec.json.decode(line, type=Pages)
    except msgspec.DecodeError as error:
        raise SourceError(f"the rows of a paged source are not described: {error}") from None
