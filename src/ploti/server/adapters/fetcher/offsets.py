"""Sources read by offset: in a stable order, by the rows received, proved whole by their count."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from ploti.server.adapters.fetcher.asking import Page, TryAgain


class Offsets(Protocol):
    """A source that counts its rows and gives those after a number of them."""

    async def total(self) -> int:
        """How many rows it has."""
        ...

    async def page(self, offset: int) -> Page:
        """Some of the rows after so many, in an order that does not change."""
        ...


async def by_offset(source: Offsets) -> AsyncGenerator[Page, None]:
    """All pages; raises TryAgain where the rows are not as many, or as different, as counted."""
    total = await source.total()
    seen: set[bytes] = set()
    more = True
    while more:
        before = len(seen)
        page = await source.page(before)
        seen.update(page.ids)
        more = len(seen) < total
        if len(seen) != before + len(page.ids) or (more and not page.ids):
            raise TryAgain(
                f"the source has {total} rows, and a page after {before} of them gave"
                f" {len(page.ids)} of which {len(seen) - before} were new"
            )
        yield page
    if len(seen) != total or await source.total() != total:
        raise TryAgain(f"the source changed while it was read: it said that it has {total} rows")
