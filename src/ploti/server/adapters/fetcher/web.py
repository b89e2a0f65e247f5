"""Sources on the web: dialled under guard, read whole, told apart from pages that say 'error'."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.http_exceptions import ContentLengthError
from yarl import URL

from ploti.errors import SourceError
from ploti.model.wire import Value
from ploti.server.adapters.fetcher.asking import TryAgain
from ploti.server.adapters.fetcher.limits import Limits
from ploti.server.adapters.fetcher.unpacking import unpack
from ploti.server.guard import Dialled, ThreadResolver, guarded_sockets
from ploti.server.sources.credentials import origin
from ploti.server.sources.formats import HEAD, refuse
from ploti.server.sources.location import web_address
from ploti.server.sources.validators import Validators, asks

_NOT_MODIFIED = 304
_LATER = {429, 502, 503, 504}
_MOVED = {301, 302, 303, 307, 308}
_GZIP = {"gzip", "x-gzip"}


class Permit(Value, kw_only=True):
    """The headers that carry a credential, for one server and no other."""

    headers: dict[str, str]
    server: tuple[str, str, int]

    def __repr__(self) -> str:
        """Without the headers, which are secret."""
        return f"Permit(server={self.server!r})"


class Web:
    """Opens web addresses; only public ones by https, and opened networks by http as well."""

    def __init__(
        self,
        *,
        allow_networks: Sequence[str],
        user_agent: str,
        limits: Limits,
        threads: ThreadPoolExecutor,
        resolver: AbstractResolver | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._allow = allow_networks
        self._limits = limits
        self._resolver = resolver or ThreadResolver(threads)
        self._trust = trust
        self._turns: defaultdict[str | None, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(limits.at_once)
        )
        self._headers = {"User-Agent": user_agent, "Accept": "*/*", "Accept-Encoding": "gzip"}

    @asynccontextmanager
    async def open(
        self, url: str, *, known: Validators | None = None, permit: Permit | None = None
    ) -> AsyncIterator[Answer | None]:
        """The answer of an address with data, after redirects; each hop is guarded anew.

        None where what is `known` still stands. The `permit` goes to its server, and no further
        once a redirect leads elsewhere. Raises SourceError with the reason, TryAgain where a
        later try may do.
        """
        for _ in range(self._limits.redirects + 1):
            hop, headers = _checked(url), asks(known) if known else {}
            if permit and permit.server != origin(url):
                permit = None
            headers |= permit.headers if permit else {}
            async with self._turns[hop.host], self._ask(hop, headers=headers) as response:
                if known and response.status == _NOT_MODIFIED:
                    yield None
                    return
                if response.status not in _MOVED:
                    _check_status(response, longest_pause=self._limits.longest_pause)
                    yield Answer(response, limits=self._limits)
                    return
                url = _next_url(response)
        raise SourceError(f"the source redirects more than {self._limits.redirects} times")

    @asynccontextmanager
    async def _ask(
        self, url: URL, *, headers: dict[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        dialled = Dialled()
        sockets = guarded_sockets(url.scheme, allow=self._allow, dialled=dialled)
        connector = aiohttp.TCPConnector(
            resolver=self._resolver,
            socket_factory=sockets,
            use_dns_cache=False,
            force_close=True,
            ssl=self._trust or True,
        )
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._limits.connect, sock_read=self._limits.silence
        )
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        ) as session:
            try:
                response = await session.get(url, headers=headers, allow_redirects=False)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                raise _unreachable(url, error, dialled) from None
            async with response:
                yield response


class Answer:
    """An answer with data."""

    def __init__(self, response: aiohttp.ClientResponse, *, limits: Limits) -> None:
        self._response = response
        self._limits = limits

    @property
    def name(self) -> str:
        """What the source calls the file."""
        disposition = self._response.content_disposition
        named = disposition and disposition.filename
        return PurePosixPath(named or self._response.url.path).name or "source"

    def validators(self, url: str) -> Validators | None:
        """What the source says of the bytes, as those of the address that was asked."""
        headers = self._response.headers
        etag, modified = headers.get("ETag"), headers.get("Last-Modified")
        if etag is None and modified is None:
            return None
        return Validators(url=url, etag=etag, last_modified=modified)

    @property
    def length(self) -> int | None:
        """The bytes of the data, where they are known before they come."""
        packed = self._response.headers.get("Content-Encoding", "identity").strip().lower() in _GZIP
        return None if packed else self._response.content_length

    @property
    def headers(self) -> Mapping[str, str]:
        """What the source says beside the bytes."""
        return self._response.headers

    async def data(
        self, *, limit: int, self_proving: bool, length_check: bool = True
    ) -> AsyncGenerator[bytes, None]:
        """The bytes, unpacked; proved whole by their length, their framing or their packing.

        `self_proving` says that the format itself tells a cut-off text; without `length_check` the
        stated length is no matter. Raises SourceError where an answer gives no proof, is no data,
        or announces more than `limit` bytes.
        """
        headers = self._response.headers
        packing = headers.get("Content-Encoding", "identity").strip().lower()
        if packing not in _GZIP | {"identity", ""}:
            raise SourceError(f"the source is packed with {packing}, which was not asked for")
        length = self._response.content_length
        if length is not None and length > limit:
            raise SourceError(f"the source has {length:,} bytes: PLOTI_MAX_SOURCE allows {limit:,}")
        framed = length is not None or "chunked" in headers.get("Transfer-Encoding", "").lower()
        if length_check and not framed and packing not in _GZIP and not self_proving:
            raise SourceError("the source does not say how long it is: it cannot be proved whole")
        received = self._received(length, length_check=length_check)
        async for chunk in _told(unpack(received) if packing in _GZIP else received):
            yield chunk

    async def _received(self, length: int | None, *, length_check: bool) -> AsyncIterator[bytes]:
        content = self._response.content
        try:
            async for chunk in content.iter_any():
                yield chunk
        except TimeoutError:
            silence = f"{self._limits.silence:g} seconds, after {content.total_bytes:,} bytes"
            raise TryAgain(f"the source sent nothing for {silence}") from None
        except (aiohttp.ClientError, OSError) as error:
            if not length_check and _is_short(error):
                yield _kept(content)
                return
            of = f" of {length:,}" if length is not None else ""
            came = f"{content.total_bytes:,}{of} bytes"
            raise TryAgain(f"the source broke off after {came}: it is cut short") from None


def _is_short(error: Exception) -> bool:
    """Whether a body merely ended before its stated length."""
    return isinstance(error.__cause__, ContentLengthError)


def _kept(content: aiohttp.StreamReader) -> bytes:
    """What came before a body's early end: the stream keeps it behind the error."""
    content.set_exception(None)  # type: ignore[arg-type]
    return content.read_nowait()


