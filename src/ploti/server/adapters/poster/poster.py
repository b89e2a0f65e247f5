"""Sends one body to one address: never redirected, never beyond its deadline, never inwards."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

from aiohttp.abc import AbstractResolver

from ploti.model.wire import Value
from ploti.server.adapters.poster.connection import BrokenOff, Connection
from ploti.server.adapters.poster.deadlines import Deadlines
from ploti.server.adapters.poster.dialling import Dialler
from ploti.server.adapters.poster.kept import Kept
from ploti.server.adapters.poster.reading import NoAnswer, Reading
from ploti.server.adapters.poster.target import Target
from ploti.server.deliver.answers import Answer
from ploti.server.deliver.endpoint import check_url
from ploti.server.guard import Dialled, ThreadResolver, judge
from ploti.server.ports.outside import Timer

_THREADS = 128
"""For names: one that nobody answers has a thread for longer than its attempt lasts, and failing
lanes, which have half of all slots, must not take those of the others."""

_REMEMBERED = 1024
"""Addresses that are not parsed anew for each POST."""


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
        self._dialler = Dialler(
            allow=allow_networks,
            resolver=self._resolver,
            trust=trust,
            timer=self._timer,
            within=self._limits.connect,
        )
        self._kept = Kept()
        total = self._limits.total
        self._whole = partial(timer.timeout, total) if timer else Deadlines(total).one
        sent = {"User-Agent": user_agent, "Content-Type": "application/json"}
        self._target = lru_cache(_REMEMBERED)(partial(Target, headers=sent))

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send the body once; whatever goes wrong is an answer with an error."""
        began = self._timer.time()
        dialled = Dialled()
        reading, error = None, None
        try:
            target = self._target(url)
            async with self._whole():
                connection = await self._send(target, target.message(body, headers), dialled)
            reading = connection.reading
            try:
                if not reading.is_over:
                    await self._finish(connection, by=began + self._limits.total)
            finally:
                self._kept.keep(target.origin, connection)
        except (NoAnswer, OSError, ValueError) as failed:
            error = self._tell(failed)
        ms = round((self._timer.time() - began) * 1000)
        return _answer(reading, error, ms=ms, address=next(reversed(dialled.addresses), None))

    async def refuse(self, url: str) -> str | None:
        """Why an address may not be a webhook's, as its name is answered now; None where it may."""
        try:
            host, _, scheme = check_url(url)
            origin = self._target(url).origin  # whose host is the one that a POST asks for
        except ValueError as error:
            return str(error)
        try:
            async with asyncio.timeout(self._limits.connect):
                found = await self._resolver.resolve(origin.host, origin.port)
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
        self._kept.close()

    async def _send(self, target: Target, message: bytes, dialled: Dialled) -> Connection:
        """The connection on which the head of an answer came.

        A kept one may have been closed just now: where it breaks off unheard, another is asked.
        """
        while kept := self._kept.take(target.origin):
            dialled.addresses.append(kept.address)  # for another POST, and judged as it was
            try:
                await kept.ask(message)
            except BrokenOff:
                if kept.reading.heard:
                    raise
            else:
                return kept
        fresh = await self._dialler.dial(target.origin, dialled=dialled)
        await fresh.ask(message)
        return fresh

    async def _finish(self, connection: Connection, *, by: float) -> None:
        """Read on for a while: a body that takes longer is cut off, for the head has decided."""
        within = min(by - self._timer.time(), self._limits.body)
        try:
            async with self._timer.timeout(within):
                await connection.finish()
        except TimeoutError:
            connection.close()

    def _tell(self, error: Exception) -> str:
        match error:
            case NoAnswer():
                return str(error)
            case ssl.SSLError():
                return f"tls: {error}"
            case TimeoutError(errno=None):  # the deadline's, not the system's
                return f"timeout: no answer within {self._limits.total:g} seconds"
            case OSError():
                return f"connection: {_reason(error)}"
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


def _answer(reading: Reading | None, error: str | None, *, ms: int, address: str | None) -> Answer:
    if reading is None:
        return Answer(ms=ms, address=address, error=error)
    return Answer(
        ms=ms,
        address=address,
        status=reading.status,
        retry_after=reading.retry_after,
        location=reading.location,
        excerpt=reading.excerpt,
    )


def _reason(error: OSError) -> str:
    """The system's own words: those of the event loop hold addresses."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else "cannot be reached"


def _refused(scheme: str) -> str:
    if scheme == "http":
        return "in no network that PLOTI_ALLOW_NETWORKS opens to http: use https"
    return "no public address; PLOTI_ALLOW_NETWORKS opens others"
