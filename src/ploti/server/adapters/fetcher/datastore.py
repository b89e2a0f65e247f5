"""A table in the datastore of a CKAN."""

from __future__ import annotations

import msgspec
from yarl import URL

from ploti.errors import SourceError
from ploti.server.adapters.fetcher.asking import Ask, Page, Reply, decoded, failure
from ploti.server.sources.pages import PageField, Pages

_ROWS = 5000
"""Rows asked for at a time; a source may give fewer."""

_IDENTITY = "_id"


class _Field(msgspec.Struct):
    id: str
    type: str = ""
    info: dict[str, object] | None = None


class _Result(msgspec.Struct):
    records: list[msgspec.Raw]
    total: int
    fields: list[_Field] = []


class _Answer(msgspec.Struct):
    success: bool
    result: _Result | None = None
    error: msgspec.Raw = msgspec.Raw()


class Datastore:
    """The `Offsets` of a `.../api/3/action/datastore_search?resource_id=...`."""

    def __init__(self, url: URL, ask: Ask) -> None:
        self._url = url
        self._ask = ask

    async def total(self) -> int:
        """How many rows it has."""
        return (await self._search(0, limit=1)).total

    async def page(self, offset: int) -> Page:
        """Rows in the order of their system's ids."""
        found = await self._search(offset, limit=_ROWS)
        ids = [
            bytes(decoded(bytes(row), dict[str, msgspec.Raw]).get(_IDENTITY, row))
            for row in found.records
        ]
        pages = Pages(kind="ckan", fields=[*map(_described, found.fields)])
        return Page(rows=found.records, ids=ids, pages=pages)

    async def _search(self, offset: int, *, limit: int) -> _Result:
        asked = {"sort": _IDENTITY, "limit": str(limit), "offset": str(offset)}
        if chosen := self._url.query.getall("fields", []):
            asked["fields"] = ",".join([*chosen, _IDENTITY])
        address = self._url.update_query(asked | {"include_total": "true"})
        return await self._ask(address, _result)


def _result(reply: Reply) -> _Result:
    answer = decoded(reply.body, _Answer)
    if not answer.success or answer.result is None:
        raise SourceError(failure(bytes(answer.error)))
    return answer.result


def _described(field: _Field) -> PageField:
    """A column with what its data dictionary says of it."""
    notes = (field.info or {}).get("notes")
    return PageField(
        name=field.id,
        type=field.type,
        description=notes if isinstance(notes, str) and notes else None,
    )
