"""The OpenAPI 3.1 document of all routes, drawn from the handlers themselves."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types.empty import Empty

from ploti.errors import MEANINGS, Code
from ploti.server.api.params import LARGEST_WHOLE, Taken, query_of
from ploti.server.api.problems import MEDIA_TYPE, Problem
from ploti.server.api.schemas import JsonSchema, Schemas

ANSWER = "answer"
"""In a handler's `opt`: the type of an answer that is sent as finished text; None for no body."""

BODY = "body"
"""In a handler's `opt`: the type of its body."""

PROBLEMS = "problems"
"""In a handler's `opt`: the codes of problems that are its own, besides those of every route."""

ALSO = "also"
"""In a handler's `opt`: statuses besides, with what each means."""

QUERY = "query"
"""In a handler's `opt`: query parameters that it judges by itself; each is needed, and told."""

FILE = "file"
DECLARATION = "declaration"

_PERMISSION = "permission"
_OPEN = "open"
_KEY = "key"
_OF_EVERY_BODY = (Code.TOO_LARGE, Code.TOO_SLOW)
_OF_EVERY_KEY = (Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.RATE_LIMITED)
_OF_EVERY_ROUTE = (Code.INVALID_INPUT,)
_RULES = {"ge": "minimum", "le": "maximum", "pattern": "pattern"}
_OF_EVERY_PARAMETER: dict[str, JsonSchema] = {
    "string": {"minLength": 1},
    "integer": {"minimum": -LARGEST_WHOLE, "maximum": LARGEST_WHOLE},
}
_WITH_COMMAS: JsonSchema = {"style": "form", "explode": False}
_BINARY: JsonSchema = {"application/octet-stream": {}}
_IDEMPOTENCY: JsonSchema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A name of yours for this request: sent again within 24 hours it is done once.",
    "schema": {"type": "string", "pattern": "^[\\x21-\\x7e]{1,255}$"},
}
_ABOUT = (
    "Public geospatial data as versioned datasets, with a log of every change. "
    "Send a key as a bearer token. Every error is `application/problem+json` with a `code`."
)


def draw(routes: Iterable[HTTPRoute], *, version: str) -> JsonSchema:
    """The document of these routes; `version` is the release's."""
    schemas = Schemas()
    paths: dict[str, dict[str, JsonSchema]] = {}
    for route in routes:
        for handler in route.route_handlers:
            for method in handler.http_methods - {"OPTIONS"}:
                drawn = _operation(handler, route, schemas)
                paths.setdefault(route.path_format, {})[method.lower()] = drawn
    return {
        "openapi": "3.1.0",
        "info": {"title": "ploti", "version": version, "description": _ABOUT},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "securitySchemes": {_KEY: {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(handler: HTTPRouteHandler, route: HTTPRoute, schemas: Schemas) -> JsonSchema:
    name = _camel(handler.handler_name)
    operation: JsonSchema = {
        "operationId": name,
        "summary": (handler.fn.__doc__ or name).partition("\n")[0],
        "tags": sorted(handler.resolve_tags()) if hasattr(handler, "resolve_tags") else [],
        "security": _security(handler),
        "parameters": _parameters(handler, route, schemas),
        "responses": _responses(handler, schemas),
    }
    if BODY in handler.opt:
        operation["requestBody"] = {"required": True, "content": _content(handler, schemas)}
    return operation


def _security(handler: HTTPRouteHandler) -> list[JsonSchema]:
    if _PERMISSION not in handler.opt:
        return []
    return [{_KEY: []}, {}] if _OPEN in handler.opt else [{_KEY: []}]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _parameters(handler: HTTPRouteHandler, route: HTTPRoute, schemas: Schemas) -> list[JsonSchema]:
    in_path: list[JsonSchema] = [
        {"name": name, "in": "path", "required": True, "schema": _in_path(found.type, schemas)}
        for name, found in route.path_parameters.items()
    ]
    query = query_of(handler, frozenset(route.path_parameters))
    own: list[JsonSchema] = [
        {
            "name": name,
            "in": "query",
            "required": True,
            "description": told,
            "schema": schemas.of(str),
        }
        for name, told in handler.opt.get(QUERY, {}).items()
    ]
    may_repeat = (
        [_IDEMPOTENCY] if "POST" in handler.http_methods and _PERMISSION in handler.opt else []
    )
    return in_path + [_parameter(taken, schemas) for taken in query.values()] + own + may_repeat


def _in_path(kind: type, schemas: Schemas) -> JsonSchema:
    return schemas.of(int) | {"minimum": 0} if kind is int else schemas.of(str)


def _parameter(taken: Taken, schemas: Schemas) -> JsonSchema:
    schema = dict(schemas.of_parameter(taken.field.annotation))
    for rule, name in _RULES.items():
        value = getattr(taken.rules, rule, None)
        if value is not None:
            schema[name] = value
    schema |= (taken.rules and taken.rules.schema_extra) or {}
    schema = _OF_EVERY_PARAMETER.get(str(schema.get("type")), {}) | schema
    default = taken.field.default
    if default is not Empty and default is not None:
        schema["default"] = default
    return {
        "name": taken.name,
        "in": "query",
        "required": taken.is_required,
        "description": (taken.rules and taken.rules.description) or "",
        "schema": schema,
    } | (_WITH_COMMAS if schema.get("type") == "array" else {})


def _content(handler: HTTPRouteHandler, schemas: Schemas) -> JsonSchema:
    body = handler.opt[BODY]
    if body == FILE:
        return _BINARY
    schema = {"type": "object"} if body == DECLARATION else schemas.of_body(body)
    return {"application/json": {"schema": schema}}


def _responses(handler: HTTPRouteHandler, schemas: Schemas) -> JsonSchema:
    codes = [*_OF_EVERY_ROUTE, *handler.opt.get(PROBLEMS, ())]
    codes += _OF_EVERY_KEY if _PERMISSION in handler.opt else ()
    codes += _OF_EVERY_BODY if BODY in handler.opt else ()
    codes += (Code.CONFLICT,) if "POST" in handler.http_methods else ()
    by_status: dict[int, list[Code]] = {}
    for code in codes:
        by_status.setdefault(MEANINGS[code].status, []).append(code)
    problem = {MEDIA_TYPE: {"schema": schemas.of(Problem)}}
    return {
        str(handler.status_code): _success(handler, schemas),
        **{
            str(status): {"description": told} for status, told in handler.opt.get(ALSO, {}).items()
        },
        "default": {"description": "any other problem", "content": problem},
        **{
            str(status): {"description": " or ".join(sorted(set(found))), "content": problem}
            for status, found in sorted(by_status.items())
        },
    }


def _success(handler: HTTPRouteHandler, schemas: Schemas) -> JsonSchema:
    kind = handler.opt.get(ANSWER, handler.parsed_fn_signature.return_type.annotation)
    told: JsonSchema = {"description": HTTPStatus(handler.status_code).phrase}
    if kind == FILE:
        return told | {"content": _BINARY}
    if kind is None or kind is type(None):
        return told
    return told | {"content": {"application/json": {"schema": schemas.of(kind)}}}
