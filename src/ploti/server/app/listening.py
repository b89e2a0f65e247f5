"""Serves an ASGI application on a socket until a signal comes, and ends it cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
from litestar.types import ASGIApp

from ploti.errors import PlotiError

_FINISH_WITHIN = 10
"""Seconds that requests get to end by themselves once a signal came; then they are called off."""

_UNWIND_WITHIN = 5
_WAITING_CONNECTIONS = 2048
_KEEP_ALIVE = 75


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises PlotiError where it cannot be had."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_WAITING_CONNECTIONS)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise PlotiError(f"Cannot listen on {host}, port {port}: {reason}") from None


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


class _Server(uvicorn.Server):
    """uvicorn without its own handling of signals, which would end the process by one."""

    def __init__(self, application: ASGIApp, started: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http="httptools",
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
