"""The scripted server of the cases: answers by path, one after another, cut off where it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.cases.cases import FOLDER


class Script:
    """What a `static` server answers, and the paths that it was asked for."""

    def __init__(self, serve: dict[str, Any]) -> None:
        self.asked: list[str] = []
        self._routes = [
            (route, [each for each in route["sequence"] for _ in range(each.get("times", 1))])
            for route in serve["routes"]
        ]

    def answer(self, request: bytes) -> bytes:
        head = request.decode("latin-1")
        path = head.split(" ")[1]
        self.asked.append(path)
        for route, left in self._routes:
            needed = route.get("when", {}).get("has_header")
            if route["path"] == path and (not needed or f"\r\n{needed}:" in head):
                return _rendered(left.pop(0) if len(left) > 1 else left[0])
        raise AssertionError(f"no answer for {path}")


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[str]:
    """A server on a free port that follows the script; gives its address."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(script.answer(await reader.readuntil(b"\r\n\r\n")))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def _rendered(answer: dict[str, Any]) -> bytes:
    body = answer.get("body", "").encode()
    if "body_file" in answer:
        body = (FOLDER / answer["body_file"]).read_bytes()
    headers = {"Content-Length": str(len(body))} | answer.get("headers", {})
    lines = [f"HTTP/1.1 {answer['status']} .", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body[: answer.get("send_bytes", len(body))]
