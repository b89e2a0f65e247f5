"""A state fetched from a server that a test acts, on a socket of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

from ploti.model.wire import Instant
from ploti.server.adapters.blobs import FolderBlobs, LinkSigner
from ploti.server.adapters.fetcher import SourceFetcher
from ploti.server.adapters.fetcher.limits import Limits
from ploti.server.ports.outside import Fetched
from ploti.server.sources.credentials import Credential
from ploti.server.sources.source import Source

BLOB = "states/ds_a/att_1"
Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


class State(NamedTuple):
    """What was fetched: the bytes and what the source calls them."""

    bytes: bytes
    name: str


def fetched(
    folder: Path,
    answer: Answering,
    *,
    kind: str,
    path: str,
    secret: str | None = None,
    hosts: tuple[str, ...] | None = None,
    **settings: Any,
) -> State:
    """The state of a source of this kind at a path.

    A `secret` is the credential OURS, which may go to the server unless `hosts` says otherwise.
    """

    async def main() -> State:
        moment = Instant.parse("2026-01-01T00:00:00Z")
        signer = LinkSigner(b"s" * 32, base="http://x/", now=lambda: moment)
        blobs = FolderBlobs(folder / "blobs", signer=signer)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        ours = hosts or (f"127.0.0.1:{port}",)
        fetcher = SourceFetcher(
            blobs,
            file_roots=(),
            allow_networks=("127.0.0.0/8",),
            max_source=1 << 22,
            user_agent="ploti/test",
            credentials={"OURS": Credential(secret=secret, hosts=ours)} if secret else {},
            limits=Limits(pauses=(0, 0)),
        )
        source = Source(kind=kind, url=f"http://127.0.0.1:{port}{path}", **settings)
        try:
            found = await fetcher.fetch(source, into=BLOB)
            assert isinstance(found, Fetched)
            async with blobs.open(BLOB) as file:
                state = State(bytes=await file.read(0, length=file.size), name=found.name)
            await blobs.delete(BLOB)
            return state
        finally:
            fetcher.close()
            await runner.cleanup()

    return asyncio.run(main())
