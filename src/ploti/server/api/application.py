"""The ASGI application: the routes over a backend."""

from __future__ import annotations

from litestar import Litestar, Response, get
from litestar.di import Provide
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp

from ploti.model.wire import Instant, encode
from ploti.server.api import (
    accounts,
    admin,
    datasets,
    events,
    files,
    health,
    ids,
    metrics,
    subscriptions,
    webhooks,
)
from ploti.server.api.auth import find_caller
from ploti.server.api.backend import Backend
from ploti.server.api.ending import with_end
from ploti.server.api.methods import with_methods
from ploti.server.api.openapi import ANSWER, draw
from ploti.server.api.params import check_request
from ploti.server.api.plain_pages import with_plain_pages
from ploti.server.api.problems import HANDLERS, NO_STORE
from ploti.server.api.readiness import Readiness
from ploti.server.api.repeats import Repeated, answer_again

_ROUTES = (
    *(datasets.ROUTER, subscriptions.ROUTER, events.ROUTER, webhooks.ROUTER, admin.ROUTER),
    accounts.ROUTER,
    ids.ROUTER,
    metrics.ROUTER,
    *(health.get_health, health.get_readiness, files.get_file),
)


def make_application(backend: Backend, *, version: str) -> ASGIApp:
    """The routes of this release over `backend`."""
    document = b""
    readiness = Readiness(backend)

    @get("/openapi.json", opt={ANSWER: dict[str, object]}, sync_to_thread=False)
    def get_openapi() -> Response[bytes]:
        """This document."""
        return Response(document, media_type="application/json")

    application = Litestar(
        [*_ROUTES, get_openapi],
        dependencies={
            "backend": Provide(lambda: backend, sync_to_thread=False),
            "caller": Provide(find_caller),
            "readiness": Provide(lambda: readiness, sync_to_thread=False),
        },
        before_request=check_request,
        exception_handlers={**HANDLERS, Repeated: answer_again},
        response_headers=NO_STORE,
        type_encoders={Instant: str},
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,
    )
    routes = [route for route in application.routes if isinstance(route, HTTPRoute)]
    document = encode(draw(routes, version=version))
    return with_end(with_plain_pages(with_methods(application), backend))
