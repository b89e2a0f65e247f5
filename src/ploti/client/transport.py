"""Sends calls: under one deadline, again after what passes, the key to its own API and no other."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.metadata import version
from ipaddress import ip_address
from typing import TypeVar
from urllib.parse import urlsplit

import anyio
import httpx2
import msgspec

from ploti.client.bodies import open_body
from ploti.client.calls import Answer, Call, Upload
from ploti.client.chance import request_name
from ploti.client.config import Access, read_access
from ploti.client.problems import Broken, pause_after, read_refusal
from ploti.errors import PlotiError, TransportError

T = TypeVar("T")

TIMEOUT = 60.0
"""Seconds that a call may take in all, with every try and wait, unless it says otherwise."""
LONGEST_ANSWER = 64 * 2**20
"""Bytes of an answer that are read before it is taken for a fault."""
CONNECT = 10.0
"""Seconds to reach the server in."""
STALL = 30.0
"""Seconds without a byte after which an answer counts as broken."""


class Transport:
    """One API address, its key and its connections; the environment is read at the first use."""

    def __init__(self, key: str | None, *, url: str | None, timeout: float) -> None:
        self._given = (key, url)
        self._timeout = timeout
        self._access: Access | None = None
        self._http: httpx2.AsyncClient | None = None

    async def send(self, call: Call[T]) -> T:
        """The value that the answer is read as.

        Raises:
            ApiError: The server refuses: a class for each code.
            TransportError: No answer, or none that can be understood.
            ConfigError: The key, the address or the file to send is missing or wrong.
        """
        seconds = (self._timeout if call.timeout is None else call.timeout) + call.extra
        try:
            with anyio.fail_after(seconds):
                return await self._persist(call, _name_of(call))
        except TimeoutError as error:
            raise TransportError(f"no answer from {self._url} within {seconds:g} s") from error

    @asynccontextmanager
    async def download(self, url: str, *, offset: int) -> AsyncIterator[httpx2.Response]:
        """A signed link's answer from byte `offset` on, its body still to be read; without the key.

        Raises:
            Broken: The connection cannot be made, or breaks inside the block.
        """
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        headers["Accept-Encoding"] = "identity"
        with _refusing_malformed(url):
            request = self._client().build_request(
                "GET", url, headers=headers, timeout=_limits(STALL)
            )
        async with self._answer(request, begin=CONNECT + STALL) as response:
            yield response

    async def close(self) -> None:
        """Close what connections there are; a later call opens them anew."""
        if self._http is not None:
            http, self._http = self._http, None
            await http.aclose()

    async def _persist(self, call: Call[T], name: dict[str, str]) -> T:
        attempt = 1
        while True:
            try:
                return await self._try(call, name)
            except PlotiError as error:
                pause = pause_after(error, attempt, chance=_chance())
                if pause is None or not call.repeatable or not _in_time(pause):
                    raise
            await anyio.sleep(pause)
            attempt += 1

    async def _try(self, call: Call[T], name: dict[str, str]) -> T:
        async with AsyncExitStack() as stack:
            request = await self._request(call, stack, name)
            response = await stack.enter_async_context(self._answer(request))
            answer = await read_answer(response)
        if answer.status >= 400:
            raise read_refusal(answer, self._url)
        if answer.status >= 300 and not call.redirects:
            there = answer.headers.get("location", "another address")
            raise TransportError(f"{self._url} sends on to {there}: set PLOTI_API_URL to the API's")
        try:
            return call.read(answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise TransportError(f"{self._url} gave an unreadable answer: {error}") from error

    async def _request(
        self, call: Call[T], stack: AsyncExitStack, name: dict[str, str]
    ) -> httpx2.Request:
        headers = {"Authorization": f"Bearer {self._opened().key}"} | name
        content: bytes | AsyncIterator[bytes] | None
        if isinstance(call.body, Upload):
            body = await stack.enter_async_context(open_body(call.body))
            headers["Content-Type"] = "application/octet-stream"
            if body.size is not None:
                headers["Content-Length"] = str(body.size)
            content = body.chunks()
        else:
            content = call.body
            if content is not None:
                headers["Content-Type"] = "application/json"
        return self._client().build_request(
            call.method,
            self._url + call.path,
            params=call.query or None,
            headers=headers,
            content=content,
            timeout=_limits(None if call.timeout is not None else STALL + call.extra),
        )

    @asynccontextmanager
    async def _answer(
        self, request: httpx2.Request, *, begin: float | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """The response, its body still to be read; its head must be there in `begin` seconds."""
        try:
            with anyio.fail_after(begin):
                response = await self._client().send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError) as error:
            raise Broken(_say(error, request.url)) from error

    def _opened(self) -> Access:
        if self._access is None:
            key, url = self._given
            self._access = read_access(key, url)
        return self._access

    @property
    def _url(self) -> str:
        return self._opened().url

    def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = httpx2.AsyncClient(
                follow_redirects=False,  # a redirect must not carry the key to another host
                trust_env=not _is_loopback(self._url),  # no proxy leads to this machine
                headers={"User-Agent": f"ploti/{version('ploti')}"},
            )
        return self._http


async def read_answer(response: httpx2.Response) -> Answer:
    """The whole of a response; raises TransportError where it is too long to be an answer."""
    return Answer(
        status=response.status_code,
        headers={name.lower(): text for name, text in response.headers.items()},
        body=await _read_whole(response),
    )


def origin(url: httpx2.URL) -> str:
    """Scheme, host and port, for messages: a signed link is a secret."""
    return f"{url.scheme}://{url.netloc.decode()}"


async def _read_whole(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > LONGEST_ANSWER:
            raise TransportError(
                f"the answer is over {LONGEST_ANSWER} bytes: give a smaller limit, or use the files"
            )
    return bytes(body)


@contextmanager
def _refusing_malformed(url: str) -> Iterator[None]:
    try:
        yield
    except httpx2.InvalidURL as error:
        raise TransportError(f"'{url}' is no address: {error}") from error


def _name_of(call: Call[T]) -> dict[str, str]:
    """The header by which the server knows all tries of a call that makes something."""
    return {"Idempotency-Key": request_name()} if call.method == "POST" else {}


def _limits(silence: float | None) -> httpx2.Timeout:
    return httpx2.Timeout(connect=CONNECT, read=silence, write=silence, pool=None)


def _in_time(pause: float) -> bool:
    return anyio.current_time() + pause < anyio.current_effective_deadline()


def _chance() -> float:
    """Spread enough for back-off, which needs no secret chance."""
    return time.monotonic_ns() % 1000 / 1000


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _say(error: Exception, url: httpx2.URL) -> str:
    place = origin(url)
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"{place} cannot be reached: is the server running, and PLOTI_API_URL right?"
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return f"{place} went silent"
    return f"the connection to {place} broke: {str(error) or type(error).__name__}"
