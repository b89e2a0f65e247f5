"""Whether the process runs, and whether it can serve; both without a key."""

from __future__ import annotations

from litestar import get
from litestar.di import NamedDependency

from ploti.errors import Code
from ploti.model.wire import Value
from ploti.server.api.openapi import PROBLEMS
from ploti.server.api.readiness import Readiness


class Health(Value, kw_only=True):
    """How the server is."""

    status: str


@get("/healthz")
async def get_health() -> Health:
    """The process runs and answers."""
    return Health(status="ok")


@get("/readyz", opt={PROBLEMS: (Code.UNAVAILABLE,)})
async def get_readiness(readiness: NamedDependency[Readiness]) -> Health:
    """The database can be read, and the folder written to; as found within five seconds."""
    await readiness.check()
    return Health(status="ok")
