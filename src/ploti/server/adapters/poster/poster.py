"""Sends one body to one address: never redirected, never beyond its deadline, never inwards."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError

from ploti.model.wire import Value
from ploti.server.adapters.poster.connections import GuardedConnector, Trail
from ploti.server.adapters.poster.exchange import Reply, Target, ask, read
from ploti.server.deliver.answers import Answer
from ploti.server.deliver.endpoint import check_url
from ploti.server.guard import Dialled, ThreadResolver, judge
from ploti.server.ports.outside import Timer

_THREADS = 128
"""For names: one that nobody answers has a thread for longer than its attempt lasts, and failing
lanes, which have half of all slots, must not take those of the others."""

_REMEMBERED = 1024
"""Addresses that are not parsed anew for each POST."""

_FAILURES = (aiohttp.ClientError, HttpProcessingError, TimeoutError, OSError, ValueError)


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
        self._connector: GuardedConnector | None = None
        sent = {"User-Agent": user_agent, "Content-Type": "application/json"}
        self._target = lru_cache(_REMEMBERED)(partial(Target, headers=sent))

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send the body once; whatever goes wrong is an answer with an error."""
        began = self._timer.time()
        trail = Trail(scheme=url.partition(":")[0].lower())
        try:
            async with self._timer.timeout(self._limits.total):
                connection, reply = await self._send(self._target(url), trail, body, headers)
            left = began + self._limits.total - self._timer.time()
            within = min(left, self._limits.body)
            told = await read(connection, reply, self._timer, within=within)
        except _FAILURES as failed:
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
        if self._connector is not None:
            connector, self._connector = self._connector, None
            await connector.close()

    async def _send(
        self, target: Target, trail: Trail, body: bytes, headers: Mapping[str, str]
    ) -> tuple[Connection, Reply]:
        """The answer's head; a connection that was kept and that breaks off is made anew."""
        message = target.message(body, headers)
        while True:
            connection = await self._connections().connection(target.request, trail=trail)
            try:
                return connection, await ask(connection, message)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if trail.is_fresh:
                    raise

    def _connections(self) -> GuardedConnector:
        """Made in the event loop that they are for."""
        if self._connector is None:
            self._connector = GuardedConnector(
                allow=self._allow,
                resolver=self._resolver,
                trust=self._trust,
                within=self._limits.connect,
            )
        return self._connector

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
            case HttpProcessingError():
                return "no answer: what came is not HTTP"
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


def _reason(error: OSError) -> str:
    """The system's own words: those of the event loop hold addresses."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else "cannot be reached"


def _refused(scheme: str) -> str:
    if scheme == "http":
        return "in no network that PLOTI_ALLOW_NETWORKS opens to http: use https"
    return "no public address; PLOTI_ALLOW_NETWORKS opens others"