async def _told(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks, once the first bytes are seen to be data and not a page about an error."""
    head: bytes | None = b""
    async for chunk in chunks:
        if head is None:
            yield chunk
            continue
        head += chunk
        if len(head) >= HEAD:
            refuse(head[:HEAD])
            yield head
            head = None
    if head is not None:
        refuse(head)
        yield head


def _checked(url: str) -> URL:
    try:
        return URL(web_address(url))
    except ValueError as error:
        raise SourceError(f"the source moved to an address that is not read: {error}") from None


def _next_url(response: aiohttp.ClientResponse) -> str:
    location = response.headers.get("Location")
    if not location:
        raise SourceError(f"the source answered {response.status} without saying where it moved")
    try:
        return str(response.url.join(URL(location)).with_fragment(None))
    except ValueError:
        raise SourceError(f"the source redirects to '{location}', which is no address") from None


def _check_status(response: aiohttp.ClientResponse, *, longest_pause: float) -> None:
    if response.status == 200:
        return
    detail = f"the source answered {response.status} {response.reason or ''}".rstrip()
    if response.status not in _LATER:
        raise SourceError(detail)
    pause = _pause(response.headers)
    if pause > longest_pause:
        raise SourceError(f"{detail}, and to come back in {pause:g} seconds")
    raise TryAgain(detail, pause=pause)


def _pause(headers: Mapping[str, str]) -> float:
    """Seconds that are to be waited, which a server says as such, or as a date by its own clock."""
    asked = headers.get("Retry-After", "0").strip()
    if asked.isdecimal():
        return float(asked)
    try:
        wait = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("Date", ""))
    except (ValueError, TypeError):
        return 0
    return max(0, wait.total_seconds())


def _unreachable(url: URL, error: Exception, dialled: Dialled) -> SourceError:
    if dialled.refused:
        listed = ", ".join(dict.fromkeys(dialled.refused))
        where = url.host if listed == url.host else f"{url.host} is at {listed}, which"
        if url.scheme == "http":
            return SourceError(
                f"{where} may not be read by http: that is done only in"
                " networks that PLOTI_ALLOW_NETWORKS opens; public sources need https"
            )
        return SourceError(
            f"{where} may not be read: it is no public address, and"
            " PLOTI_ALLOW_NETWORKS does not open its network"
        )
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return SourceError(f"{url.host} cannot be trusted: {error.args[-1]}")
        case aiohttp.ClientConnectorDNSError():
            return TryAgain(f"{url.host} is no known name")
        case asyncio.TimeoutError():
            return TryAgain(f"{url.host} did not answer in time")
        case aiohttp.ClientConnectorError(os_error=OSError(errno=int(number))) if number > 0:
            return TryAgain(f"{url.authority} cannot be reached: {os.strerror(number)}")
        case _:
            return TryAgain(f"{url.host} cannot be reached: {error}")
