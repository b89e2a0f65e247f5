"""Sources that give rows in pages: in a stable order, by the rows received, proved whole."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import NamedTuple, TypeVar

import msgspec
from yarl import URL

from ploti.errors import SourceError
from ploti.server.adapters.fetcher.web import TryAgain

T = TypeVar("T")
Row = dict[str, msgspec.Raw]
Ask = Callable[[str], Awaitable[bytes]]
"""Gives the body of an address."""

_ROWS = 5000
"""Rows asked for at a time; a source may give fewer."""


class Page(NamedTuple):
    """Some rows, and how many the source says that it has, where it says so."""

    rows: list[Row]
    total: int | None


class _Result(msgspec.Struct):
    records: list[Row]
    total: int


class _Answer(msgspec.Struct):
    success: bool
    result: _Result | None = None
    error: msgspec.Raw | None = None


async def pages(kind: str, url: str, *, ask: Ask) -> AsyncGenerator[bytes, None]:
    """The rows of a `socrata` or `ckan` source as lines of JSON.

    Raises SourceError for an answer that is no rows, TryAgain where the rows are not as many, or
    not as different, as the source says that it has.
    """
    read, identity = (_socrata, ":id") if kind == "socrata" else (_ckan, "_id")
    seen: set[bytes] = set()
    total = await _total(kind, url, ask)
    while len(seen) < total:
        page = await read(url, len(seen), ask)
        before = len(seen)
        seen.update(bytes(row.get(identity) or msgspec.json.encode(row)) for row in page.rows)
        if len(seen) != before + len(page.rows) or not page.rows:
            raise TryAgain(
                f"the source has {total} rows, and a page after {before} of them gave"
                f" {len(page.rows)} of which {len(seen) - before} were new"
            )
        yield b"".join(_lines(page.rows))
    if len(seen) != total or await _total(kind, url, ask) != total:
        raise TryAgain(f"the source changed while it was read: it said that it has {total} rows")


def _lines(rows: list[Row]) -> Iterator[bytes]:
    return (msgspec.json.encode(row) + b"\n" for row in rows)


async def _total(kind: str, url: str, ask: Ask) -> int:
    if kind == "socrata":
        address = URL(url).update_query({"$select": "count(*)"})
        (count,) = _decode(await ask(str(address)), list[dict[str, str]])
        return int(next(iter(count.values())))
    return (await _ckan(url, 0, ask, limit=1)).total or 0


async def _socrata(url: str, offset: int, ask: Ask) -> Page:
    asked = {"$select": ":*,*", "$order": ":id", "$limit": str(_ROWS), "$offset": str(offset)}
    rows = _decode(await ask(str(URL(url).update_query(asked))), list[Row])
    return Page(rows=rows, total=None)


async def _ckan(url: str, offset: int, ask: Ask, *, limit: int = _ROWS) -> Page:
    asked = {"sort": "_id", "limit": str(limit), "offset": str(offset), "include_total": "true"}
    answer = _decode(await ask(str(URL(url).update_query(asked))), _Answer)
    if not answer.success or answer.result is None:
        said = bytes(answer.error or b"").decode(errors="replace")[:200]
        raise SourceError(f"the source answered that it failed: {said or 'without a reason'}")
    return Page(rows=answer.result.records, total=answer.result.total)


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = body[:200].decode(errors="replace")
        raise SourceError(f"the source answered no rows ({error}): {said}") from None
