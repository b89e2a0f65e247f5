"""Brings a declared source's bytes into the blobs: one deadline, a few tries, nothing half kept."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import sleep
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import PurePosixPath
from typing import NamedTuple, TypeVar

from aiohttp.abc import AbstractResolver
from msgspec.structs import replace
from yarl import URL

from ploti.errors import SourceError
from ploti.model.admin import BuildProgress, BuildStage
from ploti.server.adapters.fetcher.asking import Ask, Reply, TooLargeAPage, TryAgain
from ploti.server.adapters.fetcher.folders import Folders
from ploti.server.adapters.fetcher.limits import Limits
from ploti.server.adapters.fetcher.paged import lines
from ploti.server.adapters.fetcher.resources import find_resource
from ploti.server.adapters.fetcher.web import Permit, Web
from ploti.server.build.progress import Tell, ignore
from ploti.server.ports.outside import Blobs, Fetched, NotModified, StoredBlob
from ploti.server.settings import OF_SOURCES
from ploti.server.sources.credentials import Credential, origin
from ploti.server.sources.location import file_path
from ploti.server.sources.source import Source, gives_rows, resource_call
from ploti.server.sources.validators import Validators

_THREADS = 4
_SELF_PROVING = {"geojson"}
_LARGEST_PAGE = 64 << 20
T = TypeVar("T")


class _Into(NamedTuple):
    """The blob that a state comes into, and who is told how much of it came."""

    blob: str
    tell: Tell


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
        credentials: Mapping[str, Credential] | None = None,
        limits: Limits | None = None,
        resolver: AbstractResolver | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._blobs = blobs
        self._max_source = max_source
        self._credentials = credentials or {}
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
        self, source: Source, *, into: str, known: Validators | None = None, tell: Tell = ignore
    ) -> Fetched | NotModified:
        """Bring the source's bytes into the blob `into`; raises SourceError with a reason.

        With `known` the source may say instead that they are as it said then. A credential is in
        no reason, not even where the source sent it back. `tell` gets word of the bytes that came.
        """
        if source.kind is None or source.url is None:
            raise SourceError("the dataset has no source to check: its states are pushed")
        credential = self._credential(source)
        try:
            async with asyncio.timeout(self._limits.total):
                return await self._fetch(source, source.url, into=_Into(into, tell), known=known)
        except TimeoutError:
            raise SourceError(
                f"the source was not read within {self._limits.total:g} seconds"
            ) from None
        except SourceError as error:
            if credential is None:
                raise
            raise SourceError(credential.hidden_in(error.detail)) from None

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _fetch(
        self, source: Source, url: str, *, into: _Into, known: Validators | None
    ) -> Fetched | NotModified:
        if source.kind == "file":
            return await self._fetch_file(url, into=into)
        if gives_rows(source.kind, url):
            return await self._fetch_rows(source, url, into=into)
        if source.kind == "ckan":
            return await self._fetch_resource(source, url, into=into)
        return await self._patiently(lambda: self._try_web(source, url, into=into, known=known))

    async def _fetch_file(self, url: str, *, into: _Into) -> Fetched:
        blob = await self._receive(into, self._folders.read(url))
        return Fetched(blob=blob, name=PurePosixPath(file_path(url)).name)

    async def _fetch_rows(self, source: Source, url: str, *, into: _Into) -> Fetched:
        kind = source.kind or ""

        async def bring() -> Fetched:
            blob = await self._receive(into, lines(kind, url, ask=self._asking(source)))
            return Fetched(blob=blob, name=f"{kind}.rows")

        return await self._patiently(bring)

    async def _fetch_resource(self, source: Source, url: str, *, into: _Into) -> Fetched:
        """What a CKAN's resource leads to; it may be another file at any time, so no validators."""
        found = await find_resource(resource_call(url), self._asking(source))
        if found.rows:
            return await self._fetch_rows(source, found.url, into=into)
        fetched = await self._patiently(lambda: self._try_web(source, found.url, into=into))
        if not isinstance(fetched, Fetched):
            raise SourceError("the source says that nothing changed, and was not asked")
        return replace(fetched, name=found.named(fetched.name), validators=None)

    def _asking(self, source: Source) -> Ask:
        async def ask(address: URL, read: Callable[[Reply], T]) -> T:
            async def once() -> T:
                reply = await self._page(source, str(address))
                return await asyncio.get_running_loop().run_in_executor(self._threads, read, reply)

            try:
                return await self._patiently(once)
            except TryAgain as failed:
                raise SourceError(failed.detail) from None

        return ask

    async def _page(self, source: Source, address: str) -> Reply:
        async with self._web.open(address, permit=self._permit(source, address)) as answer:
            if answer is None:
                raise SourceError("the source says that nothing changed, and was not asked")
            body = bytearray()
            async with aclosing(answer.data(limit=self._max_source, self_proving=True)) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > _LARGEST_PAGE:
                        raise TooLargeAPage(f"a page of the source is over {_LARGEST_PAGE:,} bytes")
            return Reply(body=bytes(body), headers=answer.headers)

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """What the work gives, at the latest try of a few."""
        for pause in self._limits.pauses:
            try:
                return await work()
            except TryAgain as failed:
                await sleep(max(pause, failed.pause))
        return await work()

    async def _try_web(
        self, source: Source, url: str, *, into: _Into, known: Validators | None = None
    ) -> Fetched | NotModified:
        async with self._web.open(url, known=known, permit=self._permit(source, url)) as answer:
            if answer is None:
                return NotModified()
            data = answer.data(
                limit=self._max_source,
                self_proving=source.format in _SELF_PROVING,
                length_check=source.length_check,
            )
            blob = await self._receive(into, data, total=answer.length)
            return Fetched(blob=blob, name=answer.name, validators=answer.validators(url))

    async def _receive(
        self, into: _Into, chunks: AsyncGenerator[bytes, None], *, total: int | None = None
    ) -> StoredBlob:
        async with aclosing(chunks):
            counted = _counted(chunks, into.tell, total=total)
            return await self._blobs.receive(into.blob, counted, limit=self._max_source)

    def _credential(self, source: Source) -> Credential | None:
        """The source's credential; raises SourceError where it is not set, or not for its host."""
        if source.credential is None:
            return None
        variable = OF_SOURCES + source.credential
        credential = self._credentials.get(source.credential)
        if credential is None:
            raise SourceError(f"the source's credential is not set on the server: {variable}")
        if not credential.goes_to(source.url or ""):
            host = URL(source.url or "").host
            raise SourceError(f"the credential may not go to {host}: {variable}_HOSTS names others")
        return credential

    def _permit(self, source: Source, url: str) -> Permit | None:
        credential = self._credential(source)
        if credential is None or not credential.goes_to(url):
            return None
        return Permit(headers=credential.headers(source.kind), server=origin(url))


async def _counted(
    chunks: AsyncIterator[bytes], tell: Tell, *, total: int | None
) -> AsyncIterator[bytes]:
    """The chunks as they come, told by their bytes, and as a share where all are known."""
    done = 0
    async for chunk in chunks:
        done += len(chunk)
        share = round(min(done / total, 1.0), 2) if total else None
        tell(BuildProgress(stage=BuildStage.FETCHING, bytes=done, share=share))
        yield chunk
