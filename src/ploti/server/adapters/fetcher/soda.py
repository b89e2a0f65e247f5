"""A Socrata dataset by its SODA address."""

from __future__ import annotations

from itertools import zip_longest

import msgspec
from yarl import URL

from ploti.errors import SourceError
from ploti.server.adapters.fetcher.asking import Ask, Page, Reply, decoded
from ploti.server.sources.pages import PageField, Pages

_ROWS = 5000
"""Rows asked for at a time; a source may give fewer."""

_IDENTITY = ":id"
_CHOSEN = "$select"
_ORDERED = {"$order": _IDENTITY, "$limit": str(_ROWS)}


class Soda:
    """The `Offsets` of a `.../resource/abcd-1234.json`, of the columns and rows that it chooses."""

    def __init__(self, url: URL, ask: Ask) -> None:
        self._url = url
        self._ask = ask

    async def total(self) -> int:
        """How many rows it has."""
        return await self._ask(self._url.update_query({_CHOSEN: "count(*)"}), _count)

    async def page(self, offset: int) -> Page:
        """Rows in the order of their system's ids."""
        chosen = f":*,{self._url.query.get(_CHOSEN) or '*'}"
        asked = _ORDERED | {_CHOSEN: chosen, "$offset": str(offset)}
        return await self._ask(self._url.update_query(asked), _page)


def _count(reply: Reply) -> int:
    counted = decoded(reply.body, list[dict[str, str | int]])
    counts = [str(value) for row in counted for value in row.values()]
    if len(counts) != 1 or not counts[0].isdecimal():
        raise SourceError("the source does not say how many rows it has")
    return int(counts[0])


def _page(reply: Reply) -> Page:
    rows = decoded(reply.body, list[msgspec.Raw])
    ids = [bytes(decoded(bytes(row), dict[str, msgspec.Raw]).get(_IDENTITY, row)) for row in rows]
    return Page(rows=rows, ids=ids, pages=Pages(kind="socrata", fields=_fields(reply)))


def _fields(reply: Reply) -> list[PageField]:
    """The columns that the headers tell, also those that no row has a value of."""
    names = _listed(reply, "X-SODA2-Fields")
    types = _listed(reply, "X-SODA2-Types")
    if not names or len(types) not in {0, len(names)}:
        return []
    return [
        PageField(name=name, type=type_) for name, type_ in zip_longest(names, types, fillvalue="")
    ]


def _listed(reply: Reply, header: str) -> list[str]:
    """The texts of a header; a header that is too long is left out by the server."""
    try:
        return msgspec.json.decode(reply.headers.get(header, "[]"), type=list[str])
    except msgspec.DecodeError:
        return []
