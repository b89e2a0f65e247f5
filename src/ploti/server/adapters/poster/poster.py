"""Sends one body to one address: never redirected, never beyond its deadline, never inwards."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from ploti.model.wire import Value
from ploti.server.deliver.answers import Answer, is_success
from ploti.server.deliver.endpoint import check_url
from ploti.server.guard import Dialled, ThreadResolver, guarded_sockets, judge

_THREADS = 8
_READ = 16 << 10
_KEPT = 2 << 10


class Limits(Value, kw_only=True):
    """Seconds of one POST: `total` is all told; `body` is for the body of an answer that is 2xx."""

    connect: float = 5
    total: float = 15
    body: float = 2


class WebhookPoster:
    """The Poster port; `resolver` and `trust` stand in for the system's, in tests."""

    def __init__(
        self,
        *,
        allow_networks: Sequence[str],
        user_agent: str,
        limits: Limits | None = None,
        resolver: AbstractResolver | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._allow = allow_networks
        self._limits = limits or Limits()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="post")
        self._resolver = resolver or ThreadResolver(self._threads)
        self._trust = trust
        self._headers = {"User-Agent": user_agent, "Content-Type": "application/json"}

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send the body once; whatever goes wrong is an answer with an error."""
        loop = asyncio.get_running_loop()
        began, dialled = loop.time(), Dialled()
        response: aiohttp.ClientResponse | None = None
        excerpt: str | None = None
        error: str | None = None
        try:
            async with (
                asyncio.timeout(self._limits.total),
                self._session(url, dialled) as session,
                session.post(
                    URL(url), data=body, headers=headers, allow_redirects=False
                ) as response,
            ):
                excerpt = await self._excerpt(response)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failed:
            if response is None:
                error = self._tell(failed, dialled)
        ms = round((loop.time() - began) * 1000)
        address = dialled.addresses[-1] if dialled.addresses else None
        if response is None:
            return Answer(ms=ms, address=address, error=error)
        return Answer(
            ms=ms,
            address=address,
            status=response.status,
            retry_after=_seconds(response.headers.get("Retry-After")),
            location=_cut(response.headers.get("Location")),
            excerpt=excerpt,
        )

    async def refuse(self, url: str) -> str | None:
        """Why an address may not be a webhook's, as its name is answered now; None where it may."""
        try:
            host, port, scheme = check_url(url)
        except ValueError as error:
            return str(error)
        try:
            async with asyncio.timeout(self._limits.connect):
                found = await self._resolver.resolve(host, port)
        except (TimeoutError, OSError, UnicodeError):
            return f"names the host {host}, which is not known"
        if any(judge(scheme, each["host"], allow=self._allow) for each in found):
            return None
        if scheme == "http" and not self._allow:
            return "must be an https address"
        listed = ", ".join(dict.fromkeys(each["host"] for each in found))
        return f"leads to {listed}, which is {_refused(scheme)}"

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @asynccontextmanager
    async def _session(self, url: str, dialled: Dialled) -> AsyncIterator[aiohttp.ClientSession]:
        _, _, scheme = check_url(url)
        connector = aiohttp.TCPConnector(
            resolver=self._resolver,
            socket_factory=guarded_sockets(scheme, allow=self._allow, dialled=dialled),
            happy_eyeballs_delay=None,  # one address after another: the last one is the one used
            use_dns_cache=False,
            force_close=True,
            ssl=self._trust or True,
        )
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect),
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        ) as session:
            yield session

    async def _excerpt(self, response: aiohttp.ClientResponse) -> str | None:
        """The beginning of the body; the status line has decided already, so it may be cut off."""
        read = bytearray()
        seconds = self._limits.body if _has_status_of_success(response) else None
        try:
            async with asyncio.timeout(seconds):
                async for chunk in response.content.iter_any():
                    read += chunk
                    if len(read) >= _READ:
                        break
        except (aiohttp.ClientError, TimeoutError, OSError):
            pass
        return _cut(bytes(read[:_KEPT]).decode("utf-8", "replace"))

    def _tell(self, error: Exception, dialled: Dialled) -> str:
        if dialled.refused:
            listed = ", ".join(dict.fromkeys(dialled.refused))
            return f"blocked_address: {listed} may not be dialled"
        match error:
            case TimeoutError():
                return f"timeout: no answer within {self._limits.total:g} seconds"
            case aiohttp.ClientConnectorDNSError():
                return "dns: the host's name is not known"
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
                return f"tls: {error.args[-1]}"
            case aiohttp.ClientConnectorError():
                return f"connection: {_reason(error.os_error)}"
            case aiohttp.ServerDisconnectedError() | ConnectionError():
                return "connection: broken off before an answer"
            case _:
                return f"no answer: {type(error).__name__}"


def _has_status_of_success(response: aiohttp.ClientResponse) -> bool:
    return is_success(Answer(ms=0, status=response.status))


def _reason(error: OSError) -> str:
    """The system's own words: those of the event loop hold addresses."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else "cannot be reached"


def _refused(scheme: str) -> str:
    if scheme == "http":
        return "in no network that PLOTI_ALLOW_NETWORKS opens to http: use https"
    return "no public address; PLOTI_ALLOW_NETWORKS opens others"


def _seconds(text: str | None) -> float | None:
    """The seconds of a `Retry-After`; one that names a date is passed over."""
    return float(text[:12]) if text and text.strip().isdecimal() else None


def _cut(text: str | None) -> str | None:
    return text[:_KEPT].replace("\x00", "") or None if text else None
