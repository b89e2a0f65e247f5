"""Brings a declared source's bytes into the blobs: one deadline, a few tries, nothing half kept."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import sleep
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import PurePosixPath
from typing import TypeVar

from aiohttp.abc import AbstractResolver

from ploti.errors import SourceError
from ploti.server.adapters.fetcher.folders import Folders
from ploti.server.adapters.fetcher.limits import Limits
from ploti.server.adapters.fetcher.paged import pages
from ploti.server.adapters.fetcher.web import TryAgain, Web
from ploti.server.ports.outside import Blobs, Fetched, NotModified
from ploti.server.sources.declaration import PAGED, Source
from ploti.server.sources.location import file_path
from ploti.server.sources.validators import Validators

_THREADS = 4
_SELF_PROVING = {"geojson"}
_LARGEST_PAGE = 64 << 20
T = TypeVar("T")


class SourceFetcher:
    """The Fetcher port; `resolver` and `trust` stand in for the system's, in tests."""

    def __init__(
        self,
        blobs: Blobs,
        *,
        file_roots: Sequence[str],
        allow_networks: Sequence[str],
        max_source: int,
        user_agent: str,
        limits: Limits | None = None,
        resolver: AbstractResolver | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._blobs = blobs
        self._max_source = max_source
        self._limits = limits or Limits()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="fetch")
        self._folders = Folders(file_roots, threads=self._threads)
        self._web = Web(
            allow_networks=allow_networks,
            user_agent=user_agent,
            limits=self._limits,
            threads=self._threads,
            resolver=resolver,
            trust=trust,
        )

    async def fetch(
        self, source: Source, *, into: str, known: Validators | None = None
    ) -> Fetched | NotModified:
        """Bring the source's bytes into the blob `into`; raises SourceError with a reason.

        With `known` the source may say instead that they are as it said then.
        """
        if source.kind is None or source.url is None:
            raise SourceError("the dataset has no source to check: its states are pushed")
        try:
            async with asyncio.timeout(self._limits.total):
                if source.kind == "file":
                    return await self._fetch_file(source.url, into=into)
                if source.kind in PAGED:
                    return await self._fetch_pages(source.kind, source.url, into=into)
                return await self._fetch_web(source, into=into, known=known)
        except TimeoutError:
            raise SourceError(
                f"the source was not read within {self._limits.total:g} seconds"
            ) from None

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _fetch_file(self, url: str, *, into: str) -> Fetched:
        async with aclosing(self._folders.read(url)) as chunks:
            blob = await self._blobs.receive(into, chunks, limit=self._max_source)
        return Fetched(blob=blob, name=PurePosixPath(file_path(url)).name)

    async def _fetch_pages(self, kind: str, url: str, *, into: str) -> Fetched:
        async def ask(address: str) -> bytes:
            return await self._patiently(lambda: self._page(address))

        async def bring() -> Fetched:
            async with aclosing(pages(kind, url, ask=ask)) as lines:
                blob = await self._blobs.receive(into, lines, limit=self._max_source)
            return Fetched(blob=blob, name=f"{kind}.ndjson")

        return await self._patiently(bring)

    async def _page(self, address: str) -> bytes:
        async with self._web.open(address) as answer:
            if answer is None:
                raise SourceError("the source says that nothing changed, and was not asked")
            body = bytearray()
            async with aclosing(answer.data(limit=_LARGEST_PAGE, self_proving=True)) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > _LARGEST_PAGE:
                        raise SourceError(f"a page of the source is over {_LARGEST_PAGE:,} bytes")
            return bytes(body)

    async def _fetch_web(
        self, source: Source, *, into: str, known: Validators | None
    ) -> Fetched | NotModified:
        return await self._patiently(lambda: self._try_web(source, into=into, known=known))

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """What the work gives, at the latest try of a few."""
        for pause in self._limits.pauses:
            try:
                return await work()
            except TryAgain as failed:
                await sleep(max(pause, failed.pause))
        return await work()

    async def _try_web(
        self, source: Source, *, into: str, known: Validators | None
    ) -> Fetched | NotModified:
        url = source.url or ""
        async with self._web.open(url, known=known) as answer:
            if answer is None:
                return NotModified()
            data = answer.data(limit=self._max_source, self_proving=source.format in _SELF_PROVING)
            async with aclosing(data) as chunks:
                blob = await self._blobs.receive(into, chunks, limit=self._max_source)
            return Fetched(blob=blob, name=answer.name, validators=answer.validators(url))
