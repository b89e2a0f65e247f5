"""Sends one body to one address: never redirected, never beyond its deadline, never inwards."""

from __future__ import annotations

import asyncio
import math
import os
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from yarl import URL

from ploti.model.wire import Value
from ploti.server.adapters.poster.connections import GuardedConnector, Trail, under_way
from ploti.server.deliver.answers import Answer
from ploti.server.deliver.endpoint import check_url
from ploti.server.guard import Dialled, ThreadResolver, judge
from ploti.server.ports.outside import Timer

_THREADS = 128
"""For names: one that nobody answers has a thread for longer than its attempt lasts, and failing
lanes, which have half of all slots, must not take those of the others."""

_REMEMBERED = 1024
"""Addresses that are not parsed anew for each POST."""

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
        timer: Timer | None = None,
    ) -> None:
        self._allow = allow_networks
        self._limits = limits or Limits()
        self._timer = timer or _LoopTimer()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="post")
        self._resolver = resolver or ThreadResolver(self._threads)
        self._trust = trust
        self._http: aiohttp.ClientSession | None = None
        self._headers = {"User-Agent": user_agent, "Content-Type": "application/json"}

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send the body once; whatever goes wrong is an answer with an error."""
        began = self._timer.time()
        trail = Trail(scheme=url.partition(":")[0].lower())
        under_way.set(trail)
        try:
            async with self._timer.timeout(self._limits.total):
                response = await self._send(url, body, headers, trail)
            left = began + self._limits.total - self._timer.time()
            told = await self._read(response, within=min(left, self._limits.body))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failed:
            told = Answer(ms=0, error=self._tell(failed, trail.dialled))
        ms = round((self._timer.time() - began) * 1000)
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
    ) -> aiohttp.ClientResponse:
        """The answer's head; a connection that was kept and that breaks off is made anew."""
        while True:
            try:
                return await self._session().post(
                    _parsed(url), data=body, headers=headers, allow_redirects=False
                )
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if trail.is_fresh:
                    raise

    async def _read(self, response: aiohttp.ClientResponse, *, within: float) -> Answer:
        """The answer with its body's beginning; the head has decided, so that may be cut off."""
        async with response:
            excerpt = None
            if not response.content.at_eof():
                excerpt = await self._excerpt(response, within=within)
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
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._limits.connect, ceil_threshold=math.inf
                ),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._http

    async def _excerpt(self, response: aiohttp.ClientResponse, *, within: float) -> str | None:
        read = bytearray()
        try:
            async with self._timer.timeout(within):
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


class _LoopTimer:
    """The event loop's time."""

    def time(self) -> float:
        """Seconds of the loop that runs."""
        return asyncio.get_running_loop().time()

    def timeout(self, seconds: float) -> asyncio.Timeout:
        """The standard library's."""
        return asyncio.timeout(seconds)


@lru_cache(_REMEMBERED)
def _parsed(url: str) -> URL:
    return URL(url)


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
