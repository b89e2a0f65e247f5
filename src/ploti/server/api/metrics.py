"""Metrics for Prometheus, which reads them with a key of the staff's."""

from __future__ import annotations

from litestar import Response, Router, get
from litestar.di import NamedDependency

from ploti.server.api.auth import PERMISSION, Caller
from ploti.server.api.backend import Backend
from ploti.server.api.openapi import ANSWER
from ploti.server.membership.principal import ADMIN


@get("/", opt={ANSWER: None})
async def get_metrics(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend]
) -> Response[bytes]:
    """What the server has done and how things stand, in the text format of Prometheus."""
    now = backend.clock.now()
    measures = await caller.read(lambda tx, _: tx.overview.measures(now=now))
    return Response(backend.meters.text(measures, now=now), media_type=_TEXT)


_TEXT = "text/plain; version=0.0.4"

ROUTER = Router("/metrics", route_handlers=[get_metrics], opt={PERMISSION: ADMIN}, tags=["staff"])
