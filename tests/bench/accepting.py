"""A receiver in a process of its own that answers every POST at once: `python -m …accepting`.

It prints its port, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen
from typing import Any

import uvloop

_LENGTH = re.compile(rb"(?i)content-length: *(\d+)")
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Accepting(asyncio.Protocol):
    """One connection, for as many POSTs as come."""

    def connection_made(self, transport: Any) -> None:
        self.transport, self.unread = transport, b""

    def data_received(self, data: bytes) -> None:
        self.unread += data
        while (length := _length(self.unread)) <= len(self.unread):
            self.unread = self.unread[length:]
            self.transport.write(_ANSWER)


def _length(unread: bytes) -> float:
    """Of the first request, with its body; endless while its head is not there."""
    head, end, _ = unread.partition(b"\r\n\r\n")
    body = _LENGTH.search(head)
    return len(head) + len(end) + int(body[1]) if end and body else float("inf")


async def accept() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Accepting, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def accepting() -> Iterator[str]:
    """Such a receiver's address."""
    with Popen([sys.executable, "-m", __name__], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


if __name__ == "__main__":
    uvloop.run(accept())
