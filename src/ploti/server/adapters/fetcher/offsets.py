"""Sources read by offset: in a stable order, by the rows received, proved whole by their count."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from ploti.server.adapters.fetcher.asking import Page, TryAgain
from ploti.server.adapters.fetcher.seen import Seen


class Offsets(Protocol):
    """A source that counts its rows and gives those after a number of them."""

    async def total(self) -> int:
        """How many rows it has."""
        ...

    async def page(self, offset: int) -> Page:
        """Some of the rows after so many, in an order that does not change."""
        ...


async def by_offset(source: Offsets) -> AsyncGenerator[Page, None]:
    """All pages; raises TryAgain where the rows are not as many, or as different, as counted.

    Each page is asked for from the last row of the one before, which it has to begin with: a row
    that left before it would move the others up, and one of them would be in no page.
    """
    total = await source.total()
    with Seen() as seen:
        async with aclosing(_pages(source, seen, total=total)) as pages:
            async for page in pages:
                yield page
        count = len(seen)
    if count != total or await source.total() != total:
        raise TryAgain(f"the source changed while it was read: it said that it has {total} rows")


async def _pages(source: Offsets, seen: Seen, *, total: int) -> AsyncGenerator[Page, None]:
    last: list[bytes] = []
    more = True
    while more:
        before = len(seen)
        page = await source.page(before - len(last))
        if page.ids[: len(last)] != last:
            raise TryAgain(f"the source changed while it was read, at row {before} of {total}")
        new = _without(page, len(last))
        if last and not new.ids:
            last = []  # pages of a single row have no room for it
            continue
        await seen.add(new.ids)
        more = len(seen) < total
        if len(seen) != before + len(new.ids) or (more and not new.ids):
            raise TryAgain(
                f"the source has {total} rows, and a page after {before} of them gave"
                f" {len(new.ids)} of which {len(seen) - before} were new"
            )
        last = new.ids[-1:]
        yield new


def _without(page: Page, rows: int) -> Page:
    return page._replace(rows=page.rows[rows:], ids=page.ids[rows:])
