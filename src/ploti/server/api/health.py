"""Whether the process runs, and whether it can serve; both without a key."""

from __future__ import annotations

import structlog
from litestar import get
from litestar.di import NamedDependency

from ploti.errors import Code, Unavailable
from ploti.model.wire import Value
from ploti.server.api.backend import Backend
from ploti.server.api.openapi import PROBLEMS

_LOG = structlog.get_logger()


class Health(Value, kw_only=True):
    """How the server is."""

    status: str


@get("/healthz")
async def get_health() -> Health:
    """The process runs and answers."""
    return Health(status="ok")


@get("/readyz", opt={PROBLEMS: (Code.UNAVAILABLE,)})
async def get_readiness(backend: NamedDependency[Backend]) -> Health:
    """The database can be read, and the folder written to."""
    try:
        await backend.store.read(lambda tx: tx.keys.is_set_up())
        await backend.blobs.try_out()
    except Exception:  # noqa: BLE001 - whatever it is, nothing can be served
        _LOG.exception("cannot serve: the database or its folder fails")
        raise Unavailable(
            "The database cannot be read, or the data's folder not written to", retry_after=5
        ) from None
    return Health(status="ok")
