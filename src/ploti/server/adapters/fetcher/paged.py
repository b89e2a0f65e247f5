"""Sources that give rows in pages, as the lines of one state: what they say, then their rows."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from yarl import URL

from ploti.server.adapters.fetcher.arcgis import layer_pages
from ploti.server.adapters.fetcher.asking import Ask, Page
from ploti.server.adapters.fetcher.datastore import Datastore
from ploti.server.adapters.fetcher.offsets import by_offset
from ploti.server.adapters.fetcher.soda import Soda
from ploti.server.sources.pages import described


async def lines(kind: str, url: str, *, ask: Ask) -> AsyncGenerator[bytes, None]:
    """A source's state, piece by piece.

    Raises SourceError for an answer that is no rows, TryAgain where the rows are not those that
    the source says it has.
    """
    begun = False
    async with aclosing(_pages(kind, URL(url), ask)) as pages:
        async for page in pages:
            if not begun:
                yield described(page.pages)
                begun = True
            yield b"".join(_line(bytes(row)) for row in page.rows)


def _line(row: bytes) -> bytes:
    """A row in a line; in JSON a line may end between tokens only."""
    return row.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


def _pages(kind: str, url: URL, ask: Ask) -> AsyncGenerator[Page, None]:
    match kind:
        case "arcgis":
            return layer_pages(url, ask)
        case "socrata":
            return by_offset(Soda(url, ask))
        case _:
            return by_offset(Datastore(url, ask))
