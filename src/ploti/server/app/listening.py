"""Serves an ASGI application on a socket until a signal comes, and ends it cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Literal

import uvicorn
from litestar.types import ASGIApp
from msgspec.structs import replace
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ploti.errors import InvalidInput, PlotiError, TooLarge, TooSlow
from ploti.server.api.problems import MEDIA_TYPE, Problem, problem_of, respond

_FINISH_WITHIN = 10
"""Seconds that requests get to end by themselves once a signal came; then they are called off."""

_READ_WITHIN = 9
"""Seconds that clients get then to read their answers."""

_UNWIND_WITHIN = 5
_WAITING_CONNECTIONS = 2048
_KEEP_ALIVE = 75

MOST_FILES = 8192
"""Files and connections open at once, where the system allows as many: each costs memory, too."""

HEAD_WITHIN = 10
"""Seconds for the head of a request to come in, from its first byte or that of the connection.

What is left of a body that nobody reads, since its request is answered, gets as long.
"""

READ_WITHIN = 60
"""Seconds that a client may leave its answer unread, and a second more for each `SLOWEST` bytes."""

SLOWEST = 16 << 10
"""Bytes a second: who takes an answer at this pace is never cut off."""

_UNSENT = 128 << 10
"""Bytes that the system takes of an answer ahead of its client, so that a pause is soon noticed."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: what was not sent when a connection is closed is thrown away."""

LONGEST_HEAD = 64 << 10
"""Bytes of a request's address and headers: they are kept before there is a key to check."""

_MALFORMED = InvalidInput("The request is not HTTP/1.1 as it is written: mend its first lines")
_HEAD_SLOW = TooSlow(f"The head did not come in {HEAD_WITHIN} seconds: send it at once")
_TOO_LONG = TooLarge(f"The address and the headers are over {LONGEST_HEAD >> 10} KiB: send less")


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises PlotiError where it cannot be had."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=_WAITING_CONNECTIONS)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise PlotiError(f"Cannot listen on {host}, port {port}: {reason}") from None
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
    return listener


def address_of(listener: socket.socket, host: str) -> str:
    """The http address of a listening socket."""
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def listen(
    application: ASGIApp,
    listener: socket.socket,
    *,
    started: Callable[[], None],
    ending: Callable[[], None],
) -> None:
    """Serve until SIGINT or SIGTERM; `ending` is called once, when the end begins."""
    _make_room()
    server = _Server(application, started)

    def end() -> None:
        ending()
        server.force_exit = server.should_exit
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for kind in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(kind, end)
    await server.serve(sockets=[listener])
    tasks = set(server.server_state.tasks)
    if tasks:
        await asyncio.wait(tasks, timeout=_UNWIND_WITHIN)


def _make_room() -> None:
    """Let this process have more open than it begins with, which a thousand clients use up."""
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if most == resource.RLIM_INFINITY else min(most, MOST_FILES)
    if few < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


class _Protocol(HttpToolsProtocol):
    """uvicorn's, with limits on the size of a head, and on the time that each side takes.

    A request must come and its answer be read; while the application reads a body it has its own
    patience with it.
    """

    _pending = 0
    """Bytes that came since the last head, part of a body or end of a request was whole."""

    _running: RequestResponseCycle | None = None

    _head_by: asyncio.TimerHandle | None = None
    """Closes the connection where the head that it waits for does not come."""

    _read_by: asyncio.TimerHandle | None = None
    """Cuts the connection off where the answer that waits in it is not read."""

    _coming: Literal["head", "body"] | None = None
    """What of a request has begun to come and is not whole."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._coming = "head"
        self._wait_for_head()

    def _wait_for_head(self) -> None:
        if self._head_by is None:
            self._head_by = self.loop.call_later(HEAD_WITHIN, self._give_up)

    def _give_up(self) -> None:
        is_idle = self._running is None or self._running.response_complete
        if self._coming == "head" and is_idle:
            self._end_with(problem_of(_HEAD_SLOW))
        self._close()

    def _close(self) -> None:
        """Close the connection once its client has read what waits in it, if it does so in time."""
        self.transport.close()
        self._wait_to_be_read()

    def _wait_to_be_read(self) -> None:
        self._is_read()
        within = READ_WITHIN + self.transport.get_write_buffer_size() / SLOWEST
        self._read_by = self.loop.call_later(within, self._cut_off)

    def _cut_off(self) -> None:
        """End the connection with all that waits in it, in the system too."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.transport.abort()

    def _is_read(self) -> None:
        if self._read_by is not None:
            self._read_by.cancel()
            self._read_by = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_to_be_read()

    def resume_writing(self) -> None:
        if not self.transport.is_closing():
            self._is_read()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def _head_came(self) -> None:
        if self._head_by is not None:
            self._head_by.cancel()
            self._head_by = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is running, too: uvicorn tells the last one that came."""
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
        self._head_came()
        self._is_read()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._pending += len(data)
        super().data_received(data)
        if self._pending > LONGEST_HEAD:
            self._refuse()

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > LONGEST_HEAD:
            raise ValueError("a head that is too long")
        self._head_came()
        self._pending = 0
        self._coming = "body"
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._pending = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._pending = 0
        self._coming = None
        self._head_came()  # of the next one nothing did yet
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait no longer for a body that is not read any more than for a head."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._wait_to_be_read()
        if self._coming == "body" and self.cycle.response_complete:
            self._wait_for_head()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words
        if self._pending > LONGEST_HEAD:
            self._refuse()
        else:
            self._end_with(problem_of(_MALFORMED))

    def _refuse(self) -> None:
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        self._end_with(replace(problem_of(_TOO_LONG), status=status.value))

    def _end_with(self, problem: Problem) -> None:
        if not self.transport.is_closing():
            self.transport.write(_whole(problem))
            self._close()


def _whole(problem: Problem) -> bytes:
    """A problem as the bytes of an answer, for requests that never reach the application."""
    response = respond(problem, headers={"connection": "close"})
    length = {"content-type": MEDIA_TYPE, "content-length": len(response.content)}
    heads = "".join(f"{name}: {value}\r\n" for name, value in (response.headers | length).items())
    phrase = HTTPStatus(problem.status).phrase
    return f"HTTP/1.1 {problem.status} {phrase}\r\n{heads}\r\n".encode() + response.content


class _Server(uvicorn.Server):
    """uvicorn without its own handling of signals, which would end the process by one."""

    def __init__(self, application: ASGIApp, started: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=_Protocol,
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=_FINISH_WITHIN,
            )
        )
        self._tell = started

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(_READ_WITHIN, self._give_up_unread)
        await super().shutdown(sockets)
        if self.force_exit:  # uvicorn leaves the application without its end then, as if it broke
            await self.lifespan.shutdown()

    def _give_up_unread(self) -> None:
        for connection in list(self.server_state.connections):
            if connection.transport.get_write_buffer_size():
                connection.transport.abort()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
