"""Sends one body to one address: never redirected, never beyond its deadline, never inwards."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from yarl import URL

from ploti.model.wire import Value
from ploti.server.adapters.poster.connections import GuardedConnector, Trail, under_way
from ploti.server.deliver.answers import Answer
from ploti.server.deliver.endpoint import check_url
from ploti.server.guard import Dialled, ThreadResolver, judge

_THREADS = 8
_READ = 16 << 10
_KEPT = 2 << 10


class Limits(Value, kw_only=True):
    """Seconds of one POST: `total` is all told; `body` is for an answer's body."""

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
        self._http: aiohttp.ClientSession | None = None
        self._headers = {"User-Agent": user_agent, "Content-Type": "application/json"}

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send the body once; whatever goes wrong is an answer with an error."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        trail = Trail(scheme=urlsplit(url).scheme, until=began + self._limits.total)
        under_way.set(trail)
        try:
            while (told := await self._send(url, body, headers, trail)) is None:
                pass  # the receiver had closed the connection that was kept: another one
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failed:
            told = Answer(ms=0, error=self._tell(failed, trail.dialled))
        ms = round((loop.time() - began) * 1000)
        return msgspec.structs.replace(told, ms=ms, address=trail.address)

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

    async def close(self) -> None:
        """Close the connections that are kept, and end the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._http is not None:
            http, self._http = self._http, None
            await http.close()

    async def _send(
        self, url: str, body: bytes, headers: Mapping[str, str], trail: Trail
    ) -> Answer | None:
        """What came of one POST; None where it broke off on a connection that had been kept."""
        try:
            async with asyncio.timeout_at(trail.until):
                response = await self._session().post(
                    URL(url), data=body, headers=headers, allow_redirects=False
                )
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if trail.is_fresh:
                raise
            return None
        async with response:
            excerpt = await self._excerpt(response, until=trail.until)
        return Answer(
            ms=0,
            status=response.status,
            retry_after=_seconds(response.headers.get("Retry-After")),
            location=_cut(response.headers.get("Location")),
            excerpt=excerpt,
        )

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                connector=GuardedConnector(
                    allow=self._allow, resolver=self._resolver, trust=self._trust
                ),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._http

    async def _excerpt(self, response: aiohttp.ClientResponse, *, until: float) -> str | None:
        """The beginning of the body; the status line has decided already, so it may be cut off."""
        read = bytearray()
        a_while = asyncio.get_running_loop().time() + self._limits.body
        try:
            async with asyncio.timeout_at(min(until, a_while)):
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
